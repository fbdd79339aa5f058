"""A connection of one client: its hello, the descriptors that came with it, and single bytes."""

import array
import os
import socket
from contextlib import suppress

import anyio

from aggregator.entry.shim import GO

MAX_HELLO = 8 * 1024 * 1024
"""Bytes that a client may say of itself."""
CHUNK = 64 * 1024
HANDED = 3
"""Descriptors that come with a client: its input, its output, its errors."""
_LENGTH = 4


class HubConnectionError(Exception):
    """What came is not what a client sends, or did not come whole."""


class HubConnection:
    """One connection that never blocks."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        connection.setblocking(False)
        self.descriptors: list[int] = []
        """What was handed over, which is ours to close."""

    async def hear(self) -> bytes:
        """Return the hello.

        Raises:
            LineError: It is cut short, or too long.
        """
        received = bytearray()
        while len(received) < _LENGTH:
            received += await self._some()
        size = int.from_bytes(received[:_LENGTH], "big")
        if size > MAX_HELLO:
            raise HubConnectionError("it says too much")
        while len(received) < _LENGTH + size:
            received += await self._some()
        return bytes(received[_LENGTH:])

    async def take_over(self) -> None:
        """Wait for the word to begin, and take the descriptors that come with it.

        Raises:
            LineError: It does not come, or has lost its descriptors on the way.
        """
        room = socket.CMSG_LEN(HANDED * array.array("i").itemsize)
        flags = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
        while True:
            try:
                word, ancillary, _, _ = self._connection.recvmsg(len(GO), room, flags)
                break
            except BlockingIOError:
                await anyio.wait_readable(self._connection)
            except OSError as error:
                raise HubConnectionError(str(error)) from None
        for level, kind, content in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                self.descriptors.extend(_received(content))
        if word != GO or len(self.descriptors) != HANDED:
            raise HubConnectionError("its streams were not handed over")

    async def take(self) -> int | None:
        """Return the next byte, or nothing once the other side has gone."""
        while True:
            try:
                said = self._connection.recv(1)
            except BlockingIOError:
                await anyio.wait_readable(self._connection)
            except OSError:
                return None
            else:
                return said[0] if said else None

    async def give(self, message: bytes) -> None:
        """Send something; whoever has gone does not get it."""
        rest = memoryview(message)
        with suppress(OSError):
            while rest:
                try:
                    rest = rest[self._connection.send(rest) :]
                except BlockingIOError:
                    await anyio.wait_writable(self._connection)

    def say(self, message: bytes) -> None:
        """Send what fits at once."""
        with suppress(OSError):
            self._connection.send(message)

    def let_go(self) -> None:
        """Close what was handed over."""
        for descriptor in self.descriptors:
            with suppress(OSError):
                os.close(descriptor)
        self.descriptors.clear()

    def close(self) -> None:
        """Let go of the connection and of what came by it."""
        self.let_go()
        with suppress(OSError):
            anyio.notify_closing(self._connection)
        self._connection.close()

    async def _some(self) -> bytes:
        while True:
            try:
                data = self._connection.recv(CHUNK)
            except BlockingIOError:
                await anyio.wait_readable(self._connection)
            except OSError as error:
                raise HubConnectionError(str(error)) from None
            else:
                if not data:
                    raise HubConnectionError("it was cut short")
                return data


def _received(content: bytes) -> list[int]:
    """Return the descriptors of which a message tells, none of which is for our children."""
    rights = array.array("i")
    rights.frombytes(content[: len(content) - len(content) % rights.itemsize])
    for descriptor in rights:
        os.set_inheritable(descriptor, False)
    return list(rights)
