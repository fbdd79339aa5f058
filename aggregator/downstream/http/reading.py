"""How a response is taken apart: the usual form at once, whatever else by h11.

Nearly every response is a head in one piece, with one length or in chunks. That is read here by
what it may consist of and nothing more; what differs in any way is left to h11 from its first
byte on, which knows all there is, and takes ten times as long.
"""

import re
from typing import NamedTuple, Protocol

import h11
import httpx2

MAX_HEAD_BYTES = 100 * 1024
"""Bytes that the head of a response may have, a line between two chunks, or what is after them."""
MAX_HEADERS = 256
"""Headers that a response may have: nobody sends as many, and each takes time that others wait."""
MAX_INTERIM = 16
"""Responses that may come before the one that counts."""
SWITCHING = 101
CRLF = b"\r\n"

Lines = list[tuple[bytes, bytes]]


class TooMuchError(httpx2.RemoteProtocolError):
    """An answer with more before it than anybody is to read."""


class Head(NamedTuple):
    """What a response says before its body."""

    status: int
    headers: dict[str, str]
    """By their names in lower case; of those that are there twice, all values."""
    lines: bytes | Lines
    """The headers as they came."""
    size: int = 0
    """Bytes of all of it, where that is known."""

    def raw(self) -> Lines:
        """Return the headers one by one, as they came."""
        if not isinstance(self.lines, bytes):
            return self.lines
        split = (line.partition(b":") for line in self.lines.split(CRLF)[:-1])
        return [(name, value.strip()) for name, _, value in split]


class Reading(Protocol):
    """The body of one response, in whatever form it comes."""

    @property
    def is_over(self) -> bool:
        """Whether it has been read to its end."""
        ...

    def feed(self, data: bytes) -> None:
        """Take what came next; nothing stands for the end of the connection.

        Raises:
            RemoteProtocolError: The body is not over.
        """
        ...

    def take(self) -> bytes:
        """Return some of the body; nothing if it is over, or more has to come.

        Raises:
            RemoteProtocolError: What came is not HTTP.
        """
        ...

    def can_go_on(self) -> bool:
        """Whether another request can be sent on the connection once the body is over."""
        ...


def usual(data: bytes) -> tuple[Head, Reading] | None:
    """Read a response of which the head is there, if it has the usual form."""
    match = _HEAD.match(data)
    if match is None or match.end() > MAX_HEAD_BYTES:
        return None
    headers = _usual_headers(match[2].decode("latin-1"))
    if headers is None or int(match[1]) in _WITHOUT_BODY:
        return None
    head = Head(int(match[1]), headers, match[2], match.end())
    reading = body_of(head, data[head.size :])
    return reading and (head, reading)


def _usual_headers(lines: str) -> dict[str, str] | None:
    headers: dict[str, str] = {}
    for name, value in _LINE.findall(lines):
        key, said = name.lower(), value.strip(" \t")
        if key in headers:
            if key in _ONCE:
                return None
            said = f"{headers[key]}, {said}"
        headers[key] = said
    is_kept = headers.get("connection", KEPT).lower() == KEPT and "upgrade" not in headers
    return headers if is_kept else None


def body_of(head: Head, data: bytes) -> "_Sized | _Chunked | None":
    """Return what reads the body behind a head, if that has the usual form."""
    headers = head.headers
    length, coding = headers.get("content-length"), headers.get("transfer-encoding")
    if coding is None and length is not None and _LENGTH.fullmatch(length):
        return _Sized(int(length), data)
    return _Chunked(data) if length is None and coding == "chunked" else None


KEPT = "keep-alive"
_ONCE = frozenset(("content-length", "transfer-encoding", "connection"))
_WITHOUT_BODY = (204, 304)
_HEAD = re.compile(
    rb"HTTP/1\.1 ([2-5][0-9][0-9])(?: [\t -~\x80-\xff]*)?\r\n"
    rb"((?:[!#$%%&'*+.^_`|~0-9A-Za-z-]+:[\t -~\x80-\xff]*\r\n){1,%d})\r\n" % MAX_HEADERS
)
_LINE = re.compile(r"([^:\r]+):([^\r]*)\r\n")
_LENGTH = re.compile(r"[0-9]{1,15}", re.ASCII)
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[\t -~\x80-\xff]*)?\r\n")
_TRAILER = re.compile(rb"(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t -~\x80-\xff]*\r\n)*\r\n")


class _Sized:
    """A body of so many bytes."""

    def __init__(self, left: int, data: bytes) -> None:
        self._left = left
        self._data = data

    @property
    def is_over(self) -> bool:
        return not self._left

    def feed(self, data: bytes) -> None:
        if not data:
            raise _ended()
        self._data = data

    def take(self) -> bytes:
        data, self._data = self._data, b""
        if len(data) > self._left:
            data, self._data = data[: self._left], data[self._left :]
        self._left -= len(data)
        return data

    def can_go_on(self) -> bool:
        return not self._data


class _Chunked:
    """A body in chunks, each after its length."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        """Up to where what came has been read."""
        self._left = 0
        """Bytes of a chunk that are yet to come."""
        self._is_within = False
        """Whether the end of a chunk is yet to come."""
        self._is_last = False
        """Whether there is no chunk any more, but perhaps something after them."""
        self._is_over = False

    @property
    def is_over(self) -> bool:
        return self._is_over

    def feed(self, data: bytes) -> None:
        if not data:
            raise _ended()
        self._data, self._at = self._data[self._at :] + data, 0

    def take(self) -> bytes:
        while self._left or self._begin():
            if self._left:
                piece = self._data[self._at : self._at + self._left]
                self._at += len(piece)
                self._left -= len(piece)
                return piece
        return b""

    def _begin(self) -> bool:
        """Go on with the next chunk, or to the end; say whether all of that has come."""
        if self._is_over:
            return False
        if self._is_last:
            return self._end()
        if self._is_within:
            if len(self._data) < self._at + len(CRLF):
                return False
            if not self._data.startswith(CRLF, self._at):
                raise httpx2.RemoteProtocolError("a chunk does not end where it was to")
            self._at += len(CRLF)
            self._is_within = False
        if (match := self._next(_CHUNK, self._data.find(CRLF, self._at))) is None:
            return False
        self._left = int(match[1], 16)
        self._is_within, self._is_last = self._left > 0, not self._left
        return True

    def _end(self) -> bool:
        at, data = self._at, self._data
        end = at if data.startswith(CRLF, at) else data.find(CRLF * 2, at)
        self._is_over = self._next(_TRAILER, end) is not None
        return False

    def _next(self, form: re.Pattern[bytes], end: int) -> re.Match[bytes] | None:
        """Read what has a form, if its end is there."""
        if end < 0:
            if len(self._data) - self._at > MAX_HEAD_BYTES:
                raise httpx2.RemoteProtocolError("what is between chunks is too long")
            return None
        if (match := form.match(self._data, self._at)) is None:
            raise httpx2.RemoteProtocolError("what is between chunks is none")
        self._at = match.end()
        return match

    def can_go_on(self) -> bool:
        return self._at == len(self._data)


class Unusual:
    """A response of any form, read by h11."""

    def __init__(self, request: h11.Request, data: bytes) -> None:
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD_BYTES)
        # It has been written; of the event, only that there was such a request matters.
        self._http.send(request)
        self._http.send(h11.EndOfMessage())
        self._is_over = False
        self._interim = 0
        self.feed(data)

    @property
    def is_over(self) -> bool:
        """Whether the body has been read to its end."""
        return self._is_over

    def feed(self, data: bytes) -> None:
        """Take what came next; nothing stands for the end of the connection."""
        try:
            self._http.receive_data(data)
        except h11.RemoteProtocolError as error:
            raise httpx2.RemoteProtocolError(str(error)) from error

    def head(self) -> Head | None:
        """Return the head once it is there.

        Raises:
            RemoteProtocolError: What came is not HTTP.
        """
        while (event := self._head_event()) is not None:
            if isinstance(event, h11.Response):
                lines = [(bytes(name), bytes(value)) for name, value in event.headers.raw_items()]
                return Head(event.status_code, _joined(lines), lines)
            if not isinstance(event, h11.InformationalResponse) or event.status_code == SWITCHING:
                raise httpx2.RemoteProtocolError("it does not answer what it was asked")
            self._interim += 1
            if self._interim > MAX_INTERIM:
                raise TooMuchError(f"it announced itself more than {MAX_INTERIM} times")
        return None

    def take(self) -> bytes:
        """Return some of the body; nothing if it is over, or more has to come."""
        event = None if self._is_over else self._event()
        if isinstance(event, h11.Data):
            return bytes(event.data)
        self._is_over = self._is_over or isinstance(event, h11.EndOfMessage)
        return b""

    def can_go_on(self) -> bool:
        """Whether neither side means to close, and nothing came that was not asked for."""
        is_done = self._http.our_state is h11.DONE and self._http.their_state is h11.DONE
        return is_done and not self._http.trailing_data[0]

    def _head_event(self) -> h11.Event | None:
        """Return the next head, counted before it is read: h11 takes long for each header."""
        data, _ = self._http.trailing_data
        ends = [at for blank in (b"\n\r\n", b"\n\n") if (at := data.find(blank)) >= 0]
        if data.count(b"\n", 0, min(ends, default=len(data))) > MAX_HEADERS:
            raise TooMuchError(f"it has more than {MAX_HEADERS} headers")
        return self._event()

    def _event(self) -> h11.Event | None:
        try:
            event = self._http.next_event()
        except h11.RemoteProtocolError as error:
            raise httpx2.RemoteProtocolError(str(error)) from error
        if event is h11.NEED_DATA:
            return None
        if not isinstance(event, h11.Event) or isinstance(event, h11.ConnectionClosed):
            raise httpx2.RemoteProtocolError("it sends more than it was asked for")
        return event


def _joined(lines: Lines) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in lines:
        key, said = name.decode("latin-1").lower(), value.decode("latin-1")
        headers[key] = f"{headers[key]}, {said}" if key in headers else said
    return headers


def _ended() -> httpx2.RemoteProtocolError:
    return httpx2.RemoteProtocolError("it closed the connection before the end of its answer")
