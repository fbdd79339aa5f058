"""Requests on one connection that are like one before, but for their bodies: who takes them.

All that is found out of a head, whose it is and whether it may come in, is found out once. Whoever
has found it out offers to take the next one like it, and looks himself at what may have changed.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from starlette.types import Scope, Send

from aggregator.upstream.http.heads import Body, Head
from aggregator.upstream.http.presence import Presence
from aggregator.upstream.http.reply import Headers

MAX_KNOWN = 8
"""Heads that are known on one connection: a client of the modern era has one for each tool."""


STANDS = "aggregator.stands"
"""Where in the scope of a request it is written what says whether its like is let in still."""


class Line(Protocol):
    """A connection with one request that was taken, and is to be answered."""

    @property
    def presence(self) -> Presence:
        """Whether the client is there."""
        ...

    @property
    def is_taken(self) -> bool:
        """Whether it can be answered in one piece still: nothing has come before or behind."""
        ...

    def answer(self, status: int, headers: Headers, body: bytes) -> None:
        """Answer it in one piece."""
        ...

    def usual(self) -> Send:
        """Return what it is answered by in several."""
        ...


Take = Callable[[bytes, Line], bool]
"""Answers the request with a body, and says whether it will."""


class Found(NamedTuple):
    """A request that is like one before."""

    take: Take
    scope: Scope
    """What the one before was."""
    body: Body


class Shortcut:
    """Knows what has come on one connection, and who takes it if it comes again."""

    KEY = "aggregator.shortcut"
    """What it is called in the state of a request."""

    def __init__(self) -> None:
        self._known: dict[Head, tuple[Take, Scope]] = {}

    def __bool__(self) -> bool:
        return bool(self._known)

    def find(self, data: bytes) -> Found | None:
        """Return what the head stands for that some bytes begin with, if it is known."""
        for head, (take, scope) in self._known.items():
            body = head.body(data)
            if body is not None:
                return Found(take, scope, body)
        return None

    def learn(self, head: Head, scope: Scope, take: Take) -> None:
        """Have requests with this head be taken."""
        if head not in self._known and len(self._known) >= MAX_KNOWN:
            del self._known[next(iter(self._known))]
        self._known[head] = take, scope

    def forget(self) -> None:
        """Have everything go the usual way."""
        self._known.clear()


class Offer:
    """The way to say who takes requests like one that goes the usual way now."""

    KEY = "aggregator.offer"
    """What it is called in the state of a request."""

    def __init__(self, shortcut: Shortcut, head: Head) -> None:
        # Not its scope: it stands in there, and each would have to be found by the collector.
        self._shortcut = shortcut
        self._head = head

    def make(self, take: Take, scope: Scope) -> None:
        """Take requests like it, whose scope this is, from here on."""
        self._shortcut.learn(self._head, scope, take)
