"""Have servers tell of the resources that clients watch, and of no others."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

import anyio
from mcp.shared.exceptions import MCPError

from aggregator.basics.signals import Signal
from aggregator.downstream.subscribing import NotWatchedError
from aggregator.fleet.fleet import Fleet
from aggregator.fleet.now import Now
from aggregator.fleet.routes import Route
from aggregator.names import ServerName
from aggregator.upstream.watches import Watcher, Watches


class Subscriptions:
    """What is watched, made with the servers; each is asked once, however many clients watch."""

    def __init__(self, fleet: Fleet, watches: Watches) -> None:
        self._fleet = fleet
        self._watches = watches
        self._left = set[tuple[ServerName, Watcher]]()
        """Servers that tell of something which may be watched no longer, and by whom."""
        self._leaving = Signal()
        self._seen: dict[str, Now] = {}
        """What was last known as clients of each profile see it, where some watch the catalog."""

    async def add(self, watcher: Watcher, route: Route, uri: str) -> None:
        """Have a client told of a resource that it knows by this URI.

        Raises:
            MCPError: Its server refuses.
        """
        self._watches.add(watcher, route, uri)
        try:
            await self._settle(route.server, watcher, route.uri)
        except BaseException:
            self.remove(watcher, route, uri)
            raise

    def add_own(self, watcher: Watcher, uri: str) -> None:
        """Have a client told of one of our own resources, which may change with the catalog."""
        if (profile := watcher.profile) is not None:
            self._seen.setdefault(profile, self._now(profile))
        self._watches.add_own(watcher, uri)

    def remove(self, watcher: Watcher, route: Route, uri: str) -> None:
        """Have a client told no longer; its server is told so in its own time."""
        self._watches.drop(watcher, route, uri)
        self._leave(route.server, watcher)

    def forget(self, watcher: Watcher) -> None:
        """Drop everything that one client watches."""
        self._watches.forget_own(watcher)
        for route, uri in self._watches.routes(watcher):
            self._watches.drop_all(watcher, route, uri)
            self._leave(route.server, watcher)

    @asynccontextmanager
    async def held(
        self, watcher: Watcher, routes: Mapping[str, Route]
    ) -> AsyncGenerator[frozenset[str], None]:
        """Have a client told of resources for the length of the block; say which are refused.

        Each server is asked once for all of them.
        """
        held = dict(routes)
        for uri, route in held.items():
            self._watches.add(watcher, route, uri)
        try:
            refused = await self._refused(watcher, held)
            for uri in refused:
                self.remove(watcher, held.pop(uri), uri)
            yield refused
        finally:
            for uri, route in held.items():
                self.remove(watcher, route, uri)

    async def _refused(self, watcher: Watcher, routes: Mapping[str, Route]) -> frozenset[str]:
        """Have servers tell of what is watched; return which of these they refuse."""
        refused = set[Route]()

        async def settle(server: ServerName) -> None:
            concerned = {route for route in routes.values() if route.server == server}
            if self._fleet.is_own(server):
                # All who listen share one watcher, and have no session that could have a process.
                refused.update(concerned)
                return
            try:
                await self._watch(server, watcher)
            except NotWatchedError as error:
                refused.update(each for each in concerned if each.uri in error.reasons)
            except MCPError:
                refused.update(concerned)

        async with anyio.create_task_group() as group:
            for server in {route.server for route in routes.values()}:
                group.start_soon(settle, server)
        return frozenset(uri for uri, route in routes.items() if route in refused)

    async def run(self) -> None:
        """Tell of our own changes, and clear up after clients that are gone."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._follow_catalog)
            group.start_soon(self._clear_up)

    async def _follow_catalog(self) -> None:
        while True:
            await self._fleet.changed.wait()
            before, self._seen = self._seen, {each: self._now(each) for each in self._seen}
            same = {each for each, now in self._seen.items() if now is before[each]}
            self._watches.touch_own(lambda watcher: watcher.profile not in same)  # noqa: B023 - used at once

    def _now(self, profile: str) -> Now:
        return self._fleet.profile_views.seen(profile, self._fleet.now)

    async def _clear_up(self) -> None:
        """Have servers stop telling of what clients that are gone had watched."""
        while True:
            while self._left:
                await self._settle(*self._left.pop())
            await self._leaving.wait()

    def _leave(self, server: ServerName, watcher: Watcher) -> None:
        self._left.add((server, watcher))
        self._leaving.send()

    async def _watch(self, server: ServerName, watcher: Watcher) -> None:
        """Have a server tell of what all clients watch; of each's own process, what that does."""
        whose = watcher if self._fleet.is_own(server) else None
        await self._fleet.watch(server, self._watches.uris(server, whose), whose)

    async def _settle(
        self, server: ServerName, watcher: Watcher, concerned: str | None = None
    ) -> None:
        """Have a server tell of what is watched, and of nothing else.

        Raises:
            MCPError: It refuses to tell of the one that the caller is concerned with.
        """
        try:
            await self._watch(server, watcher)
        except NotWatchedError as error:
            if concerned is not None and concerned in error.reasons:
                raise error.reasons[concerned] from error
