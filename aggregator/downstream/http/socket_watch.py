"""A socket that the event loop watches: what comes is heard where it is read, by no task."""

import asyncio  # noqa: TID251 - readable sockets are watched by the loop itself
from collections.abc import Callable
from socket import socket

from aggregator.basics.clock import asyncio_loop

CHUNK_BYTES, LARGE_CHUNK_BYTES = 64 * 1024, 256 * 1024
"""Bytes that are read at once, and where as many have come."""

Hear = Callable[[bytes | OSError], bool]
"""Takes what came, and says whether more is waited for.

Nothing stands for the end, and an error for what broke.
"""


class SocketWatch:
    """Hears what comes on one socket, for as long as somebody listens."""

    def __init__(self, watched: socket, loop: asyncio.AbstractEventLoop) -> None:
        self._watched = watched
        self._socket: socket | None = None
        """The same once more, from when it is listened to on."""
        self._loop = loop
        self._hear: Hear | None = None
        self._is_on = False

    @classmethod
    def of(cls, watched: socket) -> "SocketWatch | None":
        """Watch a socket, if the loop that runs us can."""
        loop = asyncio_loop()
        return None if loop is None else cls(watched, loop)

    def listen(self, hear: Hear) -> bool:
        """Have somebody hear what comes from here on, if the system can have it watched."""
        if not self._is_on:
            try:
                # The loop has the socket itself for its stream, and lets nobody else read that.
                self._socket = self._socket or self._watched.dup()
                self._loop.add_reader(self._socket.fileno(), self._on_readable, self._socket)
            except OSError:
                return False
            self._is_on = True
        self._hear = hear
        return True

    def rest(self) -> None:
        """Have nobody hear; that nothing comes is expected, and cheaper than to stop."""
        self._hear = None

    def stop(self) -> None:
        """Leave what comes to others."""
        self._hear = None
        if self._is_on and self._socket is not None:
            self._is_on = False
            self._loop.remove_reader(self._socket.fileno())

    def close(self) -> None:
        """Be done with the socket."""
        self.stop()
        if self._socket is not None:
            self._socket.close()

    def _on_readable(self, readable: socket) -> None:
        if self._hear is None:
            # Whoever wants to use it next finds that out.
            self.stop()
        for size in (CHUNK_BYTES, LARGE_CHUNK_BYTES):
            if self._hear is None or not _read(readable, size, self._hear):
                return
        # What broke behind some bytes is found once they are read, and not every loop tells again.
        self._loop.call_soon(self._go_on, readable)

    def _go_on(self, readable: socket) -> None:
        """Read what there may be behind what was read, if somebody still hears."""
        if self._hear is not None:
            self._on_readable(readable)


def _read(readable: socket, size: int, hear: Hear) -> bool:
    try:
        came: bytes | OSError = readable.recv(size)
    except BlockingIOError:
        return False
    except OSError as error:
        # Where it was raised would keep what has read it, and that keeps the error.
        came = error.with_traceback(None)
    return hear(came)
