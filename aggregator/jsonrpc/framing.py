"""Cut a stream of bytes into lines, in linear time and bounded memory.

Every byte comes from a process that nobody vouches for: an over-long line is dropped while it
streams by, and only its two ends are kept, so that the request it answers can still be found.
"""

from typing import NamedTuple

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

KEPT_BYTES = 1024
"""Bytes kept of each end of an over-long line."""


class Overlong(NamedTuple):
    """A line that was longer than the limit, with its two ends."""

    head: bytes
    """Its first bytes, without what may stand before a message."""
    tail: bytes
    size: int
    """Bytes the line had, without its line break."""


class Framing:
    """Turns chunks into lines; how the bytes were chunked makes no difference."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._partial = bytearray()
        self._head = b""
        self._size = 0

    def only_line(self, chunk: bytes) -> bytes | None:
        """Return the line that the next bytes are, if they are one and nothing else."""
        end = chunk.find(b"\n")
        is_one = end == len(chunk) - 1 and not self._size and end <= self._limit
        return _trimmed(chunk) if is_one else None

    def feed(self, chunk: bytes) -> list[bytes | Overlong]:
        """Take the next bytes; return the lines they complete, without blank ones."""
        # Most often a line comes by itself, and whole.
        if (line := self.only_line(chunk)) is not None:
            return [line] if line else []
        end = chunk.find(b"\n")
        if end < 0:
            self._grow(chunk)
            return []
        self._grow(chunk[:end])
        found = [self._complete()]
        *rest, last = chunk[end + 1 :].split(b"\n")
        if len(chunk) <= self._limit:
            found.extend(map(_trimmed, rest))
        else:
            found.extend(map(self._whole, rest))
        self._grow(last)
        return [line for line in found if line]

    def finish(self) -> list[bytes | Overlong]:
        """Return what the stream ended with, if it did not end with a line break."""
        line = self._complete()
        return [line] if line else []

    @property
    def size(self) -> int:
        """Bytes that a line which has not ended has had so far."""
        return self._size

    def _grow(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= self._limit:
            self._partial += piece
            return
        if not self._head:
            self._head = bytes(self._partial[:KEPT_BYTES])
            self._partial = self._partial[-KEPT_BYTES:]
        self._head += piece[: KEPT_BYTES - len(self._head)]
        self._partial += piece[-KEPT_BYTES:]
        del self._partial[:-KEPT_BYTES]

    def _complete(self) -> bytes | Overlong:
        partial, head, size = self._partial, self._head, self._size
        self._partial, self._head, self._size = bytearray(), b"", 0
        if size > self._limit:
            return Overlong(_trimmed(head), bytes(partial), size)
        return _trimmed(bytes(partial))

    def _whole(self, line: bytes) -> bytes | Overlong:
        if len(line) > self._limit:
            return Overlong(_trimmed(line[:KEPT_BYTES]), line[-KEPT_BYTES:], len(line))
        return _trimmed(line)


def _trimmed(line: bytes) -> bytes:
    # strip() is a no-op without a copy for the usual line, which has nothing to strip.
    return line.strip().removeprefix(BYTE_ORDER_MARK).lstrip()
