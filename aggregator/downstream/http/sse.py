"""Server-sent events, taken apart as bytes: what is in them is JSON, which is read as bytes too."""

import re
from codecs import BOM_UTF8
from collections.abc import Generator, Iterable, Iterator
from itertools import chain
from typing import NamedTuple

import httpx2

END = b""
"""What stands for the end of a stream."""
MAX_RETRY_DIGITS = 9
"""Digits of a pause that are read: more would be years."""
SMALL = 4096
"""Bytes from which on a piece is worth being kept by itself."""
LINES_AT_ONCE = 200
"""Lines after which others have their turn: each may be an event, and none needs to be long."""
PART = 4096
"""Bytes of a piece that are cut into lines at once, where it may have very many."""


_ONE = re.compile(rb"(?:event: message\r?\n)?(?:id: [^\r\n\0]*\r?\n)?data: ([^\r\n]+)\r?\n\r?\n")
"""A piece that is one message as nearly all servers write it, and nothing else."""


class Event(NamedTuple):
    """One event of a stream."""

    data: bytes = b""
    kind: str = "message"
    id: str = ""
    """The last that the stream has named, with this event or before it."""
    retry: int | None = None
    """Milliseconds to wait before the stream is opened again."""


def only_message(piece: bytes, limit: int) -> bytes:
    """Return the data of the message that a stream begins with, if it is all of a piece."""
    # Where its end is yet to come, all of it would be looked through in vain.
    is_whole = len(piece) <= limit and piece.endswith(b"\n")
    found = _ONE.fullmatch(piece) if is_whole else None
    return b"" if found is None else found[1]


class Reader:
    """Makes events of the pieces that a stream comes in."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rest: list[bytes] = []
        """What has come of a line that is not complete."""
        self._rest_size = 0
        self._size = 0
        """Bytes of the lines of an event that is not complete."""
        self._data: list[bytes] = []
        self._kind = ""
        self._id = ""
        self._retry: int | None = None
        self._says_something = False
        self._has_begun = False
        """Whether a line has been read: a mark of its encoding may be before the first."""

    def feed(self, piece: bytes) -> Generator[Event | None, None, None]:
        """Give the events that are complete with a piece, or with the end.

        Nothing stands for a moment in which others can have their turn.

        Raises:
            SSEError: One of them is too long.
        """
        for number, line in enumerate(self._lines(piece), start=1):
            if not number % LINES_AT_ONCE:
                yield None
            if not line:
                self._size = 0
                if self._says_something:
                    yield self._event()
            elif not line.startswith(b":"):
                self._size += len(line)
                self._check(self._size)
                self._take(line)
        self._check(self._size + self._rest_size)

    def _lines(self, piece: bytes) -> Iterable[bytes]:
        """Give the lines that are complete, without their ends."""
        if len(piece) <= PART:
            return self._cut(piece)
        return chain.from_iterable(map(self._cut, _parts(piece)))

    def _cut(self, piece: bytes) -> list[bytes]:
        if piece:
            self._rest.append(piece)
            self._rest_size += len(piece)
            if b"\n" not in piece and b"\r" not in piece:
                self._gather()
                return []
        *whole, rest = _between_breaks(self._rest)
        lines = [each for line in whole for each in _returned(line)]
        if b"\r" in rest:
            *more, last = rest.split(b"\r")
            # The other half of a line break may be in the next piece.
            rest = last if last or not piece else more.pop() + b"\r"
            lines += more
        if rest and not piece:
            lines.append(rest)
        self._rest, self._rest_size = [rest], len(rest)
        if lines and not self._has_begun:
            self._has_begun = True
            lines[0] = lines[0].removeprefix(BOM_UTF8)
        return lines

    def _gather(self) -> None:
        """Make one of the last two pieces if they are small: each costs more than what is in it."""
        if len(self._rest) > 1 and len(self._rest[-2]) < SMALL:
            *_, one, other = self._rest
            self._rest[-2:] = [one + other]

    def _take(self, line: bytes) -> None:
        # A line may be the whole of a long message, so it is copied once.
        colon = line.find(b":")
        end = len(line) if colon < 0 else colon
        name = line[:end]
        value = line[end + (2 if line.startswith(b" ", end + 1) else 1) :]
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._kind = value.decode(errors="replace")
        elif name == b"id" and b"\0" not in value:
            self._id = value.decode(errors="replace")
        elif name == b"retry" and value.isdigit() and len(value) <= MAX_RETRY_DIGITS:
            self._retry = int(value)
        else:
            return
        self._says_something = True

    def _event(self) -> Event:
        event = Event(b"\n".join(self._data), self._kind or "message", self._id, self._retry)
        self._data, self._kind, self._retry = [], "", None
        self._says_something = False
        return event

    def _check(self, size: int) -> None:
        if size > self._limit:
            raise httpx2.SSEError(f"an event has more than {self._limit:,} bytes")


def _parts(piece: bytes) -> Iterator[bytes]:
    """Give a piece as it is, or in parts if it may have very many lines."""
    first = [at for each in (b"\n", b"\r") if (at := piece.find(each)) >= 0]
    if not first or max(map(piece.rfind, (b"\n", b"\r"))) - min(first) <= PART:
        yield piece
        return
    for start in range(0, len(piece), PART):
        yield piece[start : start + PART]


def _between_breaks(pieces: list[bytes]) -> list[bytes]:
    """Return what stands between line breaks, of which there are none but in the last piece.

    A long line comes in many pieces, so it is neither looked through nor copied more than once.
    """
    *before, piece = pieces or [END]
    end = piece.find(b"\n")
    if end < 0:
        return [b"".join(pieces)]
    first = b"".join((*before, piece[:end].removesuffix(b"\r")))
    # The other half of its break may have been the end of the piece before.
    first = first.removesuffix(b"\r") if end == 0 else first
    last = piece.rfind(b"\n")
    between = piece[end + 1 : last].split(b"\n") if last > end else []
    return [first, *(line.removesuffix(b"\r") for line in between), piece[last + 1 :]]


def _returned(line: bytes) -> list[bytes]:
    """Return the lines of which each but the last ends in a mere return, as may be."""
    return line.split(b"\r") if b"\r" in line else [line]
