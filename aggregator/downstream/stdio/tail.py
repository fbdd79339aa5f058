"""Keep the last bytes of a stream, and show what it says as lines that are safe to print."""

from collections import deque
from dataclasses import dataclass

from aggregator.downstream.transport import Line

KEPT_BYTES = 32 * 1024
"""Bytes kept of what a child writes to its standard error."""

SHOWN_CHARACTERS = 2000
"""Characters shown of one line."""


@dataclass(slots=True)
class _Part:
    """Bytes that came from one place without a break."""

    kept: bytearray
    is_noise: bool = False

    def lines(self) -> list[Line]:
        """Return what is kept as lines; one of standard output is whole, whatever stands in it."""
        text = self.kept.decode(errors="replace")
        return [Line(text, is_noise=True)] if self.is_noise else list(map(Line, text.splitlines()))


class Lines:
    """Whole lines of a stream that comes in chunks, so that no secret is seen in halves.

    Of each chunk, and of each line, only the beginning is looked at.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._begun = b""

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take the next bytes; return the lines that they complete."""
        last = max(chunk.rfind(b"\n"), chunk.rfind(b"\r")) + 1
        if not last:
            self._begun = (self._begun + chunk)[: self._limit]
            return []
        found = (self._begun + chunk[: min(last, self._limit)])[: 2 * self._limit].splitlines()
        self._begun = chunk[last : last + self._limit]
        return found

    def finish(self) -> list[bytes]:
        """Return what the stream ended with, if that was no line break."""
        return [self._begun] if self._begun else []


class Tail:
    """The end of what a child writes besides its messages, as raw bytes."""

    def __init__(self, limit: int = KEPT_BYTES) -> None:
        self._limit = limit
        self._parts = deque[_Part]()
        self._size = 0
        self._cut = False

    def add(self, chunk: bytes) -> None:
        """Append some bytes of standard error, and forget what no longer fits."""
        if not self._parts or self._parts[-1].is_noise:
            self._parts.append(_Part(bytearray()))
        self._parts[-1].kept += chunk
        self._forget(len(chunk))

    def add_noise(self, line: bytes) -> None:
        """Append a line of standard output, also where the one before has not ended."""
        if not line:
            return
        self._parts.append(_Part(bytearray(line), is_noise=True))
        self._forget(len(line))

    def lines(self) -> list[Line]:
        """Return the last lines; the first is left out if its beginning is lost."""
        lines = [line for part in self._parts for line in part.lines()]
        return lines[1:] if self._cut else lines

    def _forget(self, added: int) -> None:
        self._size += added
        while self._size > self._limit:
            oldest = self._parts[0].kept
            excess = min(self._size - self._limit, len(oldest))
            del oldest[:excess]
            self._size -= excess
            self._cut = bool(oldest)
            if not oldest:
                self._parts.popleft()


def printable(line: str) -> str:
    """Escape everything that could move a cursor, change a colour or hide text."""
    shown = line if len(line) <= SHOWN_CHARACTERS else f"{line[:SHOWN_CHARACTERS]}…"
    if shown.isprintable():
        return shown
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in shown
    )
