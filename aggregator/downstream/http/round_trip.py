"""A request there and its answer back on a kept connection, without a task that waits.

Nearly every answer is one body, or the first event of a stream. That is read where it comes; what
differs in any way is left, from its first byte on, to whoever reads all there is.
"""

from http import HTTPStatus
from typing import Protocol

import httpx2
from mcp_types import JSONRPCError, JSONRPCResponse

from aggregator.downstream.http.endpoint import Asked
from aggregator.downstream.http.post import EVENTS, JSON
from aggregator.downstream.http.reading import Head, Reading, body_of, usual
from aggregator.downstream.http.sse import Reader, only_message
from aggregator.jsonrpc.decoding import decoded_at_once

SMALL_BYTES = 16 * 1024
"""Bytes of a response that is read here in whatever pieces: each may be one of its own."""
MOST_BYTES = 4 * 1024 * 1024
"""Bytes of a response that is read here at all."""
MOST_PIECES = 4096
"""Pieces in which it may come, and of which it may consist: to keep one takes memory too."""
PIECES_AT_ONCE = 200
"""Pieces of a response that is not small for which others wait at once."""
MOST_KNOWN_BYTES = 4 * 1024
"""Bytes of a head that is kept to be known again."""

_ASIDE = ("location", "set-cookie", "content-encoding")
"""Headers that somebody else has to heed."""

Answer = JSONRPCResponse | JSONRPCError


class Owner(Protocol):
    """Whom a trip is made for."""

    def wants(self, trip: "RoundTrip", answer: Answer, /) -> bool:
        """Whether an answer is to what was asked."""
        ...

    def arrived(self, trip: "RoundTrip", answer: Answer, /) -> None:
        """Take the answer."""
        ...

    def stranded(self, trip: "RoundTrip", /) -> None:
        """Read the response in another way."""
        ...

    def ended(self, trip: "RoundTrip", /) -> None:
        """Take the connection back."""
        ...


class KnownHead:
    """How the responses of one server begin, of which the last is known again."""

    def __init__(self) -> None:
        self._raw = b""
        self._head: Head | None = None
        self._has_events = False

    def read(self, came: bytes) -> tuple[Reading, bool]:
        """Return what reads the body behind a head, and whether that is a stream.

        Raises:
            _UnusualError: It is nothing that can be read here.
        """
        if self._head is not None and came.startswith(self._raw):
            reading = body_of(self._head, came[len(self._raw) :])
            if reading is not None:
                return reading, self._has_events
        found = usual(came)
        if found is None:
            raise _UnusualError
        head, reading = found
        has_events = _has_events(head)
        if head.size <= MOST_KNOWN_BYTES:
            self._raw, self._head, self._has_events = came[: head.size], head, has_events
        return reading, has_events


class RoundTrip:
    """One request on its way, and what has come of its response."""

    def __init__(self, asked: Asked, limit: int, owner: Owner, known_head: KnownHead) -> None:
        self.asked = asked
        self._known_head = known_head
        self._limit = limit
        self._owner = owner
        self._came: list[bytes | OSError] = []
        self._size = 0
        self._reading: Reading | None = None
        self._has_events = False
        self._events: Reader | None = None
        """What reads a stream that is more than one message in one piece."""
        self._body: list[bytes] = []
        self._body_size = 0
        self._is_answered = False

    def begin(self) -> None:
        """Listen to what comes back, unless the request was not taken whole."""
        if not self.asked.connection.listen(self.hear):
            self._strand()

    def stop(self) -> None:
        """Hear nothing more."""
        self.asked.connection.listen_no_more()

    def cancel(self) -> None:
        """Wait no more."""
        self.stop()
        self._owner.ended(self)

    def hear(self, came: bytes | OSError) -> bool:
        """Take what came next; say whether the answer is still to come."""
        if self._is_answered:
            self._read_out(came)
            return False
        self._came.append(came)
        try:
            answer = self._read(came)
        except (_UnusualError, httpx2.HTTPError):
            self._strand()
            return False
        if answer is None:
            return True
        if self._owner.wants(self, answer):
            self._is_answered, self._came, self._body, self._size = True, [], [], 0
            self.asked.connection.read_by(self._reading)
            self._owner.arrived(self, answer)
        else:
            self._strand()
        return False

    @property
    def is_over(self) -> bool:
        """Whether the response has been read to its end."""
        return self._reading is not None and self._reading.is_over

    def _strand(self) -> None:
        """Leave the response to somebody else, as if nothing of it had been read."""
        self.stop()
        self.asked.connection.leave_ahead(self._came)
        self._owner.stranded(self)

    def _read(self, came: bytes | OSError) -> Answer | None:
        """Return the answer once it is there.

        Raises:
            _UnusualError: It is none that could be read here.
            HTTPError: What came is not HTTP, or no stream of events.
        """
        if isinstance(came, OSError) or not came:
            raise _UnusualError
        self._size += len(came)
        is_small = self._size <= SMALL_BYTES
        if self._size > MOST_BYTES or len(self._came) > MOST_PIECES:
            raise _UnusualError
        reading = self._fed(came)
        pieces: list[bytes] = []
        while piece := reading.take():
            pieces.append(piece)
            if len(pieces) > PIECES_AT_ONCE and not is_small:
                raise _UnusualError
        body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        return self._in_events(body) if self._has_events else self._in_body(body)

    def _fed(self, came: bytes) -> Reading:
        if self._reading is not None:
            self._reading.feed(came)
            return self._reading
        self._reading, self._has_events = self._known_head.read(came)
        return self._reading

    def _in_body(self, body: bytes) -> Answer | None:
        self._body.append(body)
        self._body_size += len(body)
        if self._body_size > self._limit:
            raise _UnusualError
        return _answer(b"".join(self._body), self._limit) if self.is_over else None

    def _in_events(self, body: bytes) -> Answer | None:
        if self._events is None:
            if data := only_message(body, self._limit):
                return _answer(data, self._limit)
            self._events = Reader(self._limit) if body else None
        for event in () if self._events is None else self._events.feed(body):
            if event is None:
                raise _UnusualError
            if event.data:
                return _answer(event.data, self._limit)
        if self.is_over:
            raise _UnusualError
        return None

    def _read_out(self, came: bytes | OSError) -> None:
        """Skip what is behind the answer, if it is little: only at its end a connection is kept."""
        reading = self._reading
        self._size += 0 if isinstance(came, OSError) else len(came)
        if reading is None or isinstance(came, OSError) or self._size > SMALL_BYTES:
            self.cancel()
            return
        try:
            reading.feed(came)
            while reading.take():
                pass
        except httpx2.HTTPError:
            self.cancel()
            return
        if reading.is_over:
            self._owner.ended(self)


class _UnusualError(Exception):
    """A response that is not read here."""


def _has_events(head: Head) -> bool:
    """Whether a response that can be read here is a stream.

    Raises:
        _UnusualError: It cannot.
    """
    headers = head.headers
    if head.status != HTTPStatus.OK or any(name in headers for name in _ASIDE):
        raise _UnusualError
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in (JSON, EVENTS):
        raise _UnusualError
    return kind == EVENTS


def _answer(data: bytes, limit: int) -> Answer:
    """Return the answer that some data is.

    Raises:
        _UnusualError: It is none, something else is beside it, or others have their turns while
            it is taken apart.
    """
    found = decoded_at_once(data, limit) or ()
    message = found[0] if len(found) == 1 else None
    if not isinstance(message, JSONRPCResponse | JSONRPCError):
        raise _UnusualError
    return message
