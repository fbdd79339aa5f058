"""The bytes of a descriptor that does not block, as they come.

`anyio.wait_readable` has the event loop watch a descriptor anew for every chunk. On asyncio it is
watched all the while, and read where the loop finds it readable: each message costs fewer turns
of the loop. A descriptor whose bytes nobody takes is not watched.

Whoever waits can have chunks be tapped: taken where they are read, so that no task has to wake.
"""

import asyncio  # noqa: TID251 - readable descriptors are watched by the loop itself
import os
from collections.abc import Callable

import anyio

from aggregator.basics.clock import asyncio_loop

CHUNK_BYTES = 64 * 1024
"""Bytes read at once: what a pipe holds."""


Tap = Callable[[bytes], bool]
"""Takes a chunk, or says that it does not; may not wait."""


class Source:
    """Reads one descriptor, for one reader at a time."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._closed = False
        self._chunk: bytes | None = None
        self._watching: asyncio.AbstractEventLoop | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._tap: Tap | None = None

    async def read(self, tap: Tap | None = None) -> bytes:
        """Return the next bytes that are not tapped, or nothing at the end.

        Not everything that could be is offered to `tap`.

        Raises:
            ClosedResourceError: The source has been closed.
        """
        while self._chunk is None:
            if self._closed:
                raise anyio.ClosedResourceError
            if self._watching is None and (chunk := self._read()) is not None:
                return chunk
            if (loop := self._watching or asyncio_loop()) is None:
                await anyio.wait_readable(self._fd)
            else:
                self._tap = tap
                await self._watch(loop)
        chunk, self._chunk = self._chunk, None
        return chunk

    def close(self) -> None:
        """Read no more, and tell whoever waits."""
        if self._closed:
            return
        self._closed = True
        self._unwatch()
        if self._waiter is None:
            anyio.notify_closing(self._fd)
        else:
            self._wake()

    async def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait until the loop has read something."""
        if self._watching is None:
            loop.add_reader(self._fd, self._on_readable)
            self._watching = loop
        self._waiter = loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _on_readable(self) -> None:
        if self._waiter is None:
            self._unwatch()
            return
        if self._chunk is None:
            chunk = self._read()
            if chunk and self._tap is not None and self._tap(chunk):
                return
            self._chunk = chunk
        if not self._chunk:
            self._unwatch()
        self._wake()

    def _unwatch(self) -> None:
        if self._watching is not None:
            self._watching.remove_reader(self._fd)
            self._watching = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _read(self) -> bytes | None:
        """Return what there is now: nothing at the end, and `None` if there may be more later."""
        try:
            return os.read(self._fd, CHUNK_BYTES)
        except BlockingIOError:
            return None
        except OSError:
            return b""
