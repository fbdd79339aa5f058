"""Telling modern clients that listen of what changed, those of each profile of what they see."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

import anyio
import mcp_types as types
from mcp.server.subscriptions import (
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)
from mcp.shared.subscriptions import ServerEvent

from aggregator.basics.signals import Signal
from aggregator.upstream.announcing import Queue, Subject, Wait, announce
from aggregator.upstream.bus import Bus
from aggregator.upstream.caller import Context
from aggregator.upstream.watches import Watcher

Tell = Callable[[], Awaitable[None]]
"""Tells one client, or all that listen, that a list changed."""


class Channel:
    """All modern clients of one profile that listen."""

    def __init__(self, watcher: Watcher, pass_on: Callable[[str], None] | None = None) -> None:
        """Tell clients, and others who have some: `pass_on` takes the name of what changed."""
        self._bus = Bus()
        self._pass_on = pass_on
        self._listener = ListenHandler(self._bus)
        self.watcher = watcher

    async def listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Tell a client of what it asks to be told of, for as long as it listens."""
        return await self._listener(ctx, params)

    def greet_next(self) -> None:
        """Have whoever is the next to listen told that the list of tools has changed."""
        self._bus.greet_next(ToolsListChanged())

    def telling(self, event: ServerEvent) -> Tell:
        """Return what tells all who listen of something."""

        async def tell() -> None:
            if self._pass_on is not None:
                self._pass_on(type(event).__name__)
            await self._bus.publish(event)

        return tell

    async def hear(self, what: object) -> None:
        """Tell all who listen here of what has changed for them elsewhere."""
        if isinstance(what, str) and what in LISTS:
            await self._bus.publish(LISTS[what])

    async def run(self, changed: Wait, subjects: Sequence[Subject]) -> None:
        """Tell of changes until cancelled."""

        async def updated(uri: str) -> None:
            await self._bus.publish(ResourceUpdated(uri))

        async with anyio.create_task_group() as group:
            group.start_soon(self.watcher.run, updated)
            # All who listen are told at once, of which the bus takes care.
            await announce(changed, subjects, Queue())


TOOLS, PROMPTS, RESOURCES = ToolsListChanged(), PromptsListChanged(), ResourcesListChanged()
LISTS: Mapping[str, ServerEvent] = {
    type(each).__name__: each for each in (TOOLS, PROMPTS, RESOURCES)
}


class Channels:
    """The channel of each profile whose clients listen."""

    def __init__(
        self,
        begin: Callable[[str | None], Channel],
        subjects: Callable[[str | None, Channel], Sequence[Subject]],
    ) -> None:
        self._begin = begin
        self._subjects = subjects
        self._known: dict[str | None, Channel] = {}
        self._arrivals: list[str | None] = []
        self._arrived = Signal()

    def of(self, profile: str | None) -> Channel:
        """Return the channel of a profile, from here on if there was none."""
        if profile not in self._known:
            self._known[profile] = self._begin(profile)
            self._arrivals.append(profile)
            self._arrived.send()
        return self._known[profile]

    async def hear(self, profile: str | None, what: object) -> None:
        """Tell who listens of what changed elsewhere; from here on, others hear of it from us."""
        await self.of(profile).hear(what)

    async def run(self, changed: Wait) -> None:
        """Tell whoever listens of changes until cancelled."""
        self.of(None)
        async with anyio.create_task_group() as group:
            while True:
                for profile in self._arrivals:
                    channel = self._known[profile]
                    group.start_soon(channel.run, changed, self._subjects(profile, channel))
                self._arrivals.clear()
                await self._arrived.wait()
