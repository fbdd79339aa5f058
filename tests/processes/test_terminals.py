"""What becomes of us when our terminal, or our standard input, is not there any more."""

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp_types.version import LATEST_HANDSHAKE_VERSION

from tests.processes.driver import FAULTY, PATIENCE, ROOT

pytestmark = pytest.mark.slow

IN_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, "-m", "aggregator", "serve", *sys.argv[1:]])
"""
"""Make a terminal that we were given the one that ends us."""


def config(directory: Path) -> str:
    path = directory / "servers.yaml"
    path.write_text("servers: {away: {command: nothing, enabled: false}}\n")
    return str(path)


def served_in_terminal(
    directory: Path, *, ignoring: bool = False
) -> tuple[subprocess.Popen[bytes], int]:
    """Serve over HTTP in a terminal of its own; return the process and our end, once it serves."""
    ours, theirs = pty.openpty()
    if ignoring:
        # As `nohup` does.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", IN_TERMINAL, "--http", "0", "--config", config(directory)],
            stdin=theirs, stdout=theirs, stderr=theirs, cwd=ROOT, start_new_session=True,
            env={**os.environ, "AGGREGATOR_TOKEN": "t" * 40},
        )  # fmt: skip
    finally:
        if ignoring:
            signal.signal(signal.SIGHUP, signal.SIG_DFL)
    os.close(theirs)
    until(ours, b"AGGREGATOR_TOKEN")
    return process, ours


def until(terminal: int, words: bytes) -> None:
    said = b""
    while words not in said:
        said += os.read(terminal, 4096)


CALL: tuple[dict[str, Any], ...] = (
    {
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": LATEST_HANDSHAKE_VERSION,
            "capabilities": {},
            "clientInfo": {"name": "a client", "version": "1"},
        },
    },
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/call", "params": {"name": "slow__wait", "arguments": {}}},
)
"""What a client of the handshake era sends until it waits for a server that never answers."""


@pytest.mark.parametrize("is_seen", [True, False])
def test_who_interrupts_a_call_over_stdio_is_told_what_that_waits_for(
    tmp_path: Path, *, is_seen: bool
) -> None:
    pipe, path = tmp_path / "received", tmp_path / "servers.yaml"
    os.mkfifo(pipe)
    slow = f"{FAULTY}, ok, --ignore-eof, --ignore-term, --log, {pipe}"
    path.write_text(f"servers: {{slow: {{command: {sys.executable}, args: [{slow}]}}}}")
    ours, theirs = pty.openpty() if is_seen else os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "aggregator", "serve", "--config", str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=theirs, cwd=ROOT,
    )  # fmt: skip
    assert process.stdin is not None
    with pipe.open("r+b", buffering=0) as received, process.stdin as asking:
        for message in CALL:
            asking.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            asking.flush()
        assert any(b"tools/call" in line for line in received)
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE)
    # Something is there to be read in any case.
    os.write(theirs, b"the end")
    said = os.read(ours, 4096)
    os.close(theirs)
    os.close(ours)

    assert (
        b"\r\nwaiting up to 3 s for 1 call; Ctrl-C again ends it at once\r\n" in said
    ) is is_seen
    assert (b"\r\nwaiting for `slow`; Ctrl-C again ends it at once\r\n" in said) is is_seen
    assert (b"waiting" in said) is is_seen


def test_a_closed_terminal_ends_what_was_started_in_it(tmp_path: Path) -> None:
    process, terminal = served_in_terminal(tmp_path)
    os.close(terminal)

    assert process.wait(PATIENCE) == 0


def test_what_is_started_with_nohup_outlives_its_terminal(tmp_path: Path) -> None:
    process, terminal = served_in_terminal(tmp_path, ignoring=True)
    os.close(terminal)
    process.send_signal(signal.SIGHUP)

    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1)
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == 0


def test_sighup_reads_the_file_again_while_the_terminal_is_there(tmp_path: Path) -> None:
    process, terminal = served_in_terminal(tmp_path)
    path = tmp_path / "servers.yaml"
    path.write_text("servers: [\n")
    process.send_signal(signal.SIGHUP)
    until(terminal, b"going on with the configuration in use")
    process.send_signal(signal.SIGTERM)

    assert process.wait(PATIENCE) == 0
    os.close(terminal)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_like_one_at_its_end(tmp_path: Path, closed: str) -> None:
    serve = f"exec '{sys.executable}' -m aggregator serve --config '{config(tmp_path)}' {closed}"
    ended = subprocess.run(
        ["/bin/sh", "-c", serve],
        cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE, check=False,
    )  # fmt: skip

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")


def test_a_result_that_nobody_gets_is_no_success() -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f"exec '{sys.executable}' -m aggregator --version >&-"],
        cwd=ROOT, capture_output=True, timeout=PATIENCE, check=False, text=True,
    )  # fmt: skip

    told = "error: standard output is closed, so there is no place for the result\n"
    assert (done.returncode, done.stderr) == (1, told)
