"""All servers at once: run each, fold what they report into the current catalog."""

import random
from collections.abc import Callable, Collection, Mapping
from typing import Any

import anyio
import anyio.abc
from mcp.shared.dispatcher import ProgressFnT

from aggregator.catalog import Catalog, Failed, JsonObject, Pending, Ready, ServerState, ToolEntry
from aggregator.config import Config, ServerConfig
from aggregator.connect import Connect
from aggregator.downstream import Downstream
from aggregator.errors import ServerUnavailableError
from aggregator.names import Ambiguous, Lookup, ServerName, ToolName
from aggregator.search import Index

STARTING_AT_ONCE = 8
"""Servers that start side by side before the next one is given a moment's delay."""
STARTING_PACE = 0.25
"""Seconds the next server waits at the most while that many are still starting."""


class Fleet:
    """The servers, the catalog of what they offer, and the way to call it."""

    def __init__(
        self,
        config: Config,
        *,
        connect: Callable[[ServerConfig], Connect],
        identity: JsonObject,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.config = config
        enabled = config.enabled.values()
        self.catalog = Catalog.starting((server.name for server in enabled), anyio.current_time())
        """What is known now: the one cell that requests read. Replaced, never changed."""
        self.index = Index([server.name for server in enabled])
        self.changed = anyio.Event()
        """Set when the catalog is replaced, and itself replaced with it."""
        self._lookup = Lookup.of(())
        self._looked_up = self.catalog
        self._downstreams = {
            server.name: Downstream(
                server,
                connect=connect(server),
                report=self._report,
                jitter=jitter,
                identity=identity,
            )
            for server in enabled
        }

    @property
    def descriptions(self) -> Mapping[ServerName, str]:
        """What the configuration says of each server."""
        return {name: server.description for name, server in self.config.enabled.items()}

    @property
    def lookup(self) -> Lookup:
        """The way from what a model calls a tool to its name."""
        if self._looked_up is not self.catalog:
            entries = self.catalog.entries.values()
            self._lookup = Lookup.of((each.name, each.server, each.own_name) for each in entries)
            self._looked_up = self.catalog
        return self._lookup

    def find(self, text: str) -> ToolName | Ambiguous | None:
        """Find the tool a text means."""
        return self.lookup.find(text)

    async def run(
        self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Keep every server connected until cancelled."""
        async with anyio.create_task_group() as group:
            task_status.started()
            for launched, downstream in enumerate(self._downstreams.values()):
                await self._pace(launched)
                group.start_soon(downstream.run)

    async def call(
        self,
        entry: ToolEntry,
        params: Mapping[str, Any],
        *,
        on_progress: ProgressFnT,
        capabilities: JsonObject | None = None,
    ) -> dict[str, Any]:
        """Call a tool and return its result as it came.

        Raises:
            CallError: The call could not be completed.
            MCPError: The server answered with an error of its own.
        """
        return await self._downstreams[entry.server].call(
            params, on_progress=on_progress, capabilities=capabilities
        )

    async def until_ready(self, server: ServerName) -> None:
        """Wake a server that is not there and wait for it, as long as it may take to start.

        Raises:
            ServerUnavailableError: It did not become ready.
        """
        if isinstance(self.catalog.servers[server], Ready):
            return
        began = anyio.current_time()
        self._downstreams[server].wake()
        with anyio.move_on_after(self.config.servers[server].connect_timeout):
            while not _is_settled(self.catalog.servers[server], began):
                await self.changed.wait()
        state = self.catalog.servers[server]
        if not isinstance(state, Ready):
            raise ServerUnavailableError(server, state.reason)

    async def until_settled(self, servers: Collection[ServerName], patience: float) -> None:
        """Wait, within bounds, until none of these servers is on its way any more."""
        with anyio.move_on_after(patience):
            while any(_is_starting(self.catalog.servers[name]) for name in servers):
                await self.changed.wait()

    async def _pace(self, launched: int) -> None:
        """Let servers that are starting get on with it, but never wait for one that hangs."""
        with anyio.move_on_after(STARTING_PACE):
            while self._starting(launched) >= STARTING_AT_ONCE:
                await self.changed.wait()

    def _starting(self, launched: int) -> int:
        states = list(self.catalog.servers.values())[:launched]
        return sum(map(_is_starting, states))

    def _report(self, server: ServerName, state: ServerState) -> None:
        self._reindex(server, self.catalog.servers[server], state)
        self.catalog = self.catalog.updated(server, state)
        announced, self.changed = self.changed, anyio.Event()
        announced.set()

    def _reindex(self, server: ServerName, before: ServerState, after: ServerState) -> None:
        if isinstance(after, Ready):
            description = self.config.servers[server].description
            self.index.update(server, after.entries, description=description)
        elif isinstance(before, Ready):
            self.index.remove(server)


def _is_starting(state: ServerState) -> bool:
    return isinstance(state, Pending) and state.phase == "starting"


def _is_settled(state: ServerState, began: float) -> bool:
    """Whether waiting any longer is pointless."""
    if isinstance(state, Failed):
        return state.since > began
    return isinstance(state, Ready)
