"""Which resources clients watch, and telling those that asked, each change once."""

from collections import Counter
from collections.abc import Awaitable, Callable

import anyio

from aggregator.fleet.routes import Route
from aggregator.names import ServerName
from aggregator.signals import Signal
from aggregator.upstream.announcing import GATHERING


class Watcher:
    """One client that is told of changes, or all that share a bus."""

    def __init__(self) -> None:
        self._changed: dict[str, None] = {}
        self._touched = Signal()

    def touch(self, uri: str) -> None:
        """Take note that a resource has changed; a storm of changes is one change."""
        self._changed[uri] = None
        self._touched.send()

    async def run(self, tell: Callable[[str], Awaitable[None]]) -> None:
        """Tell of changes until cancelled."""
        while True:
            while not self._changed:
                await self._touched.wait()
            await anyio.sleep(GATHERING)
            changed, self._changed = self._changed, {}
            for uri in changed:
                await tell(uri)


class Watches:
    """Who watches what."""

    def __init__(self) -> None:
        self._watched: dict[Route, Counter[tuple[Watcher, str]]] = {}
        self._own: Counter[tuple[Watcher, str]] = Counter()

    def uris(self, server: ServerName) -> frozenset[str]:
        """Return which resources of a server somebody watches."""
        return frozenset(route.uri for route in self._watched if route.server == server)

    def routes(self, watcher: Watcher) -> list[tuple[Route, str]]:
        """Return what a client watches, each under the URI by which it knows it."""
        return [
            (route, uri)
            for route, watchers in self._watched.items()
            for each, uri in watchers
            if each is watcher
        ]

    def find(self, watcher: Watcher, uri: str) -> Route | None:
        """Return what a client watches under a URI."""
        return next((route for route, known in self.routes(watcher) if known == uri), None)

    def add(self, watcher: Watcher, route: Route, uri: str) -> None:
        """Have a client watch a resource that it knows by this URI, once more if it does."""
        self._watched.setdefault(route, Counter())[watcher, uri] += 1

    def drop(self, watcher: Watcher, route: Route, uri: str) -> None:
        """Have a client watch a resource once less."""
        watchers = self._watched.get(route)
        if watchers is not None and watchers[watcher, uri] > 1:
            watchers[watcher, uri] -= 1
        else:
            self.drop_all(watcher, route, uri)

    def drop_all(self, watcher: Watcher, route: Route, uri: str) -> None:
        """Have a client watch a resource no longer, however often it has asked for it."""
        watchers = self._watched.get(route, Counter[tuple[Watcher, str]]())
        watchers.pop((watcher, uri), None)
        if not watchers:
            self._watched.pop(route, None)

    def add_own(self, watcher: Watcher, uri: str) -> None:
        """Have a client watch one of our own resources, which may change with the catalog."""
        self._own[watcher, uri] += 1

    def drop_own(self, watcher: Watcher, uri: str) -> None:
        """Have a client watch one of our own resources once less."""
        self._own[watcher, uri] -= 1
        self._own = +self._own

    def forget_own(self, watcher: Watcher) -> None:
        """Drop what a client watches of our own resources."""
        for own in [own for own in self._own if own[0] is watcher]:
            del self._own[own]

    def touch(self, server: ServerName, uri: str) -> None:
        """Tell whoever watches a resource of a server that it has changed."""
        for watcher, known in self._watched.get(Route(server, uri), ()):
            watcher.touch(known)

    def touch_own(self) -> None:
        """Tell whoever watches our own resources that the catalog has changed."""
        for watcher, uri in self._own:
            watcher.touch(uri)
