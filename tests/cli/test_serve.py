"""What `aggregator serve` says to whoever started it."""

import os
import pty
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from aggregator.cli.environment import ExitStatus
from tests.cli.session import start
from tests.cli.shell import Shell, faulty
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow

SERVERS = f"servers:\n  test:\n    {faulty()}\n  gone: {{command: no-such-program}}\n"
END_OF_INPUT = b"\x04"


@contextmanager
def terminal(shell: Shell, *arguments: str) -> Generator[tuple[int, "subprocess.Popen[bytes]"]]:
    """Type a command at a terminal."""
    keyboard, screen = pty.openpty()
    command = [sys.executable, "-m", "aggregator", *arguments]
    variables = shell.all_variables()
    process = subprocess.Popen(
        command, stdin=screen, stdout=screen, stderr=screen, env=variables, cwd=shell.project
    )
    os.close(screen)
    try:
        with process:
            yield keyboard, process
    finally:
        os.close(keyboard)


@pytest.mark.parametrize("options", [(), ("--http", "0")])
def test_where_it_cannot_run_it_says_so(shell: Shell, options: tuple[str, ...]) -> None:
    shell.write_servers("servers: {}")
    shell.platform = "win32"

    ran = shell.run("serve", *options)

    assert ran.status is ExitStatus.ERROR
    assert "`aggregator serve` needs Linux or macOS" in ran.err
    assert "hint: Run it in the Windows Subsystem for Linux" in ran.err
    assert ran.out == ""


def test_a_person_who_types_serve_is_told_what_it_waits_for(shell: Shell) -> None:
    path = shell.write_servers(SERVERS)

    with terminal(shell, "serve") as (keyboard, process):
        said = ""
        while "Waiting" not in said:
            said += os.read(keyboard, 1000).decode()
        os.write(keyboard, END_OF_INPUT)
        status = process.wait(PATIENCE)

    # A path that is longer than the terminal is wide begins a line.
    assert (
        said.split()
        == (f"Using `{path}` Waiting for an MCP client on standard input; Ctrl-C ends it.").split()
    )
    assert status == 0


def test_a_program_that_starts_serve_is_told_nothing(shell: Shell) -> None:
    shell.write_servers(SERVERS)

    with start(shell, "serve") as process:
        said = process.communicate(timeout=PATIENCE)

    assert said == ("", "")


def test_over_http_a_server_that_fails_is_told_of_unasked(shell: Shell) -> None:
    shell.write_servers(SERVERS)

    with start(shell, "serve", "--http", "0", "--no-auth") as process:
        assert process.stderr is not None
        said = next(line for line in process.stderr if line.startswith("gone: "))
        process.terminate()
        process.communicate(timeout=PATIENCE)

    assert said == (
        "gone: the command `no-such-program` was not found on PATH; "
        "waiting for the configuration to change\n"
    )


def test_whoever_asks_is_told_of_each_server_that_is_ready(shell: Shell) -> None:
    shell.write_servers(SERVERS)

    with start(shell, "serve", "-v") as process:
        assert process.stderr is not None
        said = next(line for line in process.stderr if line.startswith("test: "))
        process.communicate(timeout=PATIENCE)

    assert said == "test: ready with 5 tools\n"


@pytest.mark.parametrize("options", [(), ("--http", "0", "--no-auth")])
def test_a_rule_that_protects_nothing_is_told_of_unasked(
    shell: Shell, options: tuple[str, ...]
) -> None:
    rule = "tools: {deny: [destroy_*]}"
    shell.write_servers(f"servers:\n  test:\n    {faulty()}\n    {rule}\n")

    with start(shell, "serve", *options) as process:
        assert process.stderr is not None
        said = next(line for line in process.stderr if line.startswith("test: "))
        process.terminate()
        process.communicate(timeout=PATIENCE)

    assert said == "test: `destroy_*` in `tools.deny` matches none of its tools\n"
