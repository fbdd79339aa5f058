"""The matches of a search in the characters there are for them.

The best stand in full, the next as one-line signatures, the rest as names.
"""

from collections.abc import Callable, Sequence

from aggregator.catalog import ToolEntry
from aggregator.names import ToolName
from aggregator.toolsearch.describe import (
    COMPACT,
    FULL,
    MEDIUM,
    SMALL,
    definition,
    signature,
    squeezed,
)
from aggregator.toolsearch.view import Call

MAX_DEFINED = 20
"""Matches whose definition is tried for size."""
DEFINED_SHARE = 0.6
"""The part of a page for definitions before the matches after them have their signatures."""


class Page:
    """What each match says, filled best first."""

    def __init__(self, matches: Sequence[ToolEntry], call: Callable[[ToolEntry], Call]) -> None:
        self._matches = matches
        self._call = call
        self._texts = {entry.name: f"- {entry.name}" for entry in matches}
        self._defined: set[ToolName] = set()
        self._left = 0

    @property
    def defined(self) -> tuple[ToolEntry, ...]:
        """The matches whose definition is on the page."""
        return tuple(entry for entry in self._matches if entry.name in self._defined)

    def text(self, entry: ToolEntry) -> str:
        """Return what the page says of a match."""
        return self._texts[entry.name]

    def fill(self, room: int) -> None:
        """Give each match as much text as there is room for."""
        self._left = room - sum(len(text) + 2 for text in self._texts.values())
        best = self._matches[:MAX_DEFINED]
        for entry in best[:1]:
            self._define(entry, squeezed(entry, self._call(entry), self._left, SMALL))
        kept = int(room * (1 - DEFINED_SHARE))
        for entry in best[1:]:
            self._define(entry, definition(entry, self._call(entry), COMPACT), kept)
        for entry in self._matches:
            if entry.name not in self._defined:
                self._put(entry, signature(entry))
        for detail in (COMPACT, MEDIUM, FULL):
            for entry in best:
                self._define(entry, definition(entry, self._call(entry), detail))

    def _define(self, entry: ToolEntry, text: str, kept: int = 0) -> None:
        if self._put(entry, text, kept):
            self._defined.add(entry.name)

    def _put(self, entry: ToolEntry, text: str, kept: int = 0) -> bool:
        """Replace what is said of a match, if what then is left is at least what is kept."""
        left = self._left - len(text) + len(self._texts[entry.name])
        if left < kept:
            return False
        self._texts[entry.name] = text
        self._left = left
        return True
