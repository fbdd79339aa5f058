"""Connections read by httptools, which is compiled: with the same limits as those of h11.

It has no bound on the head of a request, nor on what follows a body or stands between its pieces;
it takes what follows a body for headers, reads as many requests as have come before any of them is
answered, and loses the body of one that offers to go on in another protocol. So all that is here.
"""

import asyncio  # noqa: TID251 - what uvicorn is made of
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import httptools
from starlette.types import Scope, Send
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from aggregator.upstream.http.heads import HEAD_END, Head
from aggregator.upstream.http.presence import Presence
from aggregator.upstream.http.reply import Headers
from aggregator.upstream.http.shortcut import Found, Offer, Shortcut
from aggregator.upstream.http.single_writes import SingleWrites
from aggregator.upstream.http.time_limits import ConnectionLimits, RequestTimer

MAX_HEAD_BYTES = 64 * 1024
"""Bytes that the head of a request may have, or a line of one that is never to end."""
MAX_AHEAD = 16
"""Requests that a client may send before the first of them is answered."""

BLANKS = b" \t"
"""What may stand around the value of a header, and is no part of it."""

TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"connection: close\r\ncontent-length: 0\r\n\r\n"
)


def httptools_protocol(kept: ConnectionLimits) -> type[HttpToolsProtocol]:
    """Return a protocol with these limits."""

    class Protocol(_HttptoolsProtocol):
        limits = kept

    return Protocol


class _Answered(NamedTuple):
    """The head of an answer, written down; most often the next has the same but for its length."""

    status: int = 0
    always: Sequence[tuple[bytes, bytes]] = ()
    headers: Headers = ()
    before: bytes = b""
    after: bytes = b""

    @classmethod
    def by(
        cls, status: int, always: Sequence[tuple[bytes, bytes]], headers: Headers
    ) -> "_Answered":
        """Return what is before the length of the body, and what is after it."""
        kind, *others = headers
        before = STATUS_LINE[status] + _lines((*always, kind))
        return cls(status, always, headers, before, _lines(others) + b"\r\n")


def _lines(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    return b"".join([b"%b: %b\r\n" % each for each in headers])


class _HttptoolsProtocol(HttpToolsProtocol):
    """One connection."""

    limits: ConnectionLimits
    _request_timer: RequestTimer
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
    _shortcut: Shortcut
    _single_writes: SingleWrites
    _first = b""
    """What came with the first bytes of a request, until its head is read."""
    _held = b""
    """What came of a request like one before, of which some of the body is yet to come."""
    _taken: Scope | None = None
    """What the request is like that was taken and is not answered."""
    _answered = _Answered()
    _turned: Any = None
    """What the last one of them is answered by that has become a request as any other."""
    _current: Any = None
    """What the last request is answered by that was begun; others may wait behind it."""
    _is_deaf = False
    """Whether nothing more is taken, since something that came could not be."""

    def connection_made(self, transport: Any) -> None:  # noqa: ANN401 - as the base class has it
        """Expect a request."""
        self._single_writes = SingleWrites(transport, self.loop.call_soon)
        super().connection_made(self._single_writes)  # pyright: ignore[reportArgumentType]
        self._request_timer = RequestTimer(self, self.limits, self._refuse)
        self._request_timer.begin()
        self._shortcut = Shortcut()
        own = {Presence.KEY: self._request_timer.presence, Shortcut.KEY: self._shortcut}
        self.app_state = {**self.app_state, **own}

    def data_received(self, data: bytes) -> None:
        """Take some of a request: as one that is like one before, or else the usual way."""
        if self._taken is not None:
            self.usual()
        held, self._held = self._held, b""
        data = held + data
        if self._shortcut and self._is_between():
            found = self._shortcut.find(data)
            if found is not None and self._cuts_short(found, data, can_wait=not held):
                return
        self._take(data)

    def _is_between(self) -> bool:
        """Whether what comes next is a request, and nothing else is under way."""
        cycle: Any = self.cycle
        is_at_rest = self._in_head and not self._beside and not self.flow.write_paused
        return is_at_rest and (cycle is None or cycle.response_complete) and not self.pipeline

    def _cuts_short(self, found: Found, data: bytes, *, can_wait: bool) -> bool:
        """Have a request that is like one before be taken, or wait once for what is missing."""
        size, body = len(data), found.body
        if size < body.end:
            if can_wait:
                self._held = data
                self._unset_keepalive_if_required()
                self._request_timer.expect()
            return can_wait
        if size > body.end or len(self.connections) >= (self.limit_concurrency or size):
            return False
        self._taken = found.scope
        if not found.take(data[body.start :], self):
            self._taken = None
            return False
        self._unset_keepalive_if_required()
        self._request_timer.expect_nothing()
        return True

    @property
    def presence(self) -> Presence:
        """Whether the client is there."""
        return self._request_timer.presence

    @property
    def is_taken(self) -> bool:
        """Whether the request that was taken can be answered in one piece."""
        return self._taken is not None

    def answer(self, status: int, headers: Headers, body: bytes) -> None:
        """Answer the request that was taken, in one piece."""
        self._taken = None
        if not self.transport.is_closing():
            self._single_writes.write_whole(self._head(status, headers, body), body)
        self.on_response_complete()

    def _head(self, status: int, headers: Headers, body: bytes) -> bytes:
        always = self.server_state.default_headers
        answered = self._answered
        # What is said each time is another list in another second.
        is_again = answered.always is always and answered.headers is headers
        if not is_again or answered.status != status:
            answered = self._answered = _Answered.by(status, always, headers)
        return b"%bcontent-length: %d\r\n%b" % (answered.before, len(body), answered.after)

    def usual(self) -> Send:
        """Have the request that was taken be one as any other; return what it is answered by."""
        scope: Any = self._taken
        if scope is not None:
            self._taken = None
            self.cycle = self._turned = self._current = RequestResponseCycle(
                scope=scope,
                transport=self.transport,
                flow=self.flow,
                logger=self.logger,
                access_logger=self.access_logger,
                access_log=self.access_log,
                default_headers=self.server_state.default_headers,
                message_event=asyncio.Event(),
                expect_100_continue=False,
                keep_alive=True,
                on_response=self.on_response_complete,
            )
            # It was taken only once it was whole.
            super().on_message_complete()
        # What has come behind it since has one of its own.
        send: Send = self._turned.send
        return send

    def shutdown(self) -> None:
        """Close the connection once what has come is answered."""
        if self._taken is not None:
            self.usual()
        elif self._held:
            held, self._held = self._held, b""
            self._take(held)
        super().shutdown()

    def _take(self, data: bytes) -> None:
        """Take some of a request, unless its head is too long, and see whether it is whole."""
        if self._is_deaf:
            return
        self._first = data if self._is_between() else b""
        if self._in_head:
            self._beside += self._size_in_head(data)
            if self._beside > MAX_HEAD_BYTES:
                self._refuse(TOO_LARGE)
                return
        self._has_body = False
        self._unset_keepalive_if_required()
        try:
            self._read(data)
        except httptools.HttpParserError:
            self.send_400_response("Invalid HTTP request received.")
            return
        if self._is_whole:
            self._request_timer.expect_nothing()
        else:
            self._request_timer.expect()
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
                self._refuse(TOO_LARGE)

    def send_400_response(self, msg: str) -> None:
        """Say that what came is no request, unless that would stand before or in an answer."""
        if self._leaves_answers():
            return
        if self._is_answering():
            self.transport.close()
        else:
            super().send_400_response(msg)

    def _refuse(self, answer: bytes) -> None:
        """Close the connection, and say why unless that would stand before or in an answer."""
        if self._leaves_answers():
            return
        if not self._is_answering():
            self.transport.write(answer)
        self.transport.close()

    def _leaves_answers(self) -> bool:
        """Take no more, and say whether it is closed once the requests before that are answered."""
        self._is_deaf = True
        self._request_timer.expect_nothing()
        cycle: Any = self.cycle
        if self.pipeline and cycle.more_body:
            # What was to be taken no further is the body of the last.
            self.pipeline.popleft()
            cycle = self.cycle = self.pipeline[0][0] if self.pipeline else self._current
        if cycle is None or cycle.response_complete or cycle.more_body:
            return False
        super().shutdown()
        return True

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:  # noqa: ANN401 - as the base class has it
        """Begin to answer a request."""
        self._current = cycle
        super()._start_asgi_task(cycle, app)

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
            # httptools leaves off only what stands before a value.
            super().on_header(name, value.rstrip(BLANKS))

    def on_headers_complete(self) -> None:
        """Go on with its body."""
        if self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT":
            self._again = self._without_offer()
            return
        if len(self.pipeline) >= MAX_AHEAD:
            raise httptools.HttpParserError("too many requests ahead")
        super().on_headers_complete()
        self._in_head, self._beside, self._last = False, 0, b""
        first, self._first = self._first, b""
        head = Head.of(first) if first and self.cycle.keep_alive else None
        if head is not None:
            scope: Any = self.scope
            scope["state"][Offer.KEY] = Offer(self._shortcut, head)

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
        if self._taken is not None:
            self.usual()
        self._held = b""
        self._shortcut.forget()
        super().connection_lost(exc)
        self._request_timer.end()

    def _is_answering(self) -> bool:
        cycle: Any = self.cycle
        if cycle is None or not cycle.response_started:
            return False
        # What has been answered before it was whole is answered once.
        return not (cycle.response_complete and self._in_head)
