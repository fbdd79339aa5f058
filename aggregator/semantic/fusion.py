"""One ranking of two: by the words of a query, and by what it means."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import nlargest
from itertools import takewhile

from aggregator.catalog import ToolEntry
from aggregator.names import ToolName
from aggregator.search import Hit, Keywords
from aggregator.search.words import stem, words

WEIGHT = 0.58
"""What meaning counts for, of 1; the rest is for the words."""
CANDIDATES = 64
"""Tools found by words that are ranked again; further down nothing is left to gain."""
NEAREST = 100
"""Tools that may be found by their meaning alone."""
DISTANT = 0.25
"""The likeness below which a tool that has none of the words is no answer at all."""

FEW = 5
"""The places of which the first of either ranking always has one."""
POOL = 32
"""Tools, of those left, from which the next one is picked."""
FREE = 2
"""Tools of one server that are shown before the next ones count less."""
CROWDING = 0.97
"""What is left of a score for each further tool of a server."""
TWIN = 0.3
"""What is left of a score for each copy that was shown before."""
LONGEST_NAME = 12
"""Words beyond which a query is a sentence, and no name is looked for in it."""
LONG = 4
"""Letters a word must have to be recognised with one of them wrong."""


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
    # Filters of words have been applied by whoever found the hits.
    nearest = [] if _demands_words(query) else near.nearest(NEAREST, query.servers)
    found = {hit.entry.name: hit for hit in hits}
    for entry in nearest:
        found.setdefault(entry.name, Hit(entry, 0.0))
    scored = sorted(_scored(list(found.values()), near), key=lambda hit: -hit.score)
    exact = _exact(query, hits)
    named = [hit for hit in scored if hit.entry.name in exact]
    others = [hit for hit in scored if hit.entry.name not in exact]
    ranked = named + _spread(others, limit - len(named))
    firsts = frozenset(each.name for each in (*(hit.entry for hit in hits[:1]), *nearest[:1]))
    late = [hit for hit in scored if hit.entry.name in firsts and hit not in ranked[:FEW]]
    return _admitted(ranked, late, firsts | exact)[: max(0, limit)]


def _admitted(ranked: list[Hit], late: list[Hit], kept: frozenset[ToolName]) -> list[Hit]:
    """Let what either ranking has first be among the first few, in place of their last."""
    head = ranked[:FEW]
    for hit in late if len(head) == FEW else ():
        leaving = [each for each in head if each.entry.name not in kept][-1:]
        head = [each for each in head if each not in leaving] + [hit] * len(leaving)
    return head + [hit for hit in ranked if hit not in head]


def _spread(hits: Sequence[Hit], limit: int) -> list[Hit]:
    """Pick the best one by one; what a server or a text has shown before counts less."""
    left, shown = list(hits), Counter[object]()
    picked: list[Hit] = []
    while left and len(picked) < limit:
        chosen = max(left[:POOL], key=lambda hit: hit.score * _freshness(hit.entry, shown))
        left.remove(chosen)
        picked.append(chosen)
        shown.update((chosen.entry.server, _text(chosen.entry)))
    return picked


def _freshness(entry: ToolEntry, shown: Counter[object]) -> float:
    crowd = max(0, shown[entry.server] - FREE)
    return CROWDING**crowd * TWIN ** shown[_text(entry)]


def _text(entry: ToolEntry) -> tuple[str, str]:
    """Return what copies of a tool have in common, whatever their servers are called."""
    return entry.own_name.casefold(), entry.description


def _demands_words(query: Keywords) -> bool:
    """Whether only what the words found will do; in a long request quotes are around values."""
    spoken = any(2 * len(phrase.split()) >= len(query.terms) for phrase in query.phrases)
    return spoken or bool(query.required)


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
    asked = words(query.text)
    if len(asked) > LONGEST_NAME:
        return frozenset()
    return frozenset(
        hit.entry.name
        for hit in hits
        if _is_name(asked, words(hit.entry.own_name))
        or _is_name(asked, words(f"{hit.entry.server} {hit.entry.own_name}"))
    )


def _is_name(asked: Sequence[str], name: Sequence[str]) -> bool:
    """Whether words are those of a name, one of them misspelt at the most."""
    if len(asked) != len(name):
        return False
    left = {stem(word): word for word in name}
    strange = [word for word in asked if left.pop(stem(word), None) is None]
    # The model takes a misspelt word for another, which words alone do not.
    return not strange or (
        len(strange) == len(left) == 1 and _is_misspelt(strange[0], *left.values())
    )


def _is_misspelt(word: str, meant: str) -> bool:
    """Whether one letter is wrong, missing or too many, or two have changed places."""
    start = _agreement(word, meant)
    end = _agreement(word[start:][::-1], meant[start:][::-1])
    wrong, right = word[start : len(word) - end], meant[start : len(meant) - end]
    swapped = len(right) == len("ab") and wrong == right[::-1]
    return len(meant) >= LONG and (swapped or max(len(wrong), len(right)) <= 1)


def _agreement(one: str, other: str) -> int:
    """Return how many letters two words have in common at their beginning."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _plain(server: str) -> str:
    """Return the name of a server without what people forget of it."""
    return "".join(each for each in server.casefold() if each.isalnum())
