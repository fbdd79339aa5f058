"""What has happened lately, as a person may see it: the last of it, in memory alone.

It is no resource of the protocol: a model must not read what others call and search for.
"""

import json
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from math import isfinite
from typing import Any, NamedTuple

from aggregator.basics.glyphs import on_one_line
from aggregator.basics.json import JsonObject, is_array, is_object
from aggregator.basics.signals import Signal
from aggregator.catalog import Failed, Pending
from aggregator.fleet.fleet import Fleet
from aggregator.records.events import (
    PAGE,
    CallBegan,
    CallEnded,
    Event,
    ListServed,
    LoginNeeded,
    Origin,
    Searched,
    StateChanged,
    state_word,
)
from aggregator.secrecy import Redaction

KEPT = 500
"""Events that are kept."""
MAX_TEXT = 300
"""Characters of a reason, or of one value of an argument."""
READ = 4000
"""Characters of such a text that are looked at: half of a secret would not be recognised."""
MAX_VALUES = 100
"""Values of all arguments of one call that are shown."""
MAX_DEPTH = 5
MAX_FOUND = 10
"""Tools of one search that are named."""

Fact = dict[str, Any]


class Batch(NamedTuple):
    """What came after a place."""

    events: tuple[tuple[int, str], ...]
    """Their numbers, and what happened as JSON."""
    missed: int
    """Events that are forgotten already."""
    last: int
    """The number of the last there is, also if it is not for whoever reads."""


class Reader(NamedTuple):
    """Somebody who is told only of what is its own, and of what is nobody's."""

    identity: str
    issuer: str


class Confided:
    """What takes the secrets of the configuration in use out of a text; made once for each."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._config = fleet.now.config
        self._redaction = fleet.redact()

    def __call__(self) -> Redaction:
        """Return it."""
        if self._fleet.now.config is not self._config:
            self._config, self._redaction = self._fleet.now.config, self._fleet.redact()
        return self._redaction


class Activity:
    """Remembers the last events; whoever reads keeps but the number of the last one it had."""

    def __init__(self, redact: Callable[[], Redaction], *, shows_arguments: bool = False) -> None:
        self._redact = redact
        self.shows_arguments = shows_arguments
        """Whether a person has asked to see what calls are given."""
        self._events = deque[tuple[Reader | None, str | CallBegan | CallEnded]](maxlen=KEPT)
        """Whose each is, if it is anybody's."""
        self._last = 0
        self.news = Signal()

    def hear(self, event: Event) -> None:
        """Take note of an event."""
        if isinstance(event, CallBegan) or (isinstance(event, CallEnded) and _is_plain(event)):
            # There are many, each is waited for, and mostly nobody looks.
            identity = event.origin.identity
            self._keep(Reader(on_one_line(identity) if identity else "", _issuer(event)), event)
        elif (told := self._told(event)) is not None:
            whose = Reader(told.get("identity", ""), _issuer(event)) if "client" in told else None
            self._keep(whose, _written(told))

    def _keep(self, whose: Reader | None, event: str | CallBegan | CallEnded) -> None:
        self._last += 1
        self._events.append((whose, event))
        self.news.send()

    def after(self, number: int, reader: Reader | None = None) -> Batch:
        """Return what came after an event; of one that never was, everything there is.

        Who runs us is told of all: there is no reader then that others are kept from.
        """
        first = self._last - len(self._events) + 1
        if not 0 <= number <= self._last:
            number = 0
        begin = max(first, number + 1)
        later = enumerate(islice(self._events, begin - first, None), begin)
        found = (
            (at, self._shown(kept))
            for at, (whose, kept) in later
            if not reader or whose in (None, reader)
        )
        missed = max(0, first - number - 1) if number else 0
        return Batch(tuple(found), missed, self._last)

    def _shown(self, kept: str | CallBegan | CallEnded) -> str:
        return kept if isinstance(kept, str) else _written(self._told(kept))

    def _told(self, event: Event) -> Fact | None:
        match event:
            case CallBegan():
                about = {"number": event.number, "server": event.server, "tool": event.tool}
                return {"kind": "began", **_whose(event.at, event.origin), **about}
            case CallEnded():
                return self._call(event)
            case Searched():
                return self._search(event)
            case ListServed():
                return _list(event)
            case StateChanged():
                return _state(event)
            case LoginNeeded():
                command = on_one_line(event.command)[:MAX_TEXT]
                at = round(event.at, 3)
                return {"kind": "login", "at": at, "server": event.server, "command": command}

    def _call(self, event: CallEnded) -> Fact:
        told: Fact = {
            "kind": "ended",
            **_whose(event.at, event.origin),
            "number": event.number,
            "server": event.server,
            # What does not exist is whatever somebody wrote.
            "tool": event.tool if event.server else self._short(event.tool),
            "through": event.through,
            "outcome": event.outcome,
            "milliseconds": round(event.seconds * 1000, 1),
        }
        if self.shows_arguments and event.content is not None:
            told["arguments"] = _Excerpt(self._short).of(event.content.arguments)
        return told

    def _search(self, event: Searched) -> Fact:
        answers = [
            {
                "query": self._short(each.query),
                "found": each.found[:MAX_FOUND],
                "number": len(each.found) + each.others,
            }
            for each in event.answers
        ]
        milliseconds = round(event.seconds * 1000, 1)
        whose = _whose(event.at, event.origin)
        sizes = {"characters": event.characters, "milliseconds": milliseconds}
        return {"kind": "search", **whose, "answers": answers, **sizes}

    def _short(self, text: str) -> str:
        return on_one_line(self._redact()(text[:READ]))[:MAX_TEXT]


def _issuer(event: Event) -> str:
    return event.origin.issuer if not isinstance(event, StateChanged | LoginNeeded) else ""


class _Excerpt:
    """Shows as much of a value as a person wants to read, at the cost of no more than that."""

    def __init__(self, shorten: Callable[[str], str]) -> None:
        self._shorten = shorten
        self._left = MAX_VALUES

    def of(self, value: object, depth: int = MAX_DEPTH) -> object:
        """Return a value without what is too much of it."""
        self._left -= 1
        if isinstance(value, str):
            return self._shorten(value)
        if value is None or isinstance(value, bool | int | float):
            # Python reads and writes `NaN`, and no browser does.
            return value if not isinstance(value, float) or isfinite(value) else str(value)
        if not depth or self._left <= 0:
            return "…"
        if is_object(value):
            return dict(self._pairs(value, depth - 1))
        return list(self._items(value, depth - 1)) if is_array(value) else "…"

    def _pairs(self, value: JsonObject, depth: int) -> Iterator[tuple[str, object]]:
        for key, each in value.items():
            if self._left <= 0:
                yield "…", "…"
                return
            yield self._shorten(key), self.of(each, depth)

    def _items(self, value: Sequence[object], depth: int) -> Iterator[object]:
        for each in value:
            if self._left <= 0:
                yield "…"
                return
            yield self.of(each, depth)


def _is_plain(event: CallEnded) -> bool:
    """Whether a call can be told of later on: nothing large is kept by it, and nothing secret."""
    return bool(event.server) and event.content is None


def _written(told: Fact | None) -> str:
    return json.dumps(told, separators=(",", ":"), default=str)


def _whose(at: float, origin: Origin) -> Fact:
    client = on_one_line(origin.client)
    told = {"at": round(at, 3), "client": client, "session": origin.session}
    return {**told, "identity": on_one_line(origin.identity)} if origin.identity else told


def _list(event: ListServed) -> Fact | None:
    """Tell of a list, unless it is the page's own: that nobody waits for."""
    if event.origin.client == PAGE:
        return None
    return {"kind": "list", **_whose(event.at, event.origin), "tools": len(event.tools)}


def _state(event: StateChanged) -> Fact:
    before, after = event.before, event.after
    reason = after.reason if isinstance(after, Pending | Failed) else None
    return {
        "kind": "state",
        "at": round(event.at, 3),
        "server": event.server,
        "before": before and state_word(before),
        "after": after and state_word(after),
        "phase": after.phase if isinstance(after, Pending) else None,
        "reason": reason and on_one_line(reason)[:MAX_TEXT],
    }
