"""Responses in one write: the head waits, for less than a turn, for the body behind it.

uvicorn writes them one after the other, and whoever waits for both is woken twice.
"""

from collections.abc import Callable
from typing import Any

HEAD = b"HTTP/1."
"""What each head begins with."""
SMALL_BYTES = 64 * 1024
"""Bytes of a body that are rather copied than written by themselves."""


class Gathered:
    """The transport of one connection, with another way to write to it."""

    def __init__(self, transport: Any, soon: Callable[[Callable[[], None]], object]) -> None:  # noqa: ANN401 - as uvicorn has it
        self._transport = transport
        self._soon = soon
        self._held = b""
        """The head that nothing has come after yet."""
        self.is_closing: Callable[[], bool] = transport.is_closing

    def write(self, data: bytes) -> None:
        """Write some bytes, but a head with what is written next, or in the next turn."""
        held, self._held = self._held, b""
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
        """Write a response of which nothing is to be waited for."""
        self._flush()
        if len(body) <= SMALL_BYTES:
            self._transport.write(head + body)
        else:
            self._transport.writelines((head, body))

    def close(self) -> None:
        """Close the connection once all is written."""
        self._flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever else a transport has
        return getattr(self._transport, name)

    def _flush(self) -> None:
        held, self._held = self._held, b""
        if held:
            self._transport.write(held)
