"""What a server says by itself, given to whom it concerns."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Protocol

import mcp_types as types
from mcp.shared.exceptions import MCPError

from aggregator.basics.json import JsonObject
from aggregator.downstream.exchange import Rest
from aggregator.downstream.inflight import ClientCall, InFlight
from aggregator.downstream.listening import Listening

Params = Mapping[str, Any] | None

Answer = Callable[[ClientCall | None, str, Params], Awaitable[dict[str, Any]]]
"""Answers what a server asks: `(the call it belongs to, method, params) -> result`."""

KINDS = ("tools", "prompts", "resources")
"""What servers list, and tell of changes to."""

_LIST_CHANGED = {f"notifications/{kind}/list_changed": kind for kind in KINDS}

_INTRODUCTIONS = frozenset(("initialize", "server/discover"))
"""What only clients ask."""


class LinkEvents(Protocol):
    """What a link tells of that belongs to no call; nothing of it may block."""

    def updated(self, uri: str) -> None:
        """Take note that a resource has changed."""
        ...

    def logged(self, params: JsonObject) -> None:
        """Take note of a log message that came while no call was under way."""
        ...

    def completed(self, params: JsonObject) -> None:
        """Take note that an elicitation elsewhere has come to its end."""
        ...

    def changed(self, kinds: Iterable[str]) -> None:
        """Take note that these lists have changed, or may have."""
        ...


class Incoming:
    """Takes what one server asks and tells."""

    def __init__(self, events: LinkEvents, answer: Answer) -> None:
        self._events = events
        self._answer = answer
        self.in_flight = InFlight()
        """The calls of clients that it may be about."""
        self.listening = Listening(missed=lambda: events.changed(KINDS))
        """The stream on which a modern server tells of changes."""

    async def answer(
        self, related: types.RequestId | None, method: str, params: Params
    ) -> dict[str, Any]:
        """Answer what the server asks, for the call that it belongs to."""
        if method in _INTRODUCTIONS:
            # It sends this back, too, as an answer to what we asked, so it is what we read.
            problem = "it sends back what it is sent, so it is no MCP server"
            raise MCPError(types.METHOD_NOT_FOUND, problem)
        return await self._answer(self.in_flight.meant(related), method, params)

    def hear(self, related: types.RequestId | None, method: str, params: Params) -> Rest | None:
        """Take a notification in the order it came; a storm of changes is one change."""
        said = params or {}
        if (call := self._concerned(related, method, said)) is not None:
            # One task for each call passes on what is heard: a storm must not become as many.
            return None if call.hear(method, said) else call.deliver
        if (kind := _LIST_CHANGED.get(method)) is not None:
            self._events.changed((kind,))
        elif method == "notifications/resources/updated":
            self._events.updated(str(said.get("uri")))
        elif method == "notifications/subscriptions/acknowledged":
            self.listening.acknowledge(said)
        elif method == "notifications/elicitation/complete":
            self._events.completed(said)
        elif method == "notifications/message" and self.in_flight.is_idle:
            self._events.logged(said)
        return None

    def _concerned(
        self, related: types.RequestId | None, method: str, params: JsonObject
    ) -> ClientCall | None:
        """Return the call that a notification belongs to, if it belongs to one."""
        if method == "notifications/progress":
            return self.in_flight.progressing(params.get("progressToken"))
        if method == "notifications/message":
            return self.in_flight.meant(related)
        return None
