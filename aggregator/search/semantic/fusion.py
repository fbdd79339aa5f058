"""One ranking of two: by the words of a query, and by what it means."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import nlargest
from math import prod

from aggregator.catalog import ToolEntry
from aggregator.names import ServerName, ToolName
from aggregator.search import Contribution, Hit, Index, Keywords
from aggregator.search.analysis import Document
from aggregator.search.copies import alike
from aggregator.search.origins import Suspicion

WEIGHT = 0.64
"""What meaning counts for, of 1, where words say nothing; the rest is for the words."""
SURENESS = 0.22
"""How much less it counts for where one tool has all the words of the query."""
CANDIDATES = 48
"""Tools found by words that are ranked again; further down nothing is left to gain."""
NEAREST = 32
"""Tools that may be found by their meaning alone."""
DISTANT = 0.25
"""The likeness below which a tool that has none of the words is no answer at all."""

FEW = 5
"""The places of which the first of either ranking always has one."""
POOL = 32
"""Tools, of those left, from which the next one is picked."""
TOP = 3
"""The places that are read with most trust."""
SECOND = 0.95
"""What is left of a score for another tool of a server among those."""
FREE = 2
"""Tools of one server that are shown before the next ones count less in any place."""
CROWDING = 0.97
"""What is left of a score for each further tool of a server."""
ECHO = 0.3
"""What is left for the others of a server that has shown a tool which repeats the query."""
TWIN = 0.3
"""What is left of a score for each copy that was shown before."""
CLOSE = 0.65
"""The part of a score that a copy has at least."""

Suspect = Callable[[Document], Suspicion]
"""What speaks against a tool being the original."""


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

    def most(self, without: Collection[ServerName] = ()) -> int:
        """Return the likeness of the nearest tool, but for those of some servers."""
        if not without:
            return max(self.likeness, default=0)
        both = zip(self.roster.entries, self.likeness, strict=True)
        return max((value for entry, value in both if entry.server not in without), default=0)

    def first(self, hits: Iterable[Hit]) -> list[Hit]:
        """Return the nearest of some hits, if it is near enough."""
        near = [hit for hit in hits if (self.of(hit.entry) or 0) >= DISTANT * self.scale]
        return sorted(near, key=lambda hit: -(self.of(hit.entry) or 0))[:1]

    def nearest(self, size: int, servers: Sequence[str] = ()) -> list[ToolEntry]:
        """Return the tools that are near enough, nearest first, of some servers or of all."""
        likeness, entries = self.likeness, self.roster.entries
        least = DISTANT * self.scale
        near = [place for place, value in enumerate(likeness) if value >= least]
        if servers:
            wanted = {_plain(server) for server in servers}
            near = [place for place in near if _plain(entries[place].server) in wanted]
        return [entries[place] for place in nlargest(size, near, key=likeness.__getitem__)]


def rank(index: Index, query: Keywords, near: Nearness, limit: int) -> list[Hit]:
    """Return the tools that answer a query best, by its words and by its meaning, best first."""
    hits = index.rank(query, max(limit, CANDIDATES))
    known = {hit.entry.name for hit in hits}
    others = [entry for entry in within_reach(query, near) if entry.name not in known]
    return fuse(query, hits + index.weigh(query, others), near, limit, index.suspicion)


def fuse(
    query: Keywords, hits: Sequence[Hit], near: Nearness, limit: int, suspicion: Suspect
) -> list[Hit]:
    """Rank what the words found together with what the meaning found, best first.

    Hits of the words come first, then those that are only near. Of those that say the same, the
    one is shown against which least speaks.
    """
    found = {hit.entry.name: hit for hit in hits}
    blend = _blend(hits, near)
    scored = [replace(hit, score=sum(blend.parts(hit))) for hit in found.values()]
    scored.sort(key=lambda hit: -hit.score)
    nearest = [] if _demands_words(query) else near.first(found.values())
    firsts = {hit.entry.name for hit in (*hits[:1], *nearest)}
    # A tool that the query names comes first, whatever the query may mean besides.
    named = {hit.entry.name for hit in hits[:1] if hit.called}
    order = {name: at for at, name in enumerate(found)}
    ranked = _spread(scored, order, named, limit, suspicion)
    late = [hit for hit in scored if hit.entry.name in firsts and hit not in ranked[:FEW]]
    shown = _admitted(ranked, late, firsts)[: max(0, limit)]
    return [replace(hit, why=blend.why(found[hit.entry.name])) for hit in shown]


def within_reach(query: Keywords, near: Nearness) -> list[ToolEntry]:
    """Return the tools that may be found by their meaning alone."""
    # Filters of words have been applied by whoever found the hits.
    return [] if _demands_words(query) else near.nearest(NEAREST, query.servers)


def _admitted(ranked: list[Hit], late: list[Hit], kept: set[ToolName]) -> list[Hit]:
    """Let what either ranking has first be among the first few, in place of their last."""
    head = ranked[:FEW]
    for hit in late if len(head) == FEW else ():
        leaving = [each for each in head if each.entry.name not in kept][-1:]
        head = [each for each in head if each not in leaving] + [hit] * len(leaving)
    return head + [hit for hit in ranked if hit not in head]


def _spread(
    hits: Sequence[Hit],
    order: Mapping[ToolName, int],
    named: set[ToolName],
    limit: int,
    suspicion: Suspect,
) -> list[Hit]:
    """Pick the best one by one; what a server or a text has shown before counts less."""
    left = list(hits)
    picked: list[Hit] = []
    doubts = _Doubts(hits)
    while left and len(picked) < limit:
        first = [hit for hit in left if hit.entry.name in named] if not picked else []
        pool = first or _pool(left)
        best = _freshest(pool, picked, doubts)
        chosen = _original(best, pool, order, suspicion)
        left.remove(chosen)
        picked.append(chosen)
    return picked


def _original(
    best: Hit, pool: Sequence[Hit], order: Mapping[ToolName, int], suspicion: Suspect
) -> Hit:
    """Return what is shown for all that say the same."""
    same = [hit for hit in pool if hit is best or _is_copy(hit, best)]
    first = min(same, key=lambda hit: order[hit.entry.name])
    # Who copies a tool leaves its name as it is, or adds to it.
    named = [hit for hit in same if hit.document.named <= first.document.named]
    return min(named, key=lambda hit: (suspicion(hit.document), order[hit.entry.name]))


def _pool(left: Sequence[Hit]) -> list[Hit]:
    """Return the best of those left, and of one server no more than half of so many."""
    counts = Counter[ServerName]()
    pool: list[Hit] = []
    for hit in left:
        counts[hit.entry.server] += 1
        if counts[hit.entry.server] <= POOL // 2:
            pool.append(hit)
        if len(pool) == POOL:
            break
    return pool


def _is_copy(hit: Hit, other: Hit) -> bool:
    """Tell whether two hits say nearly the same, and so are worth nearly the same."""
    return hit.score >= CLOSE * other.score and _repetition(hit, other) < 1


def _freshest(pool: Sequence[Hit], picked: Sequence[Hit], doubts: "_Doubts") -> Hit:
    """Return what is worth most after all that has been picked."""
    chosen, most = pool[0], -1.0
    for hit in pool:
        if hit.score <= most:
            break
        worth = hit.score * _freshness(hit, picked, doubts)
        if worth > most:
            chosen, most = hit, worth
    return chosen


def _freshness(hit: Hit, picked: Sequence[Hit], doubts: "_Doubts") -> float:
    """Return what is left of a score after what its server and its text have shown."""
    beside = [each for each in picked if each.entry.server == hit.entry.server]
    fresh = prod(_repetition(hit, each) for each in picked)
    doubted = doubts.concern(hit, is_first=not beside)
    return fresh * ECHO**doubted * _room(len(beside), len(picked))


class _Doubts:
    """Servers that have written tools for requests."""

    def __init__(self, hits: Sequence[Hit]) -> None:
        self._echoing = {hit.entry.server for hit in hits if hit.echo}
        self._stuffing = {hit.entry.server for hit in hits if hit.stuffed}

    def concern(self, hit: Hit, *, is_first: bool) -> bool:
        """Tell whether a hit counts less: who has a tool for each request has one place."""
        if hit.entry.server in self._stuffing:
            return True
        return hit.entry.server in self._echoing and not (is_first and hit.echo)


def _room(beside: int, before: int) -> float:
    """Return what is left of a score after so many tools of its server, and of all servers."""
    second = bool(beside) and before < TOP
    return SECOND**second * CROWDING ** max(0, beside - FREE)


def _repetition(hit: Hit, other: Hit) -> float:
    """Return what is left of a score after a tool that says nearly the same, 1 if none does."""
    one, two = hit.document, other.document
    if one.signature == two.signature:
        return TWIN
    # Who repeats the query looks like every tool that answers it.
    if hit.entry.server != other.entry.server and (hit.echo or other.echo):
        return 1.0
    return TWIN if alike(one, two) else 1.0


def _demands_words(query: Keywords) -> bool:
    """Whether only what the words found will do; in a long request quotes are around values."""
    spoken = any(2 * len(phrase.split()) >= len(query.terms) for phrase in query.phrases)
    return spoken or bool(query.required)


@dataclass(frozen=True, slots=True)
class _Blend:
    """A weighted sum of both scores, each as a part of its best."""

    near: Nearness
    weight: float
    most: float
    usual: float
    reach: float

    def parts(self, hit: Hit) -> tuple[float, float]:
        """Return what words and meaning are worth for a hit of the words."""
        likeness = self.near.of(hit.entry) or 0
        words = (1 - self.weight) * min(1.0, hit.score / self.most)
        return words, self.weight * min(1.0, max(0.0, likeness - self.usual) / self.reach)

    def why(self, hit: Hit) -> tuple[Contribution, ...]:
        """Return the same as an explanation."""
        words, meaning = self.parts(hit)
        return Contribution("", "", "words", words), Contribution("", "", "meaning", meaning)


def _blend(hits: Sequence[Hit], near: Nearness) -> _Blend:
    # What all tools of a catalog have in common with a query tells none of them apart.
    usual = sum(near.likeness) / max(1, len(near.likeness))
    # Who repeats the query is no measure for the others.
    echoing = {hit.entry.server for hit in hits if hit.echo}
    plain = [hit for hit in hits if hit.entry.server not in echoing] or hits
    # The more of the query is in one tool, the less there is to guess.
    sure = min(1.0, max((hit.part for hit in plain), default=0.0))
    nearest = near.most(echoing)
    return _Blend(
        near,
        weight=WEIGHT - SURENESS * sure,
        most=max((hit.score for hit in plain), default=0.0) or 1.0,
        usual=usual,
        reach=(nearest if nearest > usual else near.most()) - usual or 1.0,
    )


def _plain(server: str) -> str:
    """Return the name of a server without what people forget of it."""
    return "".join(each for each in server.casefold() if each.isalnum())
