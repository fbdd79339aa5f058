"""Who is there to be asked when a server asks outside of any call.

On our standard streams there is one client, so it is the one that is meant. Where several share
the servers, the roots of one must not be used for another: there such a question is refused.
"""

from collections.abc import Callable, Generator, Hashable
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Protocol

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError

from aggregator.basics.json import JsonObject
from aggregator.basics.signals import Signal
from aggregator.downstream.questions import can_be_asked, instead, refuse
from aggregator.names import ServerName
from aggregator.upstream.request import Request
from aggregator.upstream.stream_client import ASKABLE, StreamClient, Tell

ARRIVAL_PATIENCE = 30.0
"""Seconds that a client has to introduce itself, when a server asks before it has."""
ANSWER_PATIENCE = 600.0
"""Seconds that a client has to answer."""


class AskableClient(Protocol):
    """A client that can be asked by itself."""

    @property
    def is_alone(self) -> bool:
        """Whether it is on a stream of its own."""
        ...

    @property
    def capabilities(self) -> JsonObject:
        """What it can be asked."""
        ...

    @property
    def sees(self) -> Callable[[ServerName], bool]:
        """Says whether a server exists for it."""
        ...

    async def ask(self, server: ServerName, method: str, params: JsonObject, /) -> dict[str, Any]:
        """Pass on a question of a server, and return the client's answer as it came."""
        ...


class AskableClients:
    """The clients that there are."""

    def __init__(self, *, is_shared: bool = False) -> None:
        self.is_shared = is_shared
        """Whether several clients are to be expected."""
        self.stream_client = StreamClient()
        """The client of the modern era, if one has come."""
        self._clients: list[AskableClient] = []
        self._known: dict[Hashable, AskableClient] = {}
        self._came = Signal()

    @contextmanager
    def entered(
        self, client: AskableClient, whose: Hashable | None = None
    ) -> Generator[None, None, None]:
        """Have a client there for the length of the block, by what tells it from others."""
        self._clients.append(client)
        self._known[whose] = client
        self._came.send()
        try:
            yield
        finally:
            self._clients.remove(client)
            self._known.pop(whose, None)

    def owes(self, request: Request) -> bool:
        """Whether a client is to be asked something before a call, or brings what it was asked."""
        is_askable = request.caller.era == "modern" and request.conversation.is_alone
        return is_askable and self.stream_client.owes(request.params)

    async def admit(self, method: str, request: Request, tell: Tell) -> Request | None:
        """Return a request to be answered; nothing if its client is to be asked something first."""
        is_askable = request.caller.era == "modern" and method in ASKABLE
        if not is_askable or not request.conversation.is_alone:
            return request
        params = await self.stream_client.admit(request.params, tell)
        return None if params is None else replace(request, params=params)

    def introduce(
        self, capabilities: JsonObject, sees: Callable[[ServerName], bool] = lambda _server: True
    ) -> None:
        """Take note of a client of the modern era, what it can be asked, and which servers by."""
        self.stream_client.introduce(capabilities, sees)
        self._came.send()

    async def answer(
        self, server: ServerName, method: str, params: JsonObject, /, whose: Hashable | None = None
    ) -> dict[str, Any]:
        """Ask the client whose process asks, or the only one that there is, or is to come.

        Raises:
            MCPError: There are several, or it cannot or will not answer.
        """
        client = await (self._only_client() if whose is None else self._client(whose))
        if client is None or not client.sees(server):
            await refuse(server, method, params)
        if not can_be_asked(client.capabilities, method, params):
            return instead(method)
        with anyio.move_on_after(ANSWER_PATIENCE):
            return await client.ask(server, method, params)
        raise MCPError(types.REQUEST_TIMEOUT, f"The client did not answer `{method}`")

    async def _client(self, whose: Hashable) -> AskableClient | None:
        """Wait, within bounds, for one client."""
        with anyio.move_on_after(ARRIVAL_PATIENCE):
            while whose not in self._known:
                await self._came.wait()
        return self._known.get(whose)

    async def _only_client(self) -> AskableClient | None:
        """Wait, within bounds, for whoever is meant; return nobody if that is not clear."""
        if self.is_shared:
            return None
        with anyio.move_on_after(ARRIVAL_PATIENCE):
            while not self._clients and not self.stream_client.is_there:
                await self._came.wait()
        if self._clients:
            # Who fell back from the modern era to a session has been met in both.
            client = self._clients[0]
            return client if client.is_alone and len(self._clients) == 1 else None
        return self.stream_client if self.stream_client.is_there else None
