"""How near tools are to what a query means."""

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from heapq import nlargest
from typing import NamedTuple

from aggregator.basics.frozen import frozen
from aggregator.catalog import ToolEntry
from aggregator.names import ServerName, ToolName


@frozen(slots=False)
class Roster:
    """Every tool there is, in the order of its vectors."""

    entries: tuple[ToolEntry, ...] = ()

    @cached_property
    def places(self) -> Mapping[ToolName, int]:
        """Where each tool stands."""
        return {entry.name: place for place, entry in enumerate(self.entries)}


class Nearness(NamedTuple):
    """How near each tool is to the meaning of one query."""

    roster: Roster
    likeness: Sequence[int]
    scale: int
    """What a likeness of 1 is written as."""

    def of(self, entry: ToolEntry) -> int:
        """Return the likeness of one tool; of one that has no vector yet nothing is known."""
        place = self.roster.places.get(entry.name)
        return 0 if place is None else self.likeness[place]

    @property
    def usual(self) -> float:
        """What all tools have in common with the query, which tells none of them apart."""
        return sum(self.likeness) / max(1, len(self.likeness))

    def among(self, entries: Mapping[ToolName, ToolEntry]) -> "Nearness":
        """Return how near these tools are, as if there were no others."""
        places = self.roster.places
        known = [(each, places[each.name]) for each in entries.values() if each.name in places]
        own = [
            (each, self.likeness[place])
            for each, place in known
            if self.roster.entries[place].server == each.server
        ]
        return Nearness(
            Roster(tuple(each for each, _ in own)), [value for _, value in own], self.scale
        )

    def most(self, without: Collection[ServerName] = ()) -> int:
        """Return the likeness of the nearest tool, but for those of some servers."""
        if not without:
            return max(self.likeness, default=0)
        both = zip(self.roster.entries, self.likeness, strict=True)
        return max((value for entry, value in both if entry.server not in without), default=0)

    def nearest(
        self, size: int, least: float, among: Collection[ToolName] | None = None
    ) -> list[ToolEntry]:
        """Return the tools that are near enough, nearest first, of some or of all."""
        likeness, entries = self.likeness, self.roster.entries
        bar = least * self.scale
        near = [place for place, value in enumerate(likeness) if value >= bar]
        if among is not None:
            near = [place for place in near if entries[place].name in among]
        return [entries[place] for place in nlargest(size, near, key=likeness.__getitem__)]
