"""A socket that the event loop watches: what comes is heard where it is read, by no task."""

import asyncio  # noqa: TID251 - readable sockets are watched by the loop itself
from collections.abc import Callable
from socket import socket

from aggregator.jsonrpc.source import asyncio_loop

CHUNK_BYTES = 64 * 1024
"""Bytes that are read at once."""

Hear = Callable[[bytes | OSError], None]
"""Takes what came: nothing stands for the end, and an error for what broke."""


class Watch:
    """Hears what comes on one socket, for as long as somebody listens."""

    def __init__(self, watched: socket, loop: asyncio.AbstractEventLoop) -> None:
        # The loop has the socket itself for its stream, and lets nobody else read that.
        self._socket = watched.dup()
        self._loop = loop
        self._hear: Hear | None = None
        self._is_on = False

    @classmethod
    def of(cls, watched: socket) -> "Watch | None":
        """Watch a socket, if the loop that runs us can."""
        loop = asyncio_loop()
        return None if loop is None else cls(watched, loop)

    def listen(self, hear: Hear) -> None:
        """Have somebody hear what comes from here on."""
        self._hear = hear
        if not self._is_on:
            self._is_on = True
            self._loop.add_reader(self._socket.fileno(), self._on_readable)

    def rest(self) -> None:
        """Have nobody hear; that nothing comes is expected, and cheaper than to stop."""
        self._hear = None

    def stop(self) -> None:
        """Leave what comes to others."""
        self._hear = None
        if self._is_on:
            self._is_on = False
            self._loop.remove_reader(self._socket.fileno())

    def close(self) -> None:
        """Be done with the socket."""
        self.stop()
        self._socket.close()

    def _on_readable(self) -> None:
        if self._hear is None:
            # Whoever wants to use it next finds that out.
            self.stop()
        # What broke behind some bytes is found once they are read, and not every loop tells again.
        for _ in range(2):
            if self._hear is not None:
                self._read(self._hear)

    def _read(self, hear: Hear) -> None:
        try:
            came: bytes | OSError = self._socket.recv(CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            came = error
        hear(came)
