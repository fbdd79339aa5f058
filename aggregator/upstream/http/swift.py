"""Connections read by httptools, which is compiled: with the same manners as those of h11.

It has no bound on the head of a request, nor on what follows a body or stands between its pieces;
it takes what follows a body for headers, reads as many requests as have come before any of them is
answered, and loses the body of one that offers to go on in another protocol. So all that is here.
"""

from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from aggregator.upstream.http.gathered import Gathered
from aggregator.upstream.http.patience import Manners, Vigil
from aggregator.upstream.http.presence import Presence

MAX_HEAD_BYTES = 64 * 1024
"""Bytes that the head of a request may have, or a line of one that is never to end."""
HEAD_END = b"\r\n\r\n"
"""What a head ends with."""
MAX_AHEAD = 16
"""Requests that a client may send before the first of them is answered."""

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
    _beside = 0
    """Bytes that have come of a head that is not complete, or since the last of a body."""
    _has_body = False
    """Whether some of a body was in what came last."""
    _again = b""
    """The head of a request that offers another protocol, without the offer."""
    _in_head = True
    _last = b""
    """The last bytes that came of a head: its end may have begun in them."""
    _is_whole = False

    def connection_made(self, transport: Any) -> None:  # noqa: ANN401 - as the base class has it
        """Expect a request."""
        super().connection_made(Gathered(transport, self.loop.call_soon))  # pyright: ignore[reportArgumentType]
        self._vigil = Vigil(self, self.manners, self._is_answering)
        self.app_state = {**self.app_state, Presence.KEY: self._vigil.presence}

    def data_received(self, data: bytes) -> None:
        """Take some of a request, unless its head is too long, and see whether it is whole."""
        if self._in_head:
            self._beside += self._size_in_head(data)
            if self._beside > MAX_HEAD_BYTES:
                self._refuse_more()
                return
        self._has_body = False
        self._unset_keepalive_if_required()
        try:
            self._read(data)
        except httptools.HttpParserError:
            self.send_400_response("Invalid HTTP request received.")
            return
        if self._is_whole:
            self._vigil.expect_nothing()
        else:
            self._vigil.expect()
            self._weigh(len(data))

    def _size_in_head(self, data: bytes) -> int:
        """Return how many bytes of what came are not behind the end of a head."""
        most = len(HEAD_END) - 1
        is_ended = HEAD_END in self._last + data[:most]
        self._last = (self._last + data[-most:])[-most:]
        end = 0 if is_ended else data.find(HEAD_END)
        return len(data) if end < 0 else end

    def _weigh(self, size: int) -> None:
        """Hang up on whoever goes on with what is not the body of a request, but stands beside."""
        if not (self._in_head or self._has_body):
            self._beside += size
            if self._beside > MAX_HEAD_BYTES:
                self._refuse_more()

    def _refuse_more(self) -> None:
        if not self._is_answering():
            self.transport.write(TOO_LARGE)
        self.transport.close()

    def _read(self, data: bytes) -> None:
        """Have it parsed; whoever offers another protocol is answered in this one."""
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            head, self._again = self._again, b""
            self.parser = httptools.HttpRequestParser(self)
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
            self._read(head + data[offer.args[0] :])

    def on_message_begin(self) -> None:
        """Begin with a request."""
        super().on_message_begin()
        self._is_whole = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; what comes after the body is none, whatever it is called."""
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Go on with its body."""
        if self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT":
            self._again = self._without_offer()
            return
        if len(self.pipeline) >= MAX_AHEAD:
            raise httptools.HttpParserError("too many requests ahead")
        super().on_headers_complete()
        self._in_head, self._beside, self._last = False, 0, b""

    def on_body(self, body: bytes) -> None:
        """Take some of its body."""
        super().on_body(body)
        self._has_body, self._beside = True, 0

    def on_message_complete(self) -> None:
        """Be ready for the next."""
        if self._again:
            return
        super().on_message_complete()
        self._is_whole = self._in_head = True
        self._beside = 0

    def _without_offer(self) -> bytes:
        """Return the head of a request as it is without another protocol that it offers."""
        version = self.parser.get_http_version().encode()
        lines = [b"%b %b HTTP/%b" % (self.parser.get_method(), self.url, version)]
        lines += [b"%b: %b" % each for each in self.headers if each[0] != b"upgrade"]
        return b"\r\n".join((*lines, b"", b""))

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
