"""Responses in one write: the head waits, for less than a turn, for the body behind it.

uvicorn writes them one after the other, and whoever waits for both is woken twice.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

HEAD = b"HTTP/1."
"""What each head begins with."""
SMALL_BYTES = 64 * 1024
"""Bytes of a body that are rather copied than written by themselves."""
CAN_GATHER = hasattr(os, "writev")
"""Whether sockets are files like others, to which several pieces are written at once."""


class SingleWrites:
    """The transport of one connection, with another way to write to it."""

    def __init__(self, transport: Any, soon: Callable[[Callable[[], None]], object]) -> None:  # noqa: ANN401 - as uvicorn has it
        self._transport = transport
        self._soon = soon
        self._held = b""
        """The head that nothing has come after yet."""
        self.is_closing: Callable[[], bool] = transport.is_closing
        self._descriptor = _descriptor(transport)
        """What can be written to without the transport, for as long as that is open."""

    def write(self, data: bytes) -> None:
        """Write some bytes, but a head with what is written next, or in the next turn."""
        held, self._held = self._held, b""
        if self.is_closing():
            # Of several requests on a connection, uvicorn tells only the last that it is lost; a
            # transport that is closed may take it for a mistake that one goes on writing.
            return
        if held and len(data) <= SMALL_BYTES:
            self._transport.write(held + data)
        elif held:
            self._transport.write(held)
            self._transport.write(data)
        elif data.startswith(HEAD):
            self._held = data
            self._soon(self._flush)
        else:
            self._transport.write(data)

    def write_whole(self, head: bytes, body: bytes) -> None:
        """Write a response of which nothing is to be waited for.

        At once, where nothing is before it: some loops would write it at the end of their turn.
        """
        if self._held:
            self._flush()
        if len(body) <= SMALL_BYTES:
            self._write_at_once(head + body)
            return
        pieces = (head, body)
        written = 0
        if self._descriptor is not None and self._is_clear():
            # What is wrong with the connection, the transport finds out.
            with suppress(OSError):
                written = os.writev(self._descriptor, pieces)
        for piece in pieces:
            if written < len(piece):
                self._transport.write(memoryview(piece)[written:] if written else piece)
            written = max(0, written - len(piece))

    def _write_at_once(self, data: bytes) -> None:
        written = 0
        if self._descriptor is not None and self._is_clear():
            try:
                written = os.write(self._descriptor, data)
            except OSError:
                # What is wrong with the connection, the transport finds out.
                written = 0
        if written < len(data):
            self._transport.write(data[written:])

    def _is_clear(self) -> bool:
        """Whether nothing waits to be written, and the connection is still its own."""
        return not self._transport.get_write_buffer_size() and not self.is_closing()

    def close(self) -> None:
        """Close the connection once all is written."""
        self._flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever else a transport has
        return getattr(self._transport, name)

    def _flush(self) -> None:
        held, self._held = self._held, b""
        if held and not self.is_closing():
            self._transport.write(held)


def _descriptor(transport: Any) -> int | None:  # noqa: ANN401 - as uvicorn has it
    """Return what a transport writes to, if it writes there what it is given."""
    found = transport.get_extra_info("socket")
    is_plain = transport.get_extra_info("sslcontext") is None
    return found.fileno() if CAN_GATHER and is_plain and found is not None else None
