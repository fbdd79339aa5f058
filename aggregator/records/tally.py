"""What the lines of stats come to: calls, searches and what lists have saved."""

import json
import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from math import ceil
from typing import Any, NamedTuple

from aggregator.basics.json import is_plain_object, items
from aggregator.records.events import FINE
from aggregator.search.habits import Lesson

REMEMBERED = 20
"""Queries of a session that a call may follow from."""
LEAST_RANK = 3
"""A place that is good enough: a model reads that many."""


class Use(NamedTuple):
    """How a tool, or all tools of a server, were used."""

    name: str
    server: str
    calls: int
    errors: int
    p50: float | None
    """Milliseconds; nothing if no call came to an end."""
    p95: float | None


class Followed(NamedTuple):
    """A query, and which of what it found was called first, at which rank."""

    query: str
    tool: str
    rank: int


class Searches(NamedTuple):
    """What was searched for, and what came of it."""

    queries: int = 0
    hits: int = 0
    """Queries that found something."""
    followed: tuple[Followed, ...] = ()
    """Those of which something was called."""
    nothing: tuple[tuple[str, int], ...] = ()
    """What found nothing, and how often, the most frequent first."""
    tokens: int = 0
    """What all answers cost."""


class Lists(NamedTuple):
    """How much shorter lists were than all there is."""

    served: int = 0
    weighed: int = 0
    """Those that were served when it was known what there is, at least in part."""
    tokens: int = 0
    """By how much these were, together; less than nothing if our own tools cost more."""
    partial: int = 0
    """Those of the weighed that were served while servers were missing."""

    def with_one(self, listed: int, of: int | None, missing: int = 0) -> "Lists":
        """Return the same with one more list, served while so many servers were missing."""
        if of is None:
            return self._replace(served=self.served + 1)
        return Lists(
            self.served + 1,
            self.weighed + 1,
            self.tokens + int(of) - int(listed),
            self.partial + bool(missing),
        )


class Day(NamedTuple):
    """What was counted on one day, by the clock of this machine."""

    date: str
    calls: int = 0
    errors: int = 0
    queries: int = 0
    saved: int = 0
    """Tokens that lists were shorter by."""
    cost: int = 0
    """Tokens of answers to searches."""

    def __add__(self, other: object) -> "Day":
        """Return the same day with more counted."""
        if not isinstance(other, Day):
            return NotImplemented
        return Day(self.date, *(a + b for a, b in zip(self[1:], other[1:], strict=True)))


class Tally(NamedTuple):
    """All that was counted."""

    calls: int
    errors: int
    unknown: int
    """Calls of tools that do not exist."""
    tools: tuple[Use, ...]
    """By calls, the most used first."""
    servers: tuple[Use, ...]
    searches: Searches
    lists: Lists
    first: float | None
    """When the first of it happened."""
    lost: int
    """Events that were too many to be written."""
    damaged: int
    """Lines that cannot be read."""
    days: tuple[Day, ...] = ()
    """Those on which something happened, the first of them first."""


class _Call(NamedTuple):
    at: float
    session: str
    server: str
    tool: str
    outcome: str
    milliseconds: float

    @property
    def is_error(self) -> bool:
        return self.outcome not in FINE


class _Query(NamedTuple):
    at: float
    session: str
    query: str
    found: tuple[str, ...]
    others: int
    """What else it found: prompts, skills, resources."""
    offset: int

    @property
    def is_hit(self) -> bool:
        return bool(self.found or self.others)


class _Read:
    """What lines say, sorted by what they tell of."""

    def __init__(
        self, lines: Iterable[str], file: str, since: float, profile: str | None = None
    ) -> None:
        self._profile = profile
        """Whose lines are read; everybody's if it is not said."""
        self.calls: list[_Call] = []
        self.queries: list[_Query] = []
        self.search_tokens = 0
        self.lists = Lists()
        self.first: float | None = None
        self.lost = 0
        self.damaged = 0
        self.days: dict[str, Day] = {}
        for text in lines:
            try:
                self._read(text, file, since)
            except (ValueError, TypeError, KeyError, RecursionError):
                # A line is torn where the disk was full, or the machine went off.
                self.damaged += bool(text.strip())

    def _read(self, text: str, file: str, since: float) -> None:
        line: object = json.loads(text)
        if not is_plain_object(line):
            raise TypeError(text)
        at = float(line["at"])
        if line["file"] != file or at < since:
            return
        if self._profile is not None and line.get("profile", "") != self._profile:
            return
        self.first = at if self.first is None else min(at, self.first)
        match line["event"]:
            case "call":
                call = _call(line, at)
                self.calls.append(call)
                self._add(at, calls=1, errors=int(call.is_error))
            case "search":
                queries, tokens = list(_queries(line, at)), int(line["tokens"])
                self.queries.extend(queries)
                self.search_tokens += tokens
                self._add(at, queries=len(queries), cost=tokens)
            case "list":
                before = self.lists.tokens
                self.lists = self.lists.with_one(
                    line["tokens"], line["of"], int(line.get("missing", 0))
                )
                self._add(at, saved=self.lists.tokens - before)
            case "lost":
                self.lost += int(line["count"])
            case _:
                # Of a later version.
                pass

    def _add(self, at: float, **counts: int) -> None:
        date = time.strftime("%Y-%m-%d", time.localtime(at))
        self.days[date] = self.days.get(date, Day(date)) + Day(date, **counts)


def tally(lines: Iterable[str], file: str, since: float = 0.0) -> Tally:
    """Sum up what was counted of one configuration from a time on."""
    read = _Read(lines, file, since)
    known = [call for call in read.calls if call.tool]
    nothing = Counter(each.query for each in read.queries if not (each.is_hit or each.offset))
    searches = Searches(
        len(read.queries),
        sum(each.is_hit for each in read.queries),
        tuple(_followed(read.queries, read.calls)),
        tuple(nothing.most_common()),
        read.search_tokens,
    )
    return Tally(
        len(read.calls),
        sum(call.is_error for call in read.calls),
        sum(call.outcome == "unknown-tool" for call in read.calls),
        tuple(_uses((call.tool, call.server, call) for call in known)),
        tuple(_uses((call.server, call.server, call) for call in read.calls if call.server)),
        searches,
        read.lists,
        read.first,
        read.lost,
        read.damaged,
        tuple(day for _, day in sorted(read.days.items())),
    )


def lessons(lines: Iterable[str], file: str, profile: str = "") -> list[Lesson]:
    """Return what was called after which query, with success, in the order it happened.

    What clients of another profile do teaches nothing: they may see other tools.
    """
    read = _Read(lines, file, 0.0, profile)
    # What has a filter or names a tool asks for it, and so finds it.
    return [
        Lesson(query.query, call.tool, call.session)
        for query, call in _pairs(read.queries, read.calls)
        if not call.is_error and call.outcome != "cancelled" and ":" not in query.query
    ]


def proposed(found: Tally) -> list[Followed]:
    """Return what each query should find and within which rank, the most frequent first."""
    times = Counter((each.query, each.tool) for each in found.searches.followed)
    ranks = defaultdict[tuple[str, str], int](int)
    for query, tool, rank in found.searches.followed:
        ranks[query, tool] = max(ranks[query, tool], rank)
    # What begins with a filter or names a tool asks for it, and so finds it.
    plain = [pair for pair, _ in times.most_common() if ":" not in pair[0]]
    asked = Counter(query for query, _ in plain)
    return [
        Followed(query, tool, max(ranks[query, tool], LEAST_RANK))
        for query, tool in plain
        if asked[query] == 1
    ]


def percentile(ordered: Sequence[float], part: float) -> float:
    """Return the smallest value that so large a part of all does not exceed."""
    return ordered[max(0, ceil(part * len(ordered)) - 1)] if ordered else 0.0


def _uses(calls: Iterable[tuple[str, str, _Call]]) -> Iterator[Use]:
    grouped = defaultdict[tuple[str, str], list[_Call]](list)
    for name, server, call in calls:
        grouped[name, server].append(call)
    for (name, server), own in sorted(grouped.items(), key=lambda each: (-len(each[1]), each[0])):
        taken = sorted(call.milliseconds for call in own if call.outcome != "cancelled")
        errors = sum(call.is_error for call in own)
        p50, p95 = (percentile(taken, part) if taken else None for part in (0.5, 0.95))
        yield Use(name, server, len(own), errors, p50, p95)


def _followed(queries: Sequence[_Query], calls: Sequence[_Call]) -> Iterator[Followed]:
    """Yield each query of which something was called later on, with the first that was."""
    for query, call in _pairs(queries, calls):
        rank = query.offset + query.found.index(call.tool) + 1
        yield Followed(query.query, call.tool, rank)


def _pairs(queries: Sequence[_Query], calls: Sequence[_Call]) -> Iterator[tuple[_Query, _Call]]:
    """Yield each query of which something was called later on, with the first call."""
    recent = defaultdict[str, deque[_Query]](lambda: deque(maxlen=REMEMBERED))
    for each in sorted((*queries, *calls), key=lambda each: each.at):
        if isinstance(each, _Query):
            recent[each.session].append(each)
            continue
        asked = recent[each.session]
        query = next((one for one in reversed(asked) if each.tool in one.found), None)
        if query is not None:
            asked.remove(query)
            yield query, each


def _call(line: dict[str, Any], at: float) -> _Call:
    server, tool = str(line.get("server", "")), str(line.get("tool", ""))
    return _Call(at, str(line["session"]), server, tool, str(line["outcome"]), float(line["ms"]))


def _queries(line: dict[str, Any], at: float) -> Iterator[_Query]:
    offset = int(line.get("offset", 0))
    for answer in items(line["answers"]):
        query, found, *others = items(answer)
        names, rest = tuple(map(str, items(found))), sum(map(int, others))
        yield _Query(at, str(line["session"]), str(query), names, rest, offset)
