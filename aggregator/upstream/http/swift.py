"""Connections read by httptools, which is compiled: with the same manners as those of h11.

It has no bound on the head of a request, so that is here.
"""

from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from aggregator.upstream.http.gathered import Gathered
from aggregator.upstream.http.patience import Manners, Vigil
from aggregator.upstream.http.presence import Presence

MAX_HEAD_BYTES = 64 * 1024
"""Bytes that the head of a request may have, or a line of one that is never to end."""

TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"connection: close\r\ncontent-length: 0\r\n\r\n"
)


def swift(kept: Manners) -> type[HttpToolsProtocol]:
    """Return a protocol with these manners."""

    class Swift(_Swift):
        manners = kept

    return Swift


class _Swift(HttpToolsProtocol):
    """One connection."""

    manners: Manners
    _vigil: Vigil
    _head = 0
    """Bytes that have come of a head that is not complete."""
    _in_head = True
    _is_whole = False

    def connection_made(self, transport: Any) -> None:  # noqa: ANN401 - as the base class has it
        """Expect a request."""
        super().connection_made(Gathered(transport, self.loop.call_soon))  # pyright: ignore[reportArgumentType]
        self._vigil = Vigil(self, self.manners, self._is_answering)
        self.app_state = {**self.app_state, Presence.KEY: self._vigil.presence}

    def data_received(self, data: bytes) -> None:
        """Take some of a request, unless its head is too long, and see whether it is whole."""
        if self._in_head:
            end = data.find(b"\r\n\r\n")
            self._head += len(data) if end < 0 else end
            if self._head > MAX_HEAD_BYTES:
                self.transport.write(TOO_LARGE)
                self.transport.close()
                return
        super().data_received(data)
        if self._is_whole:
            self._vigil.expect_nothing()
        else:
            self._vigil.expect()

    def on_message_begin(self) -> None:
        """Begin with a request."""
        super().on_message_begin()
        self._is_whole = False

    def on_headers_complete(self) -> None:
        """Go on with its body."""
        super().on_headers_complete()
        self._in_head, self._head = False, 0

    def on_message_complete(self) -> None:
        """Be ready for the next."""
        super().on_message_complete()
        self._is_whole = self._in_head = True

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        super().connection_lost(exc)
        self._vigil.end()

    def _is_answering(self) -> bool:
        cycle: Any = self.cycle
        if cycle is None or not cycle.response_started:
            return False
        # What has been answered before it was whole is answered once.
        return not (cycle.response_complete and self._in_head)
