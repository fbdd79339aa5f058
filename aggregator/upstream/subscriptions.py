"""Have servers tell of the resources that clients watch, and of no others."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

import anyio
from mcp.shared.exceptions import MCPError

from aggregator.downstream.subscribing import NotWatchedError
from aggregator.fleet.fleet import Fleet
from aggregator.fleet.routes import Route
from aggregator.names import ServerName
from aggregator.signals import Signal
from aggregator.upstream.watches import Watcher, Watches


class Subscriptions:
    """What is watched, made with the servers; each is asked once, however many clients watch."""

    def __init__(self, fleet: Fleet, watches: Watches) -> None:
        self._fleet = fleet
        self._watches = watches
        self._left = set[ServerName]()
        """Servers that tell of something which may be watched no longer."""
        self._leaving = Signal()

    async def add(self, watcher: Watcher, route: Route, uri: str) -> None:
        """Have a client told of a resource that it knows by this URI.

        Raises:
            MCPError: Its server refuses.
        """
        self._watches.add(watcher, route, uri)
        try:
            await self._settle(route.server, route.uri)
        except BaseException:
            self.remove(watcher, route, uri)
            raise

    def remove(self, watcher: Watcher, route: Route, uri: str) -> None:
        """Have a client told no longer; its server is told so in its own time."""
        self._watches.drop(watcher, route, uri)
        self._leave(route.server)

    def forget(self, watcher: Watcher) -> None:
        """Drop everything that one client watches."""
        self._watches.forget_own(watcher)
        for route, uri in self._watches.routes(watcher):
            self._watches.drop_all(watcher, route, uri)
            self._leave(route.server)

    @asynccontextmanager
    async def held(
        self, watcher: Watcher, routes: Mapping[str, Route]
    ) -> AsyncGenerator[frozenset[str], None]:
        """Have a client told of resources for the length of the block; say which are refused."""
        added: list[tuple[str, Route]] = []
        refused = set[str]()

        async def add(uri: str, route: Route) -> None:
            try:
                await self.add(watcher, route, uri)
                added.append((uri, route))
            except MCPError:
                refused.add(uri)

        try:
            async with anyio.create_task_group() as group:
                for uri, route in routes.items():
                    group.start_soon(add, uri, route)
            yield frozenset(refused)
        finally:
            for uri, route in added:
                self.remove(watcher, route, uri)

    async def run(self) -> None:
        """Tell of our own changes, and clear up after clients that are gone."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._follow_catalog)
            group.start_soon(self._clear_up)

    async def _follow_catalog(self) -> None:
        while True:
            await self._fleet.changed.wait()
            self._watches.touch_own()

    async def _clear_up(self) -> None:
        """Have servers stop telling of what clients that are gone had watched."""
        while True:
            while self._left:
                await self._settle(self._left.pop())
            await self._leaving.wait()

    def _leave(self, server: ServerName) -> None:
        self._left.add(server)
        self._leaving.send()

    async def _settle(self, server: ServerName, concerned: str | None = None) -> None:
        """Have a server tell of what is watched, and of nothing else.

        Raises:
            MCPError: It refuses to tell of the one that the caller is concerned with.
        """
        try:
            await self._fleet.watch(server, self._watches.uris(server))
        except NotWatchedError as error:
            if concerned is not None and concerned in error.reasons:
                raise error.reasons[concerned] from error
