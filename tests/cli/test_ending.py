"""Commands that are told to end, end what they have started, and leave nothing behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from aggregator.cli.ending import heeding_sigterm
from aggregator.cli.environment import ExitStatus
from aggregator.downstream.stdio.process import GRACE
from aggregator.upstream.stdio import DRAIN_PATIENCE
from tests.census import look
from tests.cli.session import Silent, await_end, ended, marked, session, start
from tests.cli.shell import FAULTY, Shell, faulty

pytestmark = pytest.mark.slow


@contextmanager
def calling(shell: Shell, *manners: str) -> Generator["subprocess.Popen[str]"]:
    """Yield a command whose call has reached its server, which never answers it."""
    pipe = shell.home / "received"
    os.mkfifo(pipe)
    arguments = ", ".join([str(FAULTY), "ok", "--sign", str(shell.project), *manners])
    shell.write_servers(
        f"servers: {{test: {{command: {sys.executable}, args: [{arguments}, --log, {pipe}]}}}}"
    )
    with pipe.open("r+b", buffering=0) as received, start(shell, "call", "test__wait") as process:
        assert any(b"tools/call" in line for line in received)
        yield process


def started_by(shell: Shell, process: "subprocess.Popen[str]") -> list[int]:
    """Return the processes that a command has started."""
    servers = marked(str(shell.project))
    assert servers
    return [*servers, *(pid for pid in session(process.pid) if pid != process.pid)]


def are_gone(processes: list[int]) -> bool:
    """Whether these have ended; what nobody has reaped has."""
    return not any(map(is_alive, processes))


def is_alive(process: int) -> bool:
    seen = look(process)
    return seen is not None and seen.state != "Z"


def test_what_a_killed_command_has_started_waits_for_no_answer(shell: Shell) -> None:
    with calling(shell) as process:
        left = started_by(shell, process)
        process.kill()
        began = time.monotonic()
        for pid in left:
            await_end(pid)

    assert time.monotonic() - began < DRAIN_PATIENCE


@pytest.mark.parametrize(
    ("told", "status", "last"),
    [
        (signal.SIGINT, ExitStatus.INTERRUPTED, "interrupted"),
        (signal.SIGTERM, ExitStatus.TERMINATED, "terminated"),
    ],
)
def test_who_is_told_to_end_cancels_its_call_and_leaves_nothing(
    shell: Shell, told: signal.Signals, status: ExitStatus, last: str
) -> None:
    with calling(shell) as process:
        others = started_by(shell, process)
        began = time.monotonic()
        process.send_signal(told)
        ran = ended(process)
        seconds = time.monotonic() - began

    assert (ran.status, ran.err.splitlines()[-1]) == (status, last)
    assert seconds < DRAIN_PATIENCE
    assert are_gone(others)


@pytest.mark.parametrize("command", ["inspect", "search x", "check", "doctor", "lock"])
def test_sigterm_ends_a_command_as_ctrl_c_does(shell: Shell, command: str) -> None:
    server = Silent(shell)
    with start(shell, *command.split(), "--wait", "60") as process:
        server.asked()
        others = [pid for pid in session(process.pid) if pid != process.pid]
        process.terminate()
        ran = ended(process)

    assert (ran.status, ran.err.splitlines()[-1]) == (ExitStatus.TERMINATED, "terminated")
    assert are_gone(others)


def test_sigterm_ends_watching_with_its_own_status(shell: Shell) -> None:
    shell.write_servers(f"servers:\n  test:\n    {faulty()}\n")
    with start(shell, "inspect", "--watch") as process:
        assert process.stdout is not None
        assert any("Deferred" in line for line in process.stdout)
        process.terminate()
        ran = ended(process)

    assert ran.status is ExitStatus.TERMINATED


def test_what_is_told_twice_is_done_at_once(shell: Shell) -> None:
    with calling(shell, "--ignore-eof", "--ignore-term") as process:
        others = started_by(shell, process)
        process.terminate()
        assert process.stderr is not None
        waiting = next(line for line in process.stderr if line.startswith("waiting"))
        began = time.monotonic()
        process.terminate()
        ran = ended(process)
        seconds = time.monotonic() - began
        for pid in others:
            await_end(pid)

    assert waiting == "waiting for `test`; SIGTERM again ends it at once\n"
    assert ran.status is ExitStatus.TERMINATED
    assert seconds < GRACE


def test_a_signal_that_is_ignored_stays_so() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with heeding_sigterm():
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_command_waits_for_servers_that_end_a_moment_later(shell: Shell) -> None:
    shell.write_servers(
        f"servers: {{test: {{command: sh, args: [-c, '{sys.executable} {FAULTY}; sleep 0.8']}}}}"
    )
    with start(shell, "lock") as process:
        assert process.stderr is not None
        assert any(line.startswith("test: ready") for line in process.stderr)
        others = [pid for pid in session(process.pid) if pid != process.pid]
        ended(process)

    assert others
    assert are_gone(others)
