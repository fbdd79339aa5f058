"""Start a process in a group of its own, see it end, and end it.

Its leader is not reaped before its group has been signalled: until then the kernel cannot give
the number away, so a signal never reaches a stranger.
"""

import errno
import logging
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

import anyio

from aggregator.basics.descriptors import give_back
from aggregator.basics.frozen import frozen
from aggregator.config.limits import NO_LIMITS, Limits
from aggregator.downstream.stdio.sweeper import is_living

logger = logging.getLogger(__name__)

GRACE = 2.0
"""Seconds a process has to end by itself, and again after SIGTERM."""

SHORT_GRACE = 0.2
"""Seconds to end by itself that a process has which has nothing to bring to an end."""

_LIMITED = Path(__file__).with_name("limited.py")

POLL_INTERVAL = 0.02
"""Seconds between two looks, where the system offers nothing to wait on."""


class SpawnError(OSError):
    """A process that could not be started, with a reason a person can act on."""


@frozen
class Pipes:
    """Our ends of a process's standard streams, none of which ever blocks."""

    stdin: IO[bytes]
    stdout: IO[bytes]
    stderr: IO[bytes]


class Process:
    """One running process and the group it leads."""

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        self._popen = popen
        self._pidfd = _pidfd(popen.pid)
        self.pid = popen.pid

    async def exited(self) -> None:
        """Wait until the process has ended; it stays a zombie until `reap`."""
        if self._pidfd is not None:
            await anyio.wait_readable(self._pidfd)
            return
        await _becomes_false(lambda: self.exit_status() is None)

    async def exits_within(self, seconds: float) -> bool:
        """Say whether the process ends in time."""
        with anyio.move_on_after(seconds):
            await self.exited()
            return True
        return False

    def signal_group(self, number: int) -> None:
        """Send a signal to every process of the group."""
        # EPERM: some member changed its user; those we may signal have been.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def exit_status(self) -> int | None:
        """Return how the process ended, negative for a signal, or nothing while it runs."""
        if self._popen.returncode is not None or not hasattr(os, "waitid"):
            return self._popen.poll()
        seen = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if seen is None:
            return None
        return seen.si_status if seen.si_code == os.CLD_EXITED else -seen.si_status

    async def end(self, grace: float = GRACE) -> None:
        """End the whole group: wait, SIGTERM, wait, SIGKILL; reap it in any case.

        Its standard input should be closed before.
        """
        if await self.exits_within(grace):
            self.signal_group(signal.SIGTERM)
        else:
            await self._end_by_force()
        if self._popen.poll() is not None:
            await self._end_rest()

    def close(self) -> None:
        """Reap the process if it has ended, and watch it no longer."""
        self._popen.poll()
        if self._pidfd is not None:
            anyio.notify_closing(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None

    async def _end_by_force(self) -> None:
        self.signal_group(signal.SIGTERM)
        if not await self.exits_within(GRACE):
            self.signal_group(signal.SIGKILL)
            # Only a process stuck in the kernel can run this out.
            await self.exits_within(GRACE)

    async def _end_rest(self) -> None:
        """Give the leader's descendants in its group the same grace, then kill them."""
        with anyio.move_on_after(GRACE):
            await _becomes_false(self._group_is_alive, growth=2)
            return
        self.signal_group(signal.SIGKILL)

    def _group_is_alive(self) -> bool:
        try:
            os.killpg(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        # In a container the first process may reap orphans late, or never.
        return sys.platform != "linux" or is_living(self.pid)


async def _becomes_false(condition: Callable[[], bool], growth: int = 1) -> None:
    """Look again and again, after pauses that may grow where a look has its price."""
    pause = POLL_INTERVAL
    while condition():
        await anyio.sleep(pause)
        pause *= growth


def spawn(
    command: Sequence[str],
    environment: Mapping[str, str],
    cwd: str | Path | None,
    limits: Limits = NO_LIMITS,
) -> tuple[Process, Pipes]:
    """Start a process in a session of its own; block until it runs.

    Raises:
        SpawnError: It cannot be started.
    """
    try:
        popen = subprocess.Popen(  # noqa: S603 - a list, never a shell
            _limited(command, environment, limits),
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environment),
            cwd=cwd,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise SpawnError(_reason(command[0], environment, cwd, error)) from error
    if limits.files is None:
        give_back(popen.pid)
    pipes = Pipes(unblocked(popen.stdin), unblocked(popen.stdout), unblocked(popen.stderr))
    return Process(popen), pipes


def _limited(command: Sequence[str], environment: Mapping[str, str], limits: Limits) -> list[str]:
    """Return what to run to have a command under limits; without any, that is the command."""
    if limits == NO_LIMITS:
        return list(command)
    # What could not be run would be told by another program, and as its own end.
    if shutil.which(command[0], path=environment.get("PATH", os.defpath)) is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    words = ["" if limit is None else str(limit) for limit in limits]
    return [sys.executable, "-I", "-S", "-E", str(_LIMITED), *words, *command]


def describe_status(status: int) -> str:
    """Say how a process ended, as in `it ...`."""
    if status >= 0:
        return f"exited with status {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"


def unblocked(pipe: IO[bytes] | None) -> IO[bytes]:
    """Make a pipe that was asked for one that never blocks."""
    if pipe is None:
        raise ValueError("the process was started without this pipe")
    os.set_blocking(pipe.fileno(), False)
    return pipe


_MAKERS = {"uvx": "uv", "npx": "Node.js", "npm": "Node.js"}
"""What installs the programs that most servers are started with, where its name is another."""


def _reason(
    command: str, environment: Mapping[str, str], cwd: str | Path | None, error: Exception
) -> str:
    if cwd is not None and not Path(cwd).is_dir():
        return f"the working directory `{cwd}` does not exist"
    match error:
        case FileNotFoundError() if os.sep not in command:
            # The whole of it would fill every answer that names the reason.
            logger.debug("`%s` was looked for in %s", command, environment.get("PATH", ""))
            maker = _MAKERS.get(command)
            problem = f"was not found on PATH{f'; it comes with {maker}' if maker else ''}"
        case FileNotFoundError():
            problem = "does not exist"
        case PermissionError():
            problem = "is not executable"
        case OSError(errno=errno.ENOEXEC):
            problem = "is neither a program nor a script with a `#!` line"
        case OSError(strerror=str() as text):
            problem = f"could not be started: {text}"
        case _:
            problem = f"could not be started: {error}"
    return f"the command `{command}` {problem}"


def _pidfd(pid: int) -> int | None:
    if sys.platform != "linux":
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None
