"""What servers offered in another run: when that was, and when to ask them again."""

from collections.abc import Collection, Iterable, Mapping
from math import inf

import anyio
import anyio.lowlevel

from aggregator.catalog import Ready
from aggregator.config import ServerConfig
from aggregator.downstream.server import Downstream
from aggregator.fleet.last_known import STALE, LastKnown, Recalled
from aggregator.fleet.saved_listing import rules_of
from aggregator.names import ServerName


class Recalling:
    """Has servers know what they offered in another run, and notes what they offer in this."""

    def __init__(self, last_known: LastKnown) -> None:
        self._last_known = last_known
        self._recalled: dict[ServerName, Recalled] = {}
        self._unread: set[ServerName] = set()
        """Those of which nothing has been read, though something may be known."""
        self._listed: dict[ServerName, float] = {}
        """When each server was last asked what it offers."""

    def recall(self, servers: Mapping[ServerName, ServerConfig]) -> dict[ServerName, Ready]:
        """Return what is known of these servers before they are started."""
        recalled = self._last_known.recall(servers)
        for name, each in recalled.items():
            self._take(name, each)
        return {name: each.ready for name, each in recalled.items()}

    def expect(self, servers: Iterable[ServerName]) -> None:
        """Have what is known of these servers read, each before it is started."""
        for name in servers:
            self._recalled.pop(name, None)
            self._unread.add(name)

    def tell(self, downstream: Downstream) -> None:
        """Have a server know what it offered, if all of that has been read."""
        recalled = self._recalled.get(downstream.name)
        if recalled is not None and recalled.is_whole:
            is_complete = not recalled.ready.offers.unlisted
            downstream.recall(recalled.ready, is_current=recalled.is_allowed and is_complete)

    async def tell_rest(self, downstream: Downstream) -> None:
        """Read the rest of what a server offered, before it starts for that."""
        name = downstream.name
        recalled = self._recalled.get(name)
        is_read = recalled is None or recalled.is_whole
        if is_read and name not in self._unread:
            return
        self._unread.discard(name)
        whole = await self._last_known.recall_whole(downstream.server)
        if whole is not None:
            self._take(name, whole)
            self.tell(downstream)

    def note(self, server: ServerConfig, ready: Ready) -> None:
        """Take note of what a server offers now, as far as it has listed it."""
        if ready.offers.unlisted:
            # Whoever is ended meanwhile has its tools, and more than that if it had more before.
            before = self._recalled.get(server.name)
            if before is None or (before.is_whole and before.ready.offers.unlisted):
                self._last_known.note(server, ready)
            return
        self._listed[server.name] = anyio.current_time()
        self._last_known.note(server, ready)

    async def doubt(self, servers: Mapping[ServerName, ServerConfig]) -> None:
        """Take what another version of a program offered to be old."""
        for name, recalled in list(self._recalled.items()):
            if name in servers and recalled.is_outdated(servers[name]):
                self._listed[name] = -inf
            await anyio.lowlevel.checkpoint()

    def compare(self, before: ServerConfig, after: ServerConfig) -> None:
        """Take what is known to be old where other tools are allowed than when it was listed."""
        if rules_of(before) != rules_of(after):
            self._listed[after.name] = -inf

    def next_stale(self, idle: Collection[ServerName]) -> tuple[ServerName | None, float]:
        """Return whose list is the oldest, and when it is too old."""
        oldest = min(idle, key=self._listed_at, default=None)
        return oldest, inf if oldest is None else self._listed_at(oldest) + STALE

    def visit(self, server: ServerName) -> None:
        """Take note that a server is asked now, whatever comes of it."""
        self._listed[server] = anyio.current_time()

    def _take(self, server: ServerName, recalled: Recalled) -> None:
        self._recalled[server] = recalled
        self._listed[server] = anyio.current_time() - recalled.age

    def _listed_at(self, server: ServerName) -> float:
        return self._listed.get(server, -inf)
