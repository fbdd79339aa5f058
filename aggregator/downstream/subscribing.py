"""Subscriptions to the resources of one server, in the way of its era."""

from collections.abc import Collection, Mapping
from contextlib import suppress
from weakref import WeakValueDictionary

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError

from aggregator.basics.json import as_object
from aggregator.config import ServerConfig
from aggregator.downstream.exchange import REQUEST_FAILURES
from aggregator.downstream.link import Link
from aggregator.downstream.transport import ConnectionClosedError, UndeliveredError


class NotWatchedError(MCPError):
    """A server does not tell of some resources; says why, for each of them."""

    def __init__(self, reasons: Mapping[str, MCPError]) -> None:
        super().__init__(types.INVALID_REQUEST, f"{len(reasons)} resources cannot be watched")
        self.reasons = reasons


class Subscribing:
    """Has a server tell of the changes of some resources, on one link after another."""

    def __init__(self, server: ServerConfig, wanted: frozenset[str]) -> None:
        self._server = server
        self._wanted = wanted
        self._confirmed = set[str]()
        """What a server of the handshake era has agreed to tell of, on the link there is now."""
        self._turns = WeakValueDictionary[str, anyio.Lock]()

    def reconfigure(self, server: ServerConfig) -> None:
        """Have other limits hold from here on."""
        self._server = server

    @property
    def is_needed(self) -> bool:
        """Whether somebody is to be told of a change."""
        return bool(self._wanted)

    async def begin(self, link: Link) -> None:
        """Subscribe on a new connection to what was wanted on the last."""
        self._confirmed = set[str]()
        if self._wanted:
            with suppress(NotWatchedError):
                await self.want(self._wanted, link)

    async def want(self, uris: frozenset[str], link: Link | None) -> None:
        """Be told of these resources, and no others, now or once there is a link.

        Raises:
            NotWatchedError: The server refuses some of them, or does not answer in time.
        """
        before, self._wanted = self._wanted, uris
        if link is None or not _lets_subscribe(link):
            return
        if link.peer.era == "modern":
            await link.want(self._wanted)
            return
        # Who wants something new need not wait for what has become of the rest.
        unsettled = (self._wanted - before) or (self._wanted ^ self._confirmed)
        if refused := await self._settle(link, unsettled):
            raise NotWatchedError(refused)

    async def _settle(self, link: Link, unsettled: Collection[str]) -> dict[str, MCPError]:
        """Have a server tell of what is wanted, each on its own; return what it refuses."""
        name = self._server.name
        late = MCPError(types.REQUEST_TIMEOUT, f"The server `{name}` did not answer in time")
        refused, confirmed = dict.fromkeys(sorted(unsettled), late), self._confirmed
        at_once = anyio.Semaphore(self._server.max_in_flight)

        async def settle(uri: str) -> None:
            async with at_once:
                try:
                    await self._settle_one(link, confirmed, uri)
                    del refused[uri]
                except MCPError as error:
                    refused[uri] = error
                except UndeliveredError as error:
                    refused[uri] = MCPError(types.INTERNAL_ERROR, error.undelivered.reason)
                except ConnectionClosedError:
                    refused[uri] = MCPError(types.INTERNAL_ERROR, f"The server `{name}` is gone")

        with anyio.move_on_after(self._server.call_timeout):
            async with anyio.create_task_group() as group:
                for uri in list(refused):
                    group.start_soon(settle, uri)
        return refused

    async def _settle_one(self, link: Link, confirmed: set[str], uri: str) -> None:
        """Subscribe to a resource, or no longer, until that is as it is wanted."""
        async with self._turns.setdefault(uri, anyio.Lock()):
            while (uri in self._wanted) != (uri in confirmed):
                if uri in confirmed:
                    # Whatever becomes of the request: from here on, nothing is certain.
                    confirmed.discard(uri)
                    with suppress(*REQUEST_FAILURES):
                        await link.request("resources/unsubscribe", {"uri": uri})
                else:
                    await link.request("resources/subscribe", {"uri": uri})
                    confirmed.add(uri)


def _lets_subscribe(link: Link) -> bool:
    return as_object(link.peer.capabilities.get("resources")).get("subscribe") is True
