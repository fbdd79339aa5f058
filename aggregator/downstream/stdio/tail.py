"""Keep the last bytes of a stream, and show them as lines that are safe to print."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from aggregator.downstream.transport import Line
from aggregator.secrecy import without_secrets

KEPT_BYTES = 32 * 1024
"""Bytes kept of what a child writes to its standard error."""

SHOWN_CHARACTERS = 2000
"""Characters shown of one line."""

SHORTEST_SECRET = 6
"""Characters a value must have to be hidden; shorter ones occur by chance in any text."""


@dataclass(slots=True)
class _Part:
    """Bytes that came from one place without a break."""

    kept: bytearray
    is_noise: bool = False


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
        lines = [
            Line(text, part.is_noise)
            for part in self._parts
            for text in part.kept.decode(errors="replace").splitlines()
        ]
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


class Redaction:
    """Hides the values that a child was given, and what looks like a secret of anybody."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        hidden = [(value, name) for name, value in secrets.items() if len(value) >= SHORTEST_SECRET]
        # The longest first, or a value that contains another would show its rest.
        self._hidden = sorted(hidden, key=lambda pair: len(pair[0]), reverse=True)

    def __call__(self, text: str) -> str:
        """Return the text with each value replaced by its name."""
        for value, name in self._hidden:
            text = text.replace(value, f"[{name}]")
        return without_secrets(text)
