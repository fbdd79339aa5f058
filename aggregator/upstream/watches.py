"""Which resources clients watch, and telling those that asked, each change once."""

from collections import Counter
from collections.abc import Awaitable, Callable

import anyio

from aggregator.downstream.subscribing import NotWatchedError
from aggregator.fleet.fleet import Fleet
from aggregator.fleet.routes import Route
from aggregator.names import ServerName
from aggregator.upstream.announcing import GATHERING


class Watcher:
    """One client that is told of changes, or all that share a bus."""

    def __init__(self) -> None:
        self._changed: dict[str, None] = {}
        self._stirred = anyio.Event()

    def touch(self, uri: str) -> None:
        """Take note that a resource has changed; a storm of changes is one change."""
        self._changed[uri] = None
        self._stirred.set()

    async def run(self, tell: Callable[[str], Awaitable[None]]) -> None:
        """Tell of changes until cancelled."""
        while True:
            await self._stirred.wait()
            await anyio.sleep(GATHERING)
            self._stirred = anyio.Event()
            changed, self._changed = self._changed, {}
            for uri in changed:
                await tell(uri)


class Watches:
    """Who watches what; a server is asked once, however many clients watch."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._watched: dict[Route, Counter[tuple[Watcher, str]]] = {}
        self._own: Counter[tuple[Watcher, str]] = Counter()
        self._left = set[ServerName]()
        self._stirred = anyio.Event()
        fleet.on_updated = self._updated

    async def add(self, watcher: Watcher, route: Route, uri: str) -> None:
        """Watch a resource that the client knows by this URI.

        Raises:
            MCPError: Its server refuses.
        """
        watchers = self._watched.setdefault(route, Counter())
        watchers[watcher, uri] += 1
        try:
            await self._settle(route.server, route.uri)
        except BaseException:
            self.remove(watcher, route, uri)
            raise

    async def add_once(self, watcher: Watcher, route: Route, uri: str) -> None:
        """Watch a resource; one that is watched already is not watched twice.

        Raises:
            MCPError: Its server refuses, or has done so since and does it again.
        """
        self._drop(route, watcher, uri)
        await self.add(watcher, route, uri)

    def remove(self, watcher: Watcher, route: Route, uri: str) -> None:
        """Watch a resource no longer; its server is told so in its own time."""
        self._drop(route, watcher, uri)
        self._left.add(route.server)
        self._stirred.set()

    def add_own(self, watcher: Watcher, uri: str) -> None:
        """Watch one of our own resources, which may change with the catalog."""
        self._own[watcher, uri] += 1

    def remove_own(self, watcher: Watcher, uri: str) -> None:
        """Watch one of our own resources no longer."""
        self._own[watcher, uri] -= 1
        self._own = +self._own

    def forget(self, watcher: Watcher) -> None:
        """Drop everything that one client watches."""
        for own in [own for own in self._own if own[0] is watcher]:
            del self._own[own]
        for route in list(self._watched):
            for each, uri in list(self._watched[route]):
                if each is watcher:
                    self._watched[route][each, uri] = 1
                    self.remove(each, route, uri)

    async def run(self) -> None:
        """Tell of our own changes, and clear up after clients that are gone."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._follow_catalog)
            group.start_soon(self._clear_up)

    async def _follow_catalog(self) -> None:
        while True:
            await self._fleet.changed.wait()
            for watcher, uri in self._own:
                watcher.touch(uri)

    async def _clear_up(self) -> None:
        """Have servers stop telling of what clients that are gone had watched."""
        while True:
            await self._stirred.wait()
            self._stirred = anyio.Event()
            while self._left:
                await self._settle(self._left.pop())

    def watches(self, watcher: Watcher, uri: str) -> Route | None:
        """Return what a client watches under a URI."""
        for route, watchers in self._watched.items():
            if (watcher, uri) in watchers:
                return route
        return None

    def _drop(self, route: Route, watcher: Watcher, uri: str) -> None:
        watchers = self._watched.get(route, Counter[tuple[Watcher, str]]())
        watchers[watcher, uri] -= 1
        if watchers[watcher, uri] <= 0:
            del watchers[watcher, uri]
        if not watchers:
            self._watched.pop(route, None)

    async def _settle(self, server: ServerName, concerned: str | None = None) -> None:
        """Have a server tell of what is watched, and of nothing else.

        Raises:
            MCPError: It refuses to tell of the one that the caller is concerned with.
        """
        uris = {route.uri for route in self._watched if route.server == server}
        try:
            await self._fleet.watch(server, uris)
        except NotWatchedError as error:
            if concerned is not None and concerned in error.reasons:
                raise error.reasons[concerned] from error

    def _updated(self, server: ServerName, uri: str) -> None:
        for watcher, shown in self._watched.get(Route(server, uri), ()):
            watcher.touch(shown)
