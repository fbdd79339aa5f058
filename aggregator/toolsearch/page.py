"""The matches of a search in the characters there are for them.

The best stand in full, the next as one-line signatures, and where there is no room for those as
names.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from typing import NamedTuple

from aggregator.basics.effort import Effort
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
    unshortened,
)
from aggregator.toolsearch.parameters import Detail
from aggregator.toolsearch.wording import CUT

MAX_DEFINED = 20
"""Matches whose definition is tried for size."""
DEFINED_SHARE = 0.6
"""The part of a page for definitions before the matches after them have their signatures."""
LARGEST_PART = 4
"""The part of the effort there is that one tool may take from all after it: one in so many."""


class Page(NamedTuple):
    """What is said of each match, and which of them are defined by it."""

    texts: Mapping[ToolName, str]
    defined: tuple[ToolEntry, ...]


def lay_out(
    matches: Sequence[ToolEntry],
    way: Callable[[ToolEntry], Way],
    room: int,
    leading: Container[ToolName] | None = None,
    asked: Container[ToolName] = (),
) -> Page:
    """Give each match as much text as there is room for; where some lead, the others a line.

    What was asked for by name is told in all its words, where everything is told in full.
    """
    effort = Effort()
    best = [each for each in matches if leading is None or each.name in leading]
    in_full = _in_full(matches, best, way, room, effort.part(3))
    if in_full is None:
        return _Layout(matches, best, way, room, effort).page()
    return _in_all_words(in_full, [each for each in best if each.name in asked], way, room, effort)


def _in_all_words(
    page: Page,
    asked: Sequence[ToolEntry],
    way: Callable[[ToolEntry], Way],
    room: int,
    effort: Effort,
) -> Page:
    """Tell what was asked for without cutting it short, as far as there is room."""
    texts = dict(page.texts)
    room -= sum(len(text) + 2 for text in texts.values())
    cut = [entry for entry in asked if CUT in texts[entry.name]]
    for entry in cut:
        there = room + len(texts[entry.name])
        part = _part(effort, cut)
        text = unshortened(entry, way(entry), there, part, partly=len(cut) == 1)
        if text is not None:
            texts[entry.name], room = text, there - len(text)
    return Page(texts, page.defined)


def _in_full(
    matches: Sequence[ToolEntry],
    best: Sequence[ToolEntry],
    way: Callable[[ToolEntry], Way],
    room: int,
    effort: Effort,
) -> Page | None:
    """Define the best in full and sign the others, if there is room."""
    texts: dict[ToolName, str] = {}
    defined = {entry.name for entry in best}
    for entry in matches:
        part = _part(effort, matches)
        if entry.name in defined:
            texts[entry.name] = definition(entry, way(entry), FULL, room, part)
        else:
            texts[entry.name] = signature(entry, part)
        room -= len(texts[entry.name]) + 2
        if room < 0:
            return None
    return Page(texts, tuple(best))


def _part(effort: Effort, sharing: Sequence[ToolEntry]) -> Effort:
    """Return what one tool may take of an effort from all after it."""
    return effort.part(min(len(sharing), LARGEST_PART))


class _Layout:
    """A page that cannot have everything, while it is filled."""

    def __init__(
        self,
        matches: Sequence[ToolEntry],
        best: Sequence[ToolEntry],
        way: Callable[[ToolEntry], Way],
        room: int,
        effort: Effort,
    ) -> None:
        self._matches = matches
        self._best = best[:MAX_DEFINED]
        self._way = way
        self._room = room
        self._signing, self._defining = effort.part(2), effort.part(2)
        self._texts = {entry.name: f"- {entry.name}" for entry in matches}
        self._left = room - sum(len(text) + 2 for text in self._texts.values())
        self._defined: set[ToolName] = set()

    def page(self) -> Page:
        """Define the best, sign the next, then spend what is left on the best again."""
        best = self._best
        for entry in best[:1]:
            self._put(entry, self._squeezed(entry))
            self._defined.add(entry.name)
        self._define(best[1:], COMPACT, kept=int(self._room * (1 - DEFINED_SHARE)))
        others = [entry for entry in self._matches if entry.name not in self._defined]
        for left, entry in zip(range(len(others), 0, -1), others, strict=True):
            self._put(entry, signature(entry, self._signing.part(left)))
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
            if entry.name in self._defined and CUT not in self._texts[entry.name]:
                # More detail would say the same.
                done.append(entry)
                continue
            room = self._left + len(self._texts[entry.name]) - kept
            effort = _part(self._defining, entries)
            text = definition(entry, self._way(entry), detail, room, effort)
            # What is told in part is no better than what is told already.
            if not effort.is_spent and self._put(entry, text, kept):
                done.append(entry)
        self._defined.update(entry.name for entry in done)
        return done

    def _squeezed(self, entry: ToolEntry) -> str:
        effort = _part(self._defining, self._matches)
        return squeezed(entry, self._way(entry), self._left, effort, SMALL)

    def _put(self, entry: ToolEntry, text: str, kept: int = 0) -> bool:
        """Replace what is said of a match, if then at least what is kept is left."""
        left = self._left - len(text) + len(self._texts[entry.name])
        if left < kept:
            return False
        self._texts[entry.name] = text
        self._left = left
        return True
