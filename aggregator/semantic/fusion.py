"""One ranking of two: by the words of a query, and by what it means."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import nlargest

from aggregator.catalog import ToolEntry
from aggregator.names import ToolName
from aggregator.search import Hit, Keywords
from aggregator.search.words import stem, words

WEIGHT = 0.55
"""What meaning counts for, of 1; the rest is for the words."""
NEAREST = 100
"""Tools that may be found by their meaning alone."""
DISTANT = 0.25
"""The likeness below which a tool that has none of the words is no answer at all."""


@dataclass(frozen=True)
class Roster:
    """Every tool there is, in the order of its vectors."""

    entries: tuple[ToolEntry, ...] = ()

    @cached_property
    def places(self) -> Mapping[ToolName, int]:
        """Where each tool stands."""
        return {entry.name: place for place, entry in enumerate(self.entries)}


@dataclass(frozen=True, slots=True)
class Nearness:
    """How near each tool is to the meaning of one query."""

    roster: Roster
    likeness: Sequence[int]
    scale: int
    """What a likeness of 1 is written as."""

    def of(self, entry: ToolEntry) -> int | None:
        """Return the likeness of one tool, if it is known."""
        place = self.roster.places.get(entry.name)
        return None if place is None else self.likeness[place]

    def nearest(self, size: int, servers: Sequence[str] = ()) -> list[ToolEntry]:
        """Return the tools that are near enough, nearest first, of some servers or of all."""
        least = DISTANT * self.scale
        entries, likeness = self.roster.entries, self.likeness
        wanted = {_plain(server) for server in servers}
        near = [
            place
            for place, value in enumerate(likeness)
            if value >= least and (not wanted or _plain(entries[place].server) in wanted)
        ]
        return [entries[place] for place in nlargest(size, near, key=likeness.__getitem__)]


def fuse(query: Keywords, hits: Sequence[Hit], near: Nearness, limit: int) -> list[Hit]:
    """Rank what the words found together with what the meaning found, best first."""
    found = {hit.entry.name: hit for hit in hits}
    # What must have a word, or words side by side, has been found by them.
    if not query.required and not query.phrases:
        for entry in near.nearest(NEAREST, query.servers):
            found.setdefault(entry.name, Hit(entry, 0.0))
    scored = _scored(list(found.values()), near)
    exact = _exact(query, hits)
    ordered = sorted(scored, key=lambda hit: (hit.entry.name not in exact, -hit.score))
    return ordered[:limit]


def _scored(hits: Sequence[Hit], near: Nearness) -> list[Hit]:
    """Return hits with a weighted sum of both scores, each as a part of its best."""
    most = max((hit.score for hit in hits), default=0.0) or 1.0
    # What all tools of a catalog have in common with a query tells none of them apart.
    usual = sum(near.likeness) / max(1, len(near.likeness))
    reach = max(near.likeness, default=0) - usual or 1.0
    return [
        Hit(
            hit.entry,
            (1 - WEIGHT) * hit.score / most
            + WEIGHT * max(0.0, (near.of(hit.entry) or 0) - usual) / reach,
            hit.why,
        )
        for hit in hits
    ]


def _exact(query: Keywords, hits: Sequence[Hit]) -> frozenset[ToolName]:
    """Return the tools whose whole name the query is, in any order and any form of its words."""
    asked = sorted(map(stem, words(query.text)))
    return frozenset(
        hit.entry.name
        for hit in hits
        if asked in (_stems(hit.entry.own_name), _stems(f"{hit.entry.server} {hit.entry.own_name}"))
    )


def _stems(name: str) -> list[str]:
    return sorted(map(stem, words(name)))


def _plain(server: str) -> str:
    """Return the name of a server without what people forget of it."""
    return "".join(each for each in server.casefold() if each.isalnum())
