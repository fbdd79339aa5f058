"""All servers at once: run each, fold what they report into the current catalog."""

import random
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import anyio
import anyio.abc

from aggregator.catalog import Catalog, Failed, Pending, Ready, ServerState
from aggregator.config import Config, ServerConfig
from aggregator.downstream.eras import Eras
from aggregator.downstream.inflight import Caller
from aggregator.downstream.link import Connect
from aggregator.downstream.questions import joint
from aggregator.downstream.server import Downstream, Surroundings
from aggregator.errors import ServerUnavailableError
from aggregator.json import JsonObject
from aggregator.memory import Memory, NoMemory
from aggregator.names import Ambiguous, Lookup, Register, ServerName, ToolName
from aggregator.search.semantic.meaning import Meaning, NoMeaning

if TYPE_CHECKING:
    from aggregator.fleet.indexing import Indexing
    from aggregator.search.index import Index

STARTING_AT_ONCE = 8
"""Servers that start side by side before the next one is given a moment's delay."""
MAX_KINDS_OF_CLIENT = 32
"""Differently able clients that are told apart."""
DRAIN_PATIENCE = 30.0
"""Seconds that calls in flight have, when their server is no longer configured."""
STARTING_PACE = 0.25
"""Seconds the next server waits at the most while that many are still starting."""


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
    ) -> None:
        self.config = config
        self.problem: str | None = None
        """Why the file as it is now is not the configuration in use, if it is not."""
        self.catalog = Catalog.starting(config.enabled, anyio.current_time())
        """What is known now: the one cell that requests read. Replaced, never changed."""
        self.meaning = meaning or NoMeaning()
        self.changed = anyio.Event()
        """Set when the catalog is replaced, and itself replaced with it."""
        self._registers: dict[ServerName, tuple[Ready, Register]] = {}
        self._lookup = Lookup()
        self._looked_up = self.catalog
        self.on_updated: Callable[[ServerName, str], None] = lambda _server, _uri: None
        """Called when a server says that one of its resources has changed."""
        self.on_logged: Callable[[ServerName, JsonObject], None] = lambda _server, _params: None
        """Called when a server logs something that belongs to no call."""
        self._clients: list[JsonObject] = []
        self._watched: dict[ServerName, frozenset[str]] = {}
        eras = Eras(memory or NoMemory())
        around = Surroundings(
            report=self._report,
            identity=identity,
            capabilities=lambda: joint(self._clients),
            on_updated=self._note_update,
            on_logged=self._note_log,
            recall_era=eras.recall,
            note_era=eras.note,
        )

        def recruit(server: ServerConfig) -> Member:
            return Member(
                server,
                Downstream(
                    server,
                    connect=connect(server),
                    jitter=jitter,
                    around=around,
                    watched=self._watched.get(server.name, frozenset()),
                ),
                anyio.CancelScope(),
            )

        self._recruit = recruit
        self._members = {name: recruit(server) for name, server in config.enabled.items()}
        self._arrivals = list(self._members.values())
        self._leavers: list[Member] = []
        self._reconfigured = anyio.Event()

    @property
    def descriptions(self) -> Mapping[ServerName, str]:
        """What the configuration says of each server."""
        return {name: server.description for name, server in self.config.enabled.items()}

    @cached_property
    def _indexing(self) -> "Indexing":
        # The first list does not wait for what only searches take.
        from aggregator.fleet.indexing import Indexing  # noqa: PLC0415 - see above

        servers = list(self.config.enabled)
        return Indexing(servers, describe=self._description, show=self._show)

    @property
    def index(self) -> "Index":
        """What the tools in the catalog are found by."""
        return self._indexing.index

    @property
    def lookup(self) -> Lookup:
        """The way from what a model calls a tool to its name."""
        if self._looked_up is not self.catalog:
            ready = [(n, s) for n, s in self.catalog.servers.items() if isinstance(s, Ready)]
            self._registers = {name: self._register(name, state) for name, state in ready}
            self._lookup = Lookup(tuple(register for _, register in self._registers.values()))
            self._looked_up = self.catalog
        return self._lookup

    def _register(self, server: ServerName, state: Ready) -> tuple[Ready, Register]:
        """Return the names of a server's tools, those known from before if they are the same."""
        known = self._registers.get(server)
        if known is not None and known[0].entries is state.entries:
            return known
        return state, Register(server, tuple((each.name, each.own_name) for each in state.entries))

    def find(self, text: str) -> ToolName | Ambiguous | None:
        """Find the tool a text means."""
        # What is written as it is listed needs no other way, which has to be found out first.
        name = ToolName(text)
        return name if name in self.catalog.entries else self.lookup.find(text)

    async def run(
        self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Keep every server connected until cancelled."""
        async with anyio.create_task_group() as group:
            task_status.started()
            group.start_soon(self._indexing.run)
            while True:
                reconfigured = self._reconfigured
                while self._leavers:
                    group.start_soon(_let_go, self._leavers.pop())
                if not self._arrivals:
                    await reconfigured.wait()
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
        for name, server in config.enabled.items():
            members[name] = kept.get(name) or self._recruit(server)
            pending = Pending(since=anyio.current_time())
            states[name] = self.catalog.servers[name] if name in kept else pending
            if name not in kept:
                self._arrivals.append(members[name])
        for name in self.catalog.servers.keys() - kept.keys():
            self._indexing.take(name, self.catalog.servers[name], Pending())
        self.index.reorder(list(states))
        self.config, self._members, self.catalog = config, members, Catalog(states)
        self._tell_of_change()
        reconfigured, self._reconfigured = self._reconfigured, anyio.Event()
        reconfigured.set()

    async def request(
        self, server: ServerName, method: str, params: Mapping[str, Any], caller: Caller
    ) -> dict[str, Any]:
        """Send a client's request to a server and return the result as it came.

        Raises:
            CallError: The request could not be completed.
            MCPError: The server answered with an error of its own.
        """
        member = self._members.get(server)
        if member is None:
            raise ServerUnavailableError(server, "it is no longer configured")
        return await member.downstream.request(method, params, caller)

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
        before = self.catalog.servers[server]
        if isinstance(before, Ready):
            return
        self._members[server].downstream.wake()
        with anyio.move_on_after(self.config.servers[server].connect_timeout):
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
        return self.catalog.servers.get(server) or Failed("it is no longer configured")

    async def _pace(self) -> None:
        """Let servers that are starting get on with it, but never wait for one that hangs."""
        with anyio.move_on_after(STARTING_PACE):
            while self._starting() >= STARTING_AT_ONCE:
                await self.changed.wait()

    def _starting(self) -> int:
        waiting = {member.server.name for member in self._arrivals}
        servers = self.catalog.servers.items()
        return sum(1 for name, state in servers if _is_starting(state) and name not in waiting)

    def _report(self, server: ServerName, state: ServerState) -> None:
        if self._indexing.take(server, self.catalog.servers[server], state):
            self._show(server, state)

    def _show(self, server: ServerName, state: ServerState) -> None:
        self.catalog = self.catalog.updated(server, state)
        self._tell_of_change()

    def _tell_of_change(self) -> None:
        self.meaning.follow(self.catalog)
        announced, self.changed = self.changed, anyio.Event()
        announced.set()

    def _note_update(self, server: ServerName, uri: str) -> None:
        self.on_updated(server, uri)

    def _note_log(self, server: ServerName, params: JsonObject) -> None:
        self.on_logged(server, params)

    def _description(self, server: ServerName) -> str:
        return self.descriptions.get(server, "")


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
