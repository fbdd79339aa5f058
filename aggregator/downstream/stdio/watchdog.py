"""Hold the children's process groups in a process that outlives us.

However we end, by SIGKILL or by a bug, the pipe to that process closes, and it ends what we left
behind. A child that moves to a group of its own still carries a cookie in its environment. Where
there is no `/proc` (macOS) groups alone are ended.
"""

import os
import secrets
import subprocess
import sys
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import anyio

from aggregator.basics.signals import Signal
from aggregator.downstream.stdio.process import Process, unblocked
from aggregator.downstream.stdio.sweeper import start_time
from aggregator.jsonrpc.pipes import close_pipe

COOKIE = "MCP_AGGREGATOR_COOKIE"
"""The environment variable that marks every process we are responsible for."""

RESTART_DELAY = 1.0
"""Seconds before a watchdog that was killed is replaced."""

FAREWELL = 4.0
"""Seconds the watchdog has to end what is left, when we stop."""

_PROGRAM = Path(__file__).with_name("sweeper.py")


class Watchdog:
    """The process that ends our children when we cannot; it starts with the first of them."""

    def __init__(self) -> None:
        self.cookie = secrets.token_hex(16)
        self._held: dict[int, str] = {}
        self._process: Process | None = None
        self._input: IO[bytes] | None = None
        self.started = Signal()
        """Sent when the process is started."""
        self._stack = AsyncExitStack()

    @property
    def environment(self) -> dict[str, str]:
        """What every child's environment must carry."""
        return {COOKIE: self.cookie}

    @property
    def pid(self) -> int | None:
        """The watchdog's own process, once it runs."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start the process unless it runs; call this before the first child is started."""
        if self._process is not None:
            return
        try:
            popen = _popen()
        except OSError:
            # Better to serve without than not at all; the next child tries again.
            return
        self._process, self._input = Process(popen), unblocked(popen.stdin)
        self._tell(f"={self.cookie}")
        for line in self._held.values():
            self._tell(line)
        self.started.send()

    def hold(self, pid: int) -> None:
        """End this process and its group if we are gone before it is released."""
        self._held[pid] = f"+{pid} {start_time(pid)}"
        self._tell(self._held[pid])

    def release(self, pid: int) -> None:
        """Forget a process that has ended."""
        if self._held.pop(pid, None) is not None:
            self._tell(f"-{pid}")

    async def __aenter__(self) -> Self:
        tasks = await self._stack.enter_async_context(anyio.create_task_group())
        self._stack.callback(tasks.cancel_scope.cancel)
        tasks.start_soon(self._replace)
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        await self._stack.aclose()
        if self._process is not None and self._input is not None:
            close_pipe(self._input)
            with anyio.move_on_after(FAREWELL, shield=True):
                await self._process.exited()
            self._process.close()

    async def _replace(self) -> None:
        """Start another whenever the process dies before its time."""
        while True:
            while self._process is None or self._input is None:
                await self.started.wait()
            await self._process.exited()
            close_pipe(self._input)
            self._process.close()
            self._process = None
            await anyio.sleep(RESTART_DELAY)
            self.start()

    def _tell(self, line: str) -> None:
        # A full or broken pipe means a watchdog that is stuck or dead: it is replaced when it
        # ends, and until then the cookie still finds the child.
        if self._input is not None and not self._input.closed:
            with suppress(BlockingIOError, BrokenPipeError):
                os.write(self._input.fileno(), f"{line}\n".encode())


def _popen() -> subprocess.Popen[bytes]:
    """Start the program with as little as it needs, and away from every signal meant for us."""
    return subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-I", "-S", "-E", str(_PROGRAM)],
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={},
        cwd="/",
        start_new_session=True,
    )
