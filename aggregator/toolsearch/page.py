"""The matches of a search in the characters there are for them.

The best stand in full, the next as one-line signatures, the rest as names.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from aggregator.catalog import ToolEntry
from aggregator.exposure import Way
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
from aggregator.toolsearch.parameters import Detail

MAX_DEFINED = 20
"""Matches whose definition is tried for size."""
DEFINED_SHARE = 0.6
"""The part of a page for definitions before the matches after them have their signatures."""


@dataclass(frozen=True, slots=True)
class Page:
    """What is said of each match, and which of them are defined by it."""

    texts: Mapping[ToolName, str]
    defined: tuple[ToolEntry, ...]


def lay_out(matches: Sequence[ToolEntry], way: Callable[[ToolEntry], Way], room: int) -> Page:
    """Give each match as much text as there is room for."""
    return _in_full(matches, way, room) or _Layout(matches, way, room).page()


def _in_full(
    matches: Sequence[ToolEntry], way: Callable[[ToolEntry], Way], room: int
) -> Page | None:
    """Define every match in full, if there is room."""
    texts: dict[ToolName, str] = {}
    for entry in matches:
        texts[entry.name] = definition(entry, way(entry), FULL, room)
        room -= len(texts[entry.name]) + 2
        if room < 0:
            return None
    return Page(texts, tuple(matches))


class _Layout:
    """A page that cannot have everything, while it is filled."""

    def __init__(
        self, matches: Sequence[ToolEntry], way: Callable[[ToolEntry], Way], room: int
    ) -> None:
        self._matches = matches
        self._way = way
        self._room = room
        self._texts = {entry.name: f"- {entry.name}" for entry in matches}
        self._left = room - sum(len(text) + 2 for text in self._texts.values())
        self._defined: set[ToolName] = set()

    def page(self) -> Page:
        """Define the best, sign the next, then spend what is left on the best again."""
        best = self._matches[:MAX_DEFINED]
        for entry in best[:1]:
            self._put(entry, squeezed(entry, self._way(entry), self._left, SMALL))
            self._defined.add(entry.name)
        self._define(best[1:], COMPACT, kept=int(self._room * (1 - DEFINED_SHARE)))
        for entry in self._matches:
            if entry.name not in self._defined:
                self._put(entry, signature(entry))
        self._define([each for each in best if each.name not in self._defined], COMPACT)
        self._define(self._define(best, MEDIUM), FULL)
        defined = tuple(entry for entry in self._matches if entry.name in self._defined)
        return Page(self._texts, defined)

    def _define(
        self, entries: Sequence[ToolEntry], detail: Detail, kept: int = 0
    ) -> list[ToolEntry]:
        """Define the entries for which there is room, and return them."""
        done: list[ToolEntry] = []
        for entry in entries:
            room = self._left + len(self._texts[entry.name]) - kept
            if self._put(entry, definition(entry, self._way(entry), detail, room), kept):
                done.append(entry)
        self._defined.update(entry.name for entry in done)
        return done

    def _put(self, entry: ToolEntry, text: str, kept: int = 0) -> bool:
        """Replace what is said of a match, if then at least what is kept is left."""
        left = self._left - len(text) + len(self._texts[entry.name])
        if left < kept:
            return False
        self._texts[entry.name] = text
        self._left = left
        return True
