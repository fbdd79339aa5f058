"""All servers at once: run each, fold what they report into the current catalog."""

import random
from collections.abc import Callable, Collection
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol

import anyio
import anyio.abc

from aggregator.catalog import Catalog, Failed, Pending, Ready, ServerState
from aggregator.config import Config, ServerConfig
from aggregator.downstream.eras import Eras
from aggregator.downstream.introduction import Ourselves
from aggregator.downstream.questions import joint
from aggregator.downstream.server import Downstream
from aggregator.downstream.transport import Connect
from aggregator.errors import ServerUnavailableError
from aggregator.fleet.indexing import Indexing
from aggregator.fleet.now import Now
from aggregator.json import JsonObject
from aggregator.memory import Memory, NoMemory
from aggregator.names import ServerName
from aggregator.search.hits import Ranker
from aggregator.search.semantic.meaning import Meaning, NoMeaning
from aggregator.signals import Signal

STARTING_AT_ONCE = 8
"""Servers that start side by side before the next one is given a moment's delay."""
MAX_KINDS_OF_CLIENT = 32
"""Differently able clients that are told apart."""
DRAIN_PATIENCE = 30.0
"""Seconds that calls in flight have, when their server is no longer configured."""
STARTING_PACE = 0.25
"""Seconds the next server waits at the most while that many are still starting."""


class FleetEvents(Protocol):
    """What servers tell of that is no state of theirs; nothing of it may block."""

    def updated(self, server: ServerName, uri: str, /) -> None:
        """Take note that a server says a resource has changed."""
        ...

    def logged(self, server: ServerName, params: JsonObject, /) -> None:
        """Take note of a log message that belongs to no call."""
        ...


class NoEvents:
    """Nobody is interested."""

    def updated(self, _server: ServerName, _uri: str, /) -> None:
        """Forget it."""

    def logged(self, _server: ServerName, _params: JsonObject, /) -> None:
        """Forget it."""


@dataclass(frozen=True, slots=True)
class Member:
    """One server of the fleet, as it was configured."""

    server: ServerConfig
    downstream: Downstream
    scope: anyio.CancelScope


class Fleet:
    """The servers, the catalog of what they offer, and the way to call it."""

    def __init__(
        self,
        config: Config,
        *,
        connect: Callable[[ServerConfig], Connect],
        identity: JsonObject,
        jitter: Callable[[], float] = random.random,
        memory: Memory | None = None,
        meaning: Meaning | None = None,
        events: FleetEvents | None = None,
    ) -> None:
        self.now = Now.starting(config, anyio.current_time())
        """The one cell that requests read. Replaced, never changed."""
        self.changed = Signal()
        """Sent when `now` is replaced."""
        self.meaning = meaning or NoMeaning()
        self._indexing = Indexing(list(config.enabled), describe=self._description)
        self._clients: list[JsonObject] = []
        self._watched: dict[ServerName, frozenset[str]] = {}
        eras = Eras(memory or NoMemory())
        ours = Ourselves(identity, lambda: joint(self._clients))
        self._events = events or NoEvents()

        def recruit(server: ServerConfig) -> Member:
            return Member(
                server,
                Downstream(
                    server,
                    connect(server),
                    self,
                    ours=ours,
                    eras=eras,
                    jitter=jitter,
                    watched=self._watched.get(server.name, frozenset()),
                ),
                anyio.CancelScope(),
            )

        self._recruit = recruit
        self._members = {name: recruit(server) for name, server in config.enabled.items()}
        self._arrivals = list(self._members.values())
        self._leavers: list[Member] = []
        self._reconfigured = Signal()

    @property
    def index(self) -> Ranker:
        """What the tools in the catalog are found by."""
        return self._indexing.index

    async def run(
        self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Keep every server connected until cancelled."""
        async with anyio.create_task_group() as group:
            task_status.started()
            group.start_soon(self._show_what_is_read)
            while True:
                while self._leavers:
                    group.start_soon(_let_go, self._leavers.pop())
                if not self._arrivals:
                    await self._reconfigured.wait()
                    continue
                await self._pace()
                # Whoever was to start may have left the configuration in the meantime.
                if self._arrivals:
                    group.start_soon(_keep, self._arrivals.pop(0))

    def reconfigure(self, config: Config) -> None:
        """Go over to another configuration, touching only the servers that it changes."""
        kept = {
            name: member
            for name, member in self._members.items()
            if config.enabled.get(name) == member.server
        }
        leavers = [each for name, each in self._members.items() if name not in kept]
        for each in leavers:
            each.downstream.silence()
        self._leavers += leavers
        self._arrivals = [each for each in self._arrivals if kept.get(each.server.name) is each]
        members: dict[ServerName, Member] = {}
        states: dict[ServerName, ServerState] = {}
        before = self.now.catalog.servers
        for name, server in config.enabled.items():
            members[name] = kept.get(name) or self._recruit(server)
            pending = Pending(since=anyio.current_time())
            states[name] = before[name] if name in kept else pending
            if name not in kept:
                self._arrivals.append(members[name])
        for name in before.keys() - kept.keys():
            self._indexing.take(name, before[name], Pending())
        self._indexing.index.reorder(list(states))
        self._members = members
        self._become(self.now.with_config(config, Catalog(states)))
        self._reconfigured.send()

    def report_problem(self, problem: str) -> None:
        """Take note of why the file as it is now cannot be used."""
        if problem != self.now.problem:
            self._become(self.now.with_problem(problem))

    def server(self, name: ServerName) -> Downstream:
        """Return a server that is configured.

        Raises:
            ServerUnavailableError: It is no longer so.
        """
        member = self._members.get(name)
        if member is None:
            raise ServerUnavailableError(name, "it is no longer configured")
        return member.downstream

    async def watch(self, server: ServerName, uris: Collection[str]) -> None:
        """Be told when these resources of a server change, and no others.

        Raises:
            MCPError: The server refuses.
        """
        self._watched[server] = frozenset(uris)
        if (member := self._members.get(server)) is not None:
            await member.downstream.watch(uris)

    def meet(self, capabilities: JsonObject) -> None:
        """Take note of what a client can be asked, for servers that start later."""
        if capabilities not in self._clients and len(self._clients) < MAX_KINDS_OF_CLIENT:
            self._clients.append(capabilities)

    async def until_ready(self, server: ServerName) -> None:
        """Wake a server that is not there and wait for it, as long as it may take to start.

        Raises:
            ServerUnavailableError: It did not become ready.
        """
        before = self._state(server)
        if isinstance(before, Ready):
            return
        self.server(server).wake()
        with anyio.move_on_after(self.now.config.servers[server].connect_timeout):
            while not _is_settled(self._state(server), before):
                await self.changed.wait()
        state = self._state(server)
        if not isinstance(state, Ready):
            raise ServerUnavailableError(server, state.reason)

    async def until_settled(self, servers: Collection[ServerName], patience: float) -> None:
        """Wait, within bounds, until none of these servers is on its way any more."""
        with anyio.move_on_after(patience):
            while any(_is_starting(self._state(name)) for name in servers):
                await self.changed.wait()

    def _state(self, server: ServerName) -> ServerState:
        """Return the state of a server, also of one that has been taken out of the file."""
        return self.now.catalog.servers.get(server) or Failed("it is no longer configured")

    async def _pace(self) -> None:
        """Let servers that are starting get on with it, but never wait for one that hangs."""
        with anyio.move_on_after(STARTING_PACE):
            while self._starting() >= STARTING_AT_ONCE:
                await self.changed.wait()

    def _starting(self) -> int:
        waiting = {member.server.name for member in self._arrivals}
        servers = self.now.catalog.servers.items()
        return sum(1 for name, state in servers if _is_starting(state) and name not in waiting)

    def reported(self, server: ServerName, state: ServerState) -> None:
        """Take note of the new state of a server that is still configured."""
        if server in self._members and self._indexing.take(server, self._state(server), state):
            self._become(self.now.with_state(server, state))

    async def _show_what_is_read(self) -> None:
        async with aclosing(self._indexing.read()) as read:
            async for server, state in read:
                self._become(self.now.with_state(server, state))

    def _become(self, now: Now) -> None:
        """Have requests that come from here on work on another value."""
        self.now = now
        self.meaning.follow(now.catalog)
        self.changed.send()

    def updated(self, server: ServerName, uri: str) -> None:
        """Take note that a server says a resource has changed."""
        self._events.updated(server, uri)

    def logged(self, server: ServerName, params: JsonObject) -> None:
        """Take note of a log message that belongs to no call."""
        self._events.logged(server, params)

    def _description(self, server: ServerName) -> str:
        return self.now.descriptions.get(server, "")


async def _keep(member: Member) -> None:
    """Run a server until it is let go."""
    with member.scope:
        await member.downstream.run()


async def _let_go(member: Member) -> None:
    """End a server that is no longer configured, once its calls in flight have ended."""
    await member.downstream.retire(DRAIN_PATIENCE)
    member.scope.cancel()


def _is_starting(state: ServerState) -> bool:
    return isinstance(state, Pending) and state.phase == "starting"


def _is_settled(state: ServerState, before: ServerState) -> bool:
    """Whether waiting any longer is pointless: it is there, or another attempt has failed."""
    if isinstance(state, Ready):
        return True
    is_given_up = isinstance(state, Failed) or state.phase == "cooling down"
    return is_given_up and state is not before
