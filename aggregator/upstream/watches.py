"""Which resources clients watch, and telling those that asked, each change once."""

from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeVar

import anyio

from aggregator.basics.signals import Signal
from aggregator.fleet.routes import Route
from aggregator.names import ServerName
from aggregator.upstream.announcing import GATHERING

K = TypeVar("K")
V = TypeVar("V", bound=dict[Any, Any])


class Watcher:
    """One client that is told of changes, or all that share a bus."""

    def __init__(
        self,
        sees: Callable[[ServerName], bool] = lambda _server: True,
        profile: str | None = None,
    ) -> None:
        self.sees = sees
        """Says of which servers it may be told."""
        self.profile = profile
        """What it sees of the catalog; nothing stands for everything."""
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
        self._watching = defaultdict[Watcher, dict[str, Counter[Route]]](dict)
        """What each watches, how often, by the URI that it knows."""
        self._watched = defaultdict[ServerName, dict[str, dict[tuple[Watcher, str], None]]](dict)
        """Who is to be told of a resource, by server and by the URI that the server knows."""
        self._own = defaultdict[Watcher, Counter[str]](Counter)

    def uris(self, server: ServerName, watcher: Watcher | None = None) -> frozenset[str]:
        """Return which resources of a server somebody watches, or one client does."""
        watched = self._watched.get(server, {})
        if watcher is None:
            return frozenset(watched)
        return frozenset(
            uri for uri, whom in watched.items() if any(each is watcher for each, _ in whom)
        )

    def number(self, watcher: Watcher) -> int:
        """Return how many resources a client watches."""
        return len(self._watching.get(watcher, ())) + len(self._own.get(watcher, ()))

    def routes(self, watcher: Watcher) -> list[tuple[Route, str]]:
        """Return what a client watches, each under the URI by which it knows it."""
        known = self._watching.get(watcher, {})
        return [(route, uri) for uri, routes in known.items() for route in routes]

    def find(self, watcher: Watcher, uri: str) -> Route | None:
        """Return what a client watches under a URI."""
        return next(iter(self._watching.get(watcher, {}).get(uri, ())), None)

    def add(self, watcher: Watcher, route: Route, uri: str) -> None:
        """Have a client watch a resource that it knows by this URI, once more if it does."""
        self._watching[watcher].setdefault(uri, Counter())[route] += 1
        self._watched[route.server].setdefault(route.uri, {})[watcher, uri] = None

    def drop(self, watcher: Watcher, route: Route, uri: str) -> None:
        """Have a client watch a resource once less."""
        routes = self._watching.get(watcher, {}).get(uri, Counter[Route]())
        if routes[route] > 1:
            routes[route] -= 1
        else:
            self.drop_all(watcher, route, uri)

    def drop_all(self, watcher: Watcher, route: Route, uri: str) -> None:
        """Have a client watch a resource no longer, however often it has asked for it."""
        _take_out(self._watching, watcher, uri, route)
        _take_out(self._watched, route.server, route.uri, (watcher, uri))

    def add_own(self, watcher: Watcher, uri: str) -> None:
        """Have a client watch one of our own resources, which may change with the catalog."""
        self._own[watcher][uri] += 1

    def drop_own(self, watcher: Watcher, uri: str) -> None:
        """Have a client watch one of our own resources once less."""
        own = self._own.get(watcher, Counter[str]())
        own[uri] -= 1
        if own[uri] <= 0:
            del own[uri]
        if not own:
            self._own.pop(watcher, None)

    def forget_own(self, watcher: Watcher) -> None:
        """Drop what a client watches of our own resources."""
        self._own.pop(watcher, None)

    def touch(self, server: ServerName, uri: str, only: Watcher | None = None) -> None:
        """Tell whoever watches a resource of a server, or one client, that it has changed."""
        for watcher, known in self._watched.get(server, {}).get(uri, ()):
            if (only is None or only is watcher) and watcher.sees(server):
                watcher.touch(known)

    def touch_own(self, has_changed: Callable[[Watcher], bool] = lambda _watcher: True) -> None:
        """Tell whoever watches our own resources that the catalog has changed, if it has for it."""
        for watcher, uris in self._own.items():
            for uri in uris if has_changed(watcher) else ():
                watcher.touch(uri)


def _take_out(held: MutableMapping[K, dict[str, V]], key: K, uri: str, member: object) -> None:
    """Take a member out of what is held under a key and a URI, and what is then empty with it."""
    inner = held.get(key, {})
    members = inner.get(uri)
    if members is not None:
        members.pop(member, None)
    if not members:
        inner.pop(uri, None)
    if not inner:
        held.pop(key, None)
