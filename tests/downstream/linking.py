"""A link over a script: what the server says is told by the test, what we say is seen by it."""

from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio

from aggregator.basics.eras import Era
from aggregator.basics.json import JsonObject
from aggregator.downstream.deadlines import Patience
from aggregator.downstream.exchange import Exchange
from aggregator.downstream.incoming import Incoming
from aggregator.downstream.inflight import ClientCall, Notify
from aggregator.downstream.link import Link
from aggregator.downstream.peer import Peer
from tests.transports import Script

Json = dict[str, Any]

US: Json = {"name": "tests", "version": "1"}
HANDSHAKE = Peer("2025-11-25", name="old", capabilities={"tools": {}, "logging": {}})
MODERN = Peer("2026-07-28", name="new", capabilities={"tools": {}})


class Client:
    """A client behind a call; remembers what it is told and asked."""

    def __init__(self, era: Era = "handshake", **capabilities: Any) -> None:
        self.era: Era = era
        self.key: object = self
        self.party: object = self
        self.capabilities: JsonObject = capabilities
        self.log_level: str | None = None
        self.told: list[tuple[str, JsonObject]] = []
        self.notified: list[tuple[str, JsonObject]] = []
        self.thinking = 0.0
        """Seconds it takes to answer."""

    @property
    def notify(self) -> Notify:
        return lambda method, params: self.notified.append((method, params))

    async def tell(self, method: str, params: JsonObject) -> None:
        self.told.append((method, params))

    async def ask(self, method: str, params: JsonObject) -> Json:
        await anyio.sleep(self.thinking)
        return {"asked": method, **params}


def call_of(client: Client) -> ClientCall:
    """Make a call without a limit to its time."""
    return ClientCall(client, Patience(anyio.CancelScope(), between=1e6, altogether=1e6))


class News:
    """Remembers what a link tells."""

    def __init__(self) -> None:
        self.came: list[tuple[str, object]] = []

    def updated(self, uri: str) -> None:
        self.came.append(("updated", uri))

    def logged(self, params: JsonObject) -> None:
        self.came.append(("logged", params))

    def completed(self, params: JsonObject) -> None:
        self.came.append(("completed", params))

    def changed(self, kinds: Iterable[str]) -> None:
        self.came.append(("changed", tuple(kinds)))


async def answer(call: ClientCall | None, method: str, _params: Mapping[str, Any] | None) -> Json:
    """Say whether a question was taken to belong to a call."""
    return {"method": method, "has_call": call is not None}


@asynccontextmanager
async def linked(
    script: Script, peer: Peer = HANDSHAKE, news: News | None = None
) -> AsyncGenerator[Link, None]:
    """Have a link to a server that has introduced itself."""
    exchange, incoming = Exchange(script), Incoming(news or News(), answer)
    with script:
        async with anyio.create_task_group() as group:
            await group.start(exchange.run, incoming)
            yield Link(exchange, peer, incoming, US)
            group.cancel_scope.cancel()
