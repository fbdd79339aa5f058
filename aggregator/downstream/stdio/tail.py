"""Keep the last bytes of a stream, and show them as lines that are safe to print."""

from collections.abc import Mapping

from aggregator.secrecy import without_secrets

KEPT_BYTES = 32 * 1024
"""Bytes kept of what a child writes to its standard error."""

SHOWN_CHARACTERS = 2000
"""Characters shown of one line."""

SHORTEST_SECRET = 6
"""Characters a value must have to be hidden; shorter ones occur by chance in any text."""


class Tail:
    """The end of a stream, as raw bytes."""

    def __init__(self, limit: int = KEPT_BYTES) -> None:
        self._limit = limit
        self._kept = bytearray()
        self._cut = False

    def add(self, chunk: bytes) -> None:
        """Append, and forget what no longer fits."""
        self._kept += chunk
        if len(self._kept) > self._limit:
            del self._kept[: -self._limit]
            self._cut = True

    def add_line(self, line: bytes) -> None:
        """Append a line of its own, also where the one before has not ended."""
        begun = bool(self._kept) and not self._kept.endswith(b"\n")
        self.add(b"\n" * begun + line + b"\n")

    def lines(self) -> list[str]:
        """Return the last lines; the first is left out if its beginning is lost."""
        lines = self._kept.decode(errors="replace").splitlines()
        return lines[1:] if self._cut else lines


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
