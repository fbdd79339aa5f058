"""All servers at once: run each, fold what they report into the current catalog."""

import logging
import random
import time
from collections.abc import Callable, Collection, Hashable, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.abc

from aggregator.basics.json import JsonObject
from aggregator.basics.signals import Signal
from aggregator.catalog import (
    Catalog,
    Idle,
    Pending,
    Ready,
    Scale,
    ServerState,
    ToolEntry,
    explain_unreachable,
)
from aggregator.config import Config, ServerConfig
from aggregator.downstream.eras import Eras
from aggregator.downstream.questions import askable, joint
from aggregator.downstream.review import NO_REVIEWS, Reviews
from aggregator.downstream.server import Downstream
from aggregator.downstream.start_queue import StartQueue
from aggregator.downstream.transport import Connect
from aggregator.errors import ServerUnavailableError
from aggregator.fleet.approving import Approving
from aggregator.fleet.awaiting import Awaiting, until_ready
from aggregator.fleet.client_processes import ClientProcesses, Resident, as_listed
from aggregator.fleet.events import FleetEvents, NoEvents
from aggregator.fleet.indexing import Indexing
from aggregator.fleet.last_known import LastKnown
from aggregator.fleet.now import Now, allowed
from aggregator.fleet.other_offers import OtherOffers
from aggregator.fleet.pinning import adapted
from aggregator.fleet.profile_views import ProfileViews
from aggregator.fleet.recalling import Recalling
from aggregator.fleet.running_servers import RunningServers
from aggregator.fleet.server_factory import ServerFactory
from aggregator.fleet.starting import (
    is_forgotten,
    next_forgotten,
)
from aggregator.memory import Memory, NoMemory
from aggregator.names import ServerName
from aggregator.records.events import Stream, Trouble, state_changes
from aggregator.search.hits import Ranker
from aggregator.search.semantic.meaning import Meaning, NoMeaning
from aggregator.secrecy import Redaction
from aggregator.toolsearch.offers.skills import Skill

logger = logging.getLogger(__name__)

MAX_KINDS_OF_CLIENT = 32
"""Differently able clients that are told apart."""
STARTING_AT_ONCE = 8
"""Servers that start side by side where nothing is known of the machine."""


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
        lock: Path | None = None,
        last_known: LastKnown | None = None,
        stream: Stream | None = None,
        start_queue: StartQueue | None = None,
        is_shared: bool = False,
    ) -> None:
        self._recalling = Recalling(last_known or LastKnown(None))
        known = self._recalling.recall(config.enabled)
        self.approving = Approving(
            lock,
            configured=self._configured,
            shown=self._state,
            config=config.path,
        )
        shown = {
            name: each
            for name, each in known.items()
            if not self.approving.awaits(config.servers[name])
        }
        self.now = Now.starting(config, anyio.current_time(), shown)
        """The one cell that requests read. Replaced, never changed."""
        self.changed = Signal()
        """Sent when `now` is replaced, and now and then besides."""
        self.stream = stream or Stream()
        """Told of what happens."""
        self.meaning = meaning or NoMeaning()
        self._indexing = Indexing(
            list(config.enabled),
            describe=self._description,
            restrict=lambda server, state: allowed(self.now.config, server, state),
            approval=self.approving,
            judge=self._judge,
        )
        self.other_offers = OtherOffers(self.now, self.changed)
        """What is found beside tools."""
        self.profile_views = ProfileViews(
            self._indexing, self.other_offers, lambda: self.now, self.changed
        )
        """What clients of each profile look through."""
        self._clients: list[JsonObject] = []
        """What differently able clients can be asked, and nothing else that they say."""
        self._unreachable: dict[ServerName, str] = {}
        self._watched: dict[ServerName, frozenset[str]] = {}
        self._events = events or NoEvents()
        self._start_queue = start_queue or StartQueue(STARTING_AT_ONCE)
        self._is_shared = is_shared
        eras = Eras(memory or NoMemory())
        self._server_factory = ServerFactory(
            connect, identity, eras=eras, jitter=jitter, start_queue=self._start_queue
        )
        self.client_processes = ClientProcesses(self._server_factory, self._note_listed, self._own)
        """The processes that clients have to themselves."""
        self._running = RunningServers(self._make_server, self._recalling.tell_rest)
        self._running.configure(config)
        self.awaiting = Awaiting(
            lambda: self.now,
            self.changed,
            queued=lambda: self._running.queued,
            indexing=self._indexing,
            profile_views=self.profile_views,
            approving=self.approving,
        )
        """What requests wait with for what a moment may bring."""
        self._indexing.owe(self.now.catalog)
        for downstream in self._running.values():
            self._recalling.tell(downstream)

    def _make_server(self, server: ServerConfig) -> Downstream:
        # What a server offers must not depend on which of several clients came first.
        clients = [] if self._is_shared else self._clients
        capabilities = partial(joint, clients, self._events.expected)
        watched = self._watched.get(server.name, frozenset())
        return self._server_factory(self._shown(server), self, capabilities, watched)

    def _shown(self, server: ServerConfig) -> ServerConfig:
        """Return a server as it is run for all: of one that each client has, only to be listed."""
        return as_listed(server) if self._is_shared and server.per_client else server

    def is_own(self, server: ServerName) -> bool:
        """Whether each client has a process of this server to itself."""
        return self._own(server) is not None

    def _own(self, server: ServerName) -> ServerConfig | None:
        """Return a server as it is configured now, if each client has a process to itself."""
        configured = self.now.config.servers.get(server) if self._is_shared else None
        is_own = configured is not None and configured.enabled and configured.per_client
        return configured if is_own else None

    def _note_listed(self, server: ServerName, ready: Ready) -> None:
        """Take note of what a server offers, as a client's own process of it says."""
        if not self.is_own(server) or not isinstance(self.now.state(server), Idle):
            return
        downstream = self._running[server]
        known = downstream.offered
        if known is None or replace(ready, since=known.since) != known:
            self._recalling.note(downstream.server, ready)
            downstream.recall(ready, is_current=True)

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
            group.start_soon(self.client_processes.run)
            group.start_soon(self._show_what_is_read)
            group.start_soon(self.other_offers.run)
            group.start_soon(self.profile_views.run)
            group.start_soon(self.other_offers.read, self._show_skills)
            group.start_soon(self._forget_who_stays_away)
            await self._running.run()

    @property
    def living(self) -> tuple[ServerName, ...]:
        """The servers that have been started and have not come to their end."""
        return tuple(dict.fromkeys((*self._running.living, *self.client_processes.living)))

    async def refresh(self) -> None:
        """See from time to time what servers offer that nobody has needed, one at a time."""
        await self._recalling.doubt(self.now.config.enabled)
        while True:
            idle = [name for name in self._running if isinstance(self.now.state(name), Idle)]
            oldest, due = self._recalling.next_stale(idle)
            if oldest is not None and due <= anyio.current_time():
                self._recalling.visit(oldest)
                await self._running[oldest].visit()
                continue
            with anyio.CancelScope(deadline=due):
                await self.changed.wait()

    def hasten(self) -> None:
        """Start servers side by side from here on."""
        self._start_queue.open()

    def reconfigure(self, config: Config, reviews: Reviews = NO_REVIEWS) -> None:
        """Go over to another configuration, replacing only the servers that it makes others."""
        before, since = self.now.catalog.servers, anyio.current_time()
        kept = self._running.configure(config)
        self._recalling.expect(config.enabled.keys() - kept)
        states = {
            name: before[name] if name in kept else Pending(since=since) for name in config.enabled
        }
        for name in before.keys() - kept:
            self._indexing.take(name, before[name], Pending())
        self._indexing.index.reorder(list(states))
        self._become(self.now.with_config(config, Catalog(states), reviews))
        for name in filter(kept.__contains__, config.enabled):
            downstream, shown = self._running[name], self._shown(config.servers[name])
            if downstream.server != shown:
                self._recalling.compare(downstream.server, shown)
                downstream.reconfigure(shown, reviews.get(name))
        self.client_processes.reconfigure(config.enabled)

    def redact(self) -> Redaction:
        """Return what takes all secrets of the file out of a text."""
        return Redaction(self.now.config.confidential())

    def report_problem(self, problem: str) -> None:
        """Take note of why the file as it is now cannot be used."""
        if problem != self.now.problem:
            self._become(self.now.with_problem(problem))

    def report_trouble(self, trouble: Trouble | None) -> None:
        """Take note of why calls cannot be written down, or that they can be again."""
        self.stream.report(trouble)
        self._become(replace(self.now, unaudited=trouble and trouble.reason))

    def weigh(self, scale: Scale, problem: str | None, /) -> None:
        """Take note of what definitions cost, or of why that is not known."""
        self._become(self.now.with_scale(scale, problem))

    def compare_again(self, problem: str | None) -> None:
        """Hold what is shown against what is approved now, or go on without for want of it."""
        self._indexing.look_again(self.now.catalog)
        if problem != self.now.unpinned:
            self._become(replace(self.now, unpinned=problem))
        else:
            self.changed.send()

    def server(self, name: ServerName, resident: Resident | None = None) -> Downstream:
        """Return a server that is configured, or the process that a client has of it.

        Raises:
            ServerUnavailableError: It is no longer so, or no longer there.
        """
        if resident is not None and self.is_own(name):
            client_process = self.client_processes.find(name, resident.key)
            if client_process is None:
                raise ServerUnavailableError(name, "it has ended")
            return client_process.downstream
        downstream = self._running.get(name)
        if downstream is None:
            raise ServerUnavailableError(name, "it is no longer configured")
        return downstream

    def own_state(self, name: ServerName, resident: Resident) -> ServerState | None:
        """Return the state of the process that a client has of a server, if each is to have one."""
        if not self.is_own(name):
            return None
        client_process = self.client_processes.find(name, resident.key)
        return Pending() if client_process is None else client_process.state

    async def watch(
        self, server: ServerName, uris: Collection[str], key: Hashable | None = None
    ) -> None:
        """Be told when these resources of a server, or of a client's own, change, and no others.

        Raises:
            MCPError: The server refuses.
        """
        if self.is_own(server):
            await self.client_processes.watch(server, key, uris)
            return
        self._watched[server] = frozenset(uris)
        if (downstream := self._running.get(server)) is not None:
            await downstream.watch(uris)

    def meet(self, capabilities: JsonObject) -> None:
        """Take note of what a client can be asked, for servers that start later."""
        if self._is_shared:
            return
        kind = askable(capabilities)
        if kind not in self._clients and len(self._clients) < MAX_KINDS_OF_CLIENT:
            self._clients.append(kind)

    async def until_ready(self, server: ServerName, resident: Resident | None = None) -> None:
        """Wake a server that is not there and wait for it, or for a client's own process of it.

        Raises:
            CallError: It did not become ready.
        """
        if resident is not None and self.is_own(server):
            await self.client_processes.until_ready(server, resident)
        elif not isinstance(self.now.state(server), Ready):
            await until_ready(self.server(server), lambda: self.now.state(server), self.changed)

    def reported(self, server: ServerName, state: ServerState) -> None:
        """Take note of the new state of a server that is still configured."""
        if isinstance(state, Pending) and is_forgotten(state, anyio.current_time()):
            state = replace(state, known=None)
        if server not in self._running:
            return
        if isinstance(state, Ready):
            self._recalling.note(self._running[server].server, state)
        shown = self.now.state(server)
        if self._indexing.take(server, shown, state):
            self._become(self.now.with_state(server, adapted(state, shown)))

    async def _forget_who_stays_away(self) -> None:
        """Offer no longer what servers have that are away for too long."""
        while True:
            states = self.now.catalog.servers
            with anyio.CancelScope(deadline=next_forgotten(states.values())):
                await self.changed.wait()
            time = anyio.current_time()
            for name, state in self.now.catalog.servers.items():
                if isinstance(state, Pending) and is_forgotten(state, time):
                    self.reported(name, replace(state, known=None))

    async def _show_what_is_read(self) -> None:
        async with aclosing(self._indexing.read()) as read:
            async for server, state in read:
                self._become(self.now.with_state(server, state))

    def _show_skills(self, skills: Sequence[Skill]) -> None:
        self._become(self.now.with_skills(skills))

    def _become(self, now: Now) -> None:
        """Have requests that come from here on work on another value."""
        before, self.now = self.now, now
        if self.stream.is_heard:
            for event in state_changes(before.catalog, now.catalog, time.time()):
                self.stream.tell(event)
        self._tell_unreachable()
        self.meaning.follow(now.catalog)
        self.other_offers.follow(now)
        self.changed.send()

    def _tell_unreachable(self) -> None:
        """Log, once, of each server whose names lead to another why it offers nothing by them."""
        catalog = self.now.catalog
        for server in catalog.servers:
            sentence = explain_unreachable(catalog, server)
            if sentence is not None and self._unreachable.get(server) != sentence:
                self._unreachable[server] = sentence
                logger.warning("%s", sentence, extra={"server": server})

    def updated(self, server: ServerName, uri: str) -> None:
        """Take note that a server says a resource has changed."""
        self._events.updated(server, uri)

    def logged(self, server: ServerName, params: JsonObject) -> None:
        """Take note of a log message that belongs to no call."""
        self._events.logged(server, params)

    async def asked(self, server: ServerName, method: str, params: JsonObject) -> dict[str, Any]:
        """Answer what a server asks outside of any call."""
        return await self._events.asked(server, method, params)

    async def tell_roots_changed(self, servers: Collection[ServerName] | None = None) -> None:
        """Tell these servers, or all, that the roots of their client have changed."""
        async with anyio.create_task_group() as group:
            for name, downstream in self._running.items():
                if servers is None or name in servers:
                    group.start_soon(downstream.tell_roots_changed)

    def _judge(self, entry: ToolEntry) -> None:
        self.profile_views.judge(entry)

    def _configured(self, server: ServerName) -> ServerConfig | None:
        return self.now.config.servers.get(server)

    def _state(self, server: ServerName) -> ServerState:
        return self.now.state(server)

    def _description(self, server: ServerName) -> str:
        return self.now.descriptions.get(server, "")
