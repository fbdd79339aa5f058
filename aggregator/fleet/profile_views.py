"""What clients of each profile look through: what is known, and what finds it, without the rest.

Each profile in use has indexes of its own. What a word is worth, what a misspelt one stands for
and which of two copies is the original depend on all that an index holds, so that one index with
a filter behind it would rank by, and so tell of, what is hidden. They share what was read of each
tool, which is nearly all of their cost in time and memory.
"""

from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from contextlib import closing
from typing import Protocol

import anyio
import anyio.lowlevel

from aggregator.basics.signals import Signal
from aggregator.catalog import ToolEntry
from aggregator.config import Config
from aggregator.fleet.indexing import Growing, Indexing, take_steps
from aggregator.fleet.narrowing import Narrowing
from aggregator.fleet.now import Now
from aggregator.fleet.other_offers import OtherOffers
from aggregator.names import ServerName
from aggregator.search.hits import Ranker

Look = Callable[[], Now]
"""Returns what is known now."""


class ProfileView(Protocol):
    """What some clients look through."""

    @property
    def index(self) -> Ranker:
        """What the tools that they see are found by."""
        ...

    @property
    def other_offers(self) -> OtherOffers:
        """What they find beside tools."""
        ...

    def is_read(self, servers: Collection[ServerName], /) -> bool:
        """Whether something of each of these servers of which it is known can be found."""
        ...


class WholeView:
    """What clients look through that see everything."""

    def __init__(self, indexing: Indexing, other_offers: OtherOffers) -> None:
        self._indexing = indexing
        self.other_offers = other_offers

    @property
    def index(self) -> Ranker:
        """What all tools are found by."""
        return self._indexing.index

    def is_read(self, servers: Collection[ServerName], /) -> bool:
        """Whether something of each of these servers of which it is known can be found."""
        return self._indexing.is_read(servers) and self.other_offers.is_ready(servers)


class NarrowView:
    """What clients of one profile look through."""

    def __init__(
        self, narrowing: Narrowing, look: Look, indexing: Indexing, changed: Signal
    ) -> None:
        self._narrowing = narrowing
        self._look = look
        self._indexing = indexing
        self._changed = changed
        self._staged: dict[ServerName, Sequence[ToolEntry]] = {}
        self._index: Growing | None = None
        self._other_offers = OtherOffers(self._seen, changed, has_read=True)

    @property
    def index(self) -> Growing:
        """What the tools of the profile are found by."""
        if self._index is None:
            # The first list does not wait for what only searches take.
            from aggregator.search.index import Index  # noqa: PLC0415 - see above

            self._index = Index([*self._seen.config.enabled])
        return self._index

    @property
    def other_offers(self) -> OtherOffers:
        """What is found beside the tools of the profile."""
        self._other_offers.follow(self._seen)
        return self._other_offers

    @property
    def _seen(self) -> Now:
        return self._narrowing(self._look())

    def is_read(self, servers: Collection[ServerName], /) -> bool:
        """Whether all that is known of these servers can be found."""
        return self.other_offers.is_ready(servers) and self._due().keys().isdisjoint(servers)

    async def run(self) -> None:
        """Keep what is found in step with what is known, a little at a time."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._follow)
            group.start_soon(self.other_offers.run)

    async def _follow(self) -> None:
        config = self._seen.config
        while True:
            now = self._seen
            self._other_offers.follow(now)
            if now.config is not config:
                config = now.config
                self.index.reorder(list(config.enabled))
            due = self._due()
            if not due:
                await self._changed.wait()
                continue
            server, entries = next(iter(due.items()))
            await self._stage(server, entries)
            self._changed.send()

    def _due(self) -> dict[ServerName, Sequence[ToolEntry]]:
        """Return what is not as it can be found, by whose it is."""
        known = self._seen.catalog.known
        due: dict[ServerName, Sequence[ToolEntry]] = {
            name: state.entries
            for name, state in known.items()
            if self._staged.get(name) is not state.entries
        }
        return due | dict.fromkeys(self._staged.keys() - known.keys(), ())

    async def _stage(self, server: ServerName, entries: Sequence[ToolEntry]) -> None:
        if not entries and server not in self._seen.catalog.known:
            self.index.hide(server)
            self._staged.pop(server, None)
        else:
            describe = self._seen.descriptions.get(server, "")
            steps = self.index.stage(server, entries, describe, self._indexing.index)
            with closing(steps):
                await take_steps(steps)
            self._staged[server] = entries
        await take_steps(self.index.tidy())
        await anyio.lowlevel.checkpoint()


class ProfileViews:
    """What the clients of each profile in use see."""

    def __init__(
        self, indexing: Indexing, other_offers: OtherOffers, look: Look, changed: Signal
    ) -> None:
        self._indexing = indexing
        self._whole = WholeView(indexing, other_offers)
        self._look = look
        self._changed = changed
        self._narrowings: dict[str, Narrowing] = {}
        self._profile_views: dict[str, NarrowView] = {}
        self._arrivals: list[NarrowView] = []
        self._arrived = Signal()

    def of(self, profile: str | None) -> ProfileView:
        """Return what clients of a profile look through; all there is, for those without."""
        if profile is None:
            return self._whole
        profile_view = self._profile_views.get(profile)
        if profile_view is None:
            narrowing = self._narrowing(profile)
            profile_view = NarrowView(narrowing, self._look, self._indexing, self._changed)
            self._profile_views[profile] = profile_view
            self._arrivals.append(profile_view)
            self._arrived.send()
        return profile_view

    def seen(self, profile: str | None, now: Now) -> Now:
        """Return what is known as clients of a profile see it, whether any look or not."""
        return now if profile is None else self._narrowing(profile)(now)

    def judge(self, entry: ToolEntry) -> None:
        """Find out ahead what each profile says of a tool."""
        for name in {*self._look().config.settings.views, *self._narrowings}:
            self._narrowing(name).judge(entry)

    def expect(self, config: Config, entries: Iterable[ToolEntry]) -> Generator[None, None, None]:
        """Find out what the profiles of another configuration say of tools, in small steps."""
        known = tuple(entries)
        for narrowing in tuple(self._narrowings.values()):
            yield from narrowing.expect(config, known)

    async def run(self) -> None:
        """Keep each view in step with what is known, from when somebody looks through it."""
        async with anyio.create_task_group() as group:
            while True:
                while self._arrivals:
                    group.start_soon(self._arrivals.pop().run)
                await self._arrived.wait()

    def _narrowing(self, name: str) -> Narrowing:
        return self._narrowings.setdefault(name, Narrowing(name))
