"""What the link to one server tells, passed on under the server's name."""

from collections.abc import Iterable
from typing import Any, Protocol

from aggregator.basics.json import JsonObject
from aggregator.basics.signals import Signal
from aggregator.catalog import ServerState
from aggregator.downstream.questions import Questions
from aggregator.names import ServerName


class ServerEvents(Protocol):
    """What is told of servers, which may not block, and what they ask."""

    def reported(self, server: ServerName, state: ServerState, /) -> None:
        """Take note of a server's new state."""
        ...

    def updated(self, server: ServerName, uri: str) -> None:
        """Take note that a server says a resource has changed."""
        ...

    def logged(self, server: ServerName, params: JsonObject) -> None:
        """Take note of a log message that belongs to no call."""
        ...

    async def asked(self, server: ServerName, method: str, params: JsonObject, /) -> dict[str, Any]:
        """Answer what a server asks outside of any call."""
        ...


class LinkNews:
    """What one link tells, and which lists it says have changed."""

    def __init__(self, server: ServerName, events: ServerEvents, questions: Questions) -> None:
        self._server = server
        self._events = events
        self._questions = questions
        self._is_open = False
        self._stale = set[str]()
        self._came = Signal()

    def open(self) -> None:
        """Pass on what is said from here on, since the server has introduced itself."""
        self._is_open = True

    def updated(self, uri: str) -> None:
        """Pass on that a resource has changed."""
        if self._is_open:
            self._events.updated(self._server, uri)

    def logged(self, params: JsonObject) -> None:
        """Pass on a log message that belongs to no call."""
        if self._is_open:
            self._events.logged(self._server, params)

    def completed(self, params: JsonObject) -> None:
        """Tell who was asked to go elsewhere that it has come to its end."""
        self._questions.complete(params)

    def changed(self, kinds: Iterable[str]) -> None:
        """Take note that these lists have changed."""
        self._stale.update(kinds)
        self._came.send()

    async def take_stale(self) -> frozenset[str]:
        """Wait until lists have changed, and return which: what changes from here on is news."""
        while not self._stale:
            await self._came.wait()
        stale = frozenset(self._stale)
        self._stale.clear()
        return stale
