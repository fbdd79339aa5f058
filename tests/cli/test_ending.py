"""Commands that are told to end, end what they have started, and leave nothing behind."""

import os
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from aggregator.upstream.stdio import DRAIN_PATIENCE
from tests.cli.session import await_end, marked, session, start
from tests.cli.shell import FAULTY, Shell

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


def test_what_a_killed_command_has_started_waits_for_no_answer(shell: Shell) -> None:
    with calling(shell) as process:
        left = started_by(shell, process)
        process.kill()
        began = time.monotonic()
        for pid in left:
            await_end(pid)

    assert time.monotonic() - began < DRAIN_PATIENCE
