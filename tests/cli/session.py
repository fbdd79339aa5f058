"""A command as a process of its own, and what it starts and leaves."""

import os
import select
import subprocess
import sys
from pathlib import Path

from aggregator.cli.environment import ExitStatus
from tests.cli.shell import FAULTY, Ran, Shell
from tests.patience import PATIENCE

HUMBLE = """\
import ctypes, os, sys
for privilege in (1, 2):  # to write, and to read, what belongs to others or is forbidden to all
    ctypes.CDLL(None).prctl(24, privilege, 0, 0, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Gives up what makes the superuser one, as far as files go, and runs a program."""


def start(shell: Shell, *arguments: str) -> "subprocess.Popen[str]":
    """Type a command; to the superuser as much is forbidden as to anybody."""
    humble = [sys.executable, "-c", HUMBLE] if os.geteuid() == 0 else []
    return subprocess.Popen(
        [*humble, sys.executable, "-m", "aggregator", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env=shell.all_variables(),
        cwd=shell.project,
        start_new_session=True,
    )


def run(shell: Shell, *arguments: str) -> Ran:
    """Type a command and wait for its end."""
    with start(shell, *arguments) as process:
        return ended(process)


def ended(process: "subprocess.Popen[str]") -> Ran:
    """Wait for the end of a command, with nobody at the keyboard any more."""
    out, err = process.communicate(timeout=PATIENCE)
    return Ran(ExitStatus(process.returncode), out, err)


class Silent:
    """A server that is asked who it is and never answers; when it was asked can be known."""

    def __init__(self, shell: Shell) -> None:
        self._pipe = shell.home / "asked"
        os.mkfifo(self._pipe)
        arguments = f"[{FAULTY}, hang_initialize, --log, {self._pipe}]"
        shell.write_servers(
            f"servers: {{slow: {{command: {sys.executable}, args: {arguments}, description: x}}}}"
        )

    def asked(self) -> None:
        """Wait until it is running."""
        descriptor = os.open(self._pipe, os.O_RDONLY | os.O_NONBLOCK)
        try:
            assert select.select([descriptor], [], [], PATIENCE)[0]
        finally:
            os.close(descriptor)


def session(leader: int) -> list[int]:
    """Return the processes in the session of a command."""
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            if str(leader) == path.read_text().rpartition(")")[2].split()[3]:
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def marked(word: str) -> list[int]:
    """Return the processes that were started with a word."""
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if word.encode() in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def await_end(pid: int) -> None:
    """Wait until a process has ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([descriptor], [], [], PATIENCE)[0]
    finally:
        os.close(descriptor)
