"""Processes of their own: of a server that holds what is one client's, one for each client.

Such a process is begun when its client first uses the server, and ends with the client's session.
Who has no session is known by where it comes from, and nobody says when it leaves: its process ends
when it has not been used for a while. So does, at once, one whose server cannot be reached or has
ended by itself: what it held is lost, and the next call begins another.
"""

import logging
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from dataclasses import replace
from math import inf
from typing import Any, Protocol

import anyio

from aggregator.basics.json import JsonObject
from aggregator.basics.signals import Signal
from aggregator.catalog import Failed, Pending, Ready, ServerState
from aggregator.config import IDLE_TIMEOUT, ServerConfig
from aggregator.downstream.call_slots import Party, Taken
from aggregator.downstream.news import ServerEvents
from aggregator.downstream.server import Downstream
from aggregator.errors import CrowdedError, ServerUnavailableError
from aggregator.fleet.awaiting import until_ready
from aggregator.fleet.running_servers import DRAIN_PATIENCE
from aggregator.names import ServerName

logger = logging.getLogger(__name__)

MAX_CLIENT_PROCESSES = 128
"""Processes of their own that clients may have at a time, all together."""
LISTED = 0.1
"""Seconds that a process runs which was started only to see what it offers."""


class Tenure(Protocol):
    """What of all processes that serve its clients only one may have."""

    def is_used(self) -> bool:
        """Whether it is of use still."""
        ...

    def lose(self) -> None:
        """End it, since another has it now."""
        ...


class Resident(Protocol):
    """A client that may have processes of its own, and how it is reached outside of a call."""

    @property
    def key(self) -> Hashable:
        """What tells it from others, and by which it is said to have left."""
        ...

    @property
    def party(self) -> Party:
        """Whose share of all processes its own count on."""
        ...

    @property
    def capabilities(self) -> JsonObject:
        """What it can be asked."""
        ...

    @property
    def is_seen_off(self) -> bool:
        """Whether we are told when it leaves."""
        ...

    async def claim(self, server: ServerName, tenure: Tenure, /) -> None:
        """See to it that a process of its own may be begun here, and kept while it is used.

        Raises:
            AggregatorError: It may not.
        """
        ...

    @property
    def has_left(self) -> bool:
        """Whether it has left."""
        ...

    def watched(self, server: ServerName, /) -> frozenset[str]:
        """Return which resources of a server it watches."""
        ...

    def updated(self, server: ServerName, uri: str, /) -> None:
        """Tell it that a resource has changed."""
        ...

    def logged(self, server: ServerName, params: JsonObject, /) -> None:
        """Pass on a log message that belongs to no call."""
        ...

    async def asked(self, server: ServerName, method: str, params: JsonObject, /) -> dict[str, Any]:
        """Have it answer what a server asks outside of any call."""
        ...


Make = Callable[[ServerConfig, ServerEvents, Callable[[], JsonObject], frozenset[str]], Downstream]
"""Makes a server: who hears its events, what its client can be asked, and what is watched."""


class ClientProcess:
    """One client's own process of one server."""

    def __init__(
        self,
        server: ServerConfig,
        resident: Resident,
        make: Make,
        look: Callable[["ClientProcess"], None],
    ) -> None:
        self.resident = resident
        self.scope = anyio.CancelScope()
        self.state: ServerState = Pending(since=anyio.current_time())
        self.watched = resident.watched(server.name)
        self._waiting = 0
        self._look = look
        # Nobody but its client decides how long it is kept, unless the file says so.
        self.downstream = make(as_own(server), self, lambda: resident.capabilities, self.watched)

    @property
    def name(self) -> ServerName:
        """Whose process it is."""
        return self.downstream.name

    @property
    def is_over(self) -> bool:
        """Whether it is of no more use to anybody: the process is not there, and not awaited."""
        is_coming = isinstance(self.state, Pending) and self.state.reason is None
        return not (self._waiting or self.watched or isinstance(self.state, Ready) or is_coming)

    @property
    def due(self) -> float:
        """When it ends unless it is used, where nobody would say that its client has left."""
        if self.resident.is_seen_off:
            return inf
        return self.downstream.last_use + (self.downstream.server.idle_timeout or IDLE_TIMEOUT)

    async def until_ready(self, changed: Signal) -> None:
        """Wait until it can be used.

        Raises:
            ServerUnavailableError: It did not become ready.
        """
        if isinstance(self.state, Ready):
            return
        self._waiting += 1
        try:
            await until_ready(self.downstream, lambda: self.state, changed)
        finally:
            self._waiting -= 1
            self._look(self)

    async def watch(self, uris: Collection[str]) -> None:
        """Have its client told when these resources change, and no others."""
        self.watched = frozenset(uris)
        await self.downstream.watch(uris)

    def retire(self) -> None:
        """Have those who wait for it know that nothing more is to be expected."""
        self.downstream.silence()
        self.state = Failed("its configuration has changed", anyio.current_time())

    def reported(self, _server: ServerName, state: ServerState) -> None:
        """Take note of the state of the process."""
        self.state = state
        self._look(self)

    def updated(self, server: ServerName, uri: str) -> None:
        """Tell its client that a resource has changed."""
        self.resident.updated(server, uri)

    def logged(self, server: ServerName, params: JsonObject) -> None:
        """Pass a log message on to its client."""
        self.resident.logged(server, params)

    async def asked(self, server: ServerName, method: str, params: JsonObject, /) -> dict[str, Any]:
        """Have its client answer."""
        return await self.resident.asked(server, method, params)


class ClientProcesses:
    """All that there are."""

    def __init__(
        self,
        make: Make,
        listed: Callable[[ServerName, Ready], None],
        configured: Callable[[ServerName], ServerConfig | None],
    ) -> None:
        self._make = make
        self._configured = configured
        """Returns a server as it is configured now, if each client is to have its own."""
        self._listed = listed
        """Told what a server offers, as one of its processes says."""
        self._taken: dict[tuple[ServerName, Hashable], ClientProcess] = {}
        self._held = Taken()
        self._begun: list[ClientProcess] = []
        self._ended: list[ClientProcess] = []
        self._drained: list[ClientProcess] = []
        self._changed = Signal()
        self._living: list[ServerName] = []

    def __iter__(self) -> Iterator[ClientProcess]:
        return iter(self._taken.values())

    @property
    def living(self) -> tuple[ServerName, ...]:
        """The servers of which processes have been started that have not come to their end."""
        return tuple(dict.fromkeys(self._living))

    def number(self, server: ServerName) -> int:
        """Return how many clients have a process of this server."""
        return sum(1 for process in self if process.name == server)

    async def run(self) -> None:
        """Keep processes for as long as their clients need them."""
        async with anyio.create_task_group() as group:
            while True:
                self._end_unused()
                while self._begun:
                    group.start_soon(self._keep, self._begun.pop(0))
                while self._drained:
                    group.start_soon(_drain, self._drained.pop())
                while self._ended:
                    self._ended.pop().scope.cancel()
                with anyio.CancelScope(deadline=min((each.due for each in self), default=inf)):
                    await self._changed.wait()

    def find(self, server: ServerName, key: Hashable) -> ClientProcess | None:
        """Return the process that a client has of a server, if it has one."""
        return self._taken.get((server, key))

    async def until_ready(self, server: ServerName, resident: Resident) -> None:
        """Begin a process for a client, unless it has one, and wait until it can be used.

        Raises:
            CrowdedError: There are too many.
            ServerUnavailableError: It did not become ready.
            ElsewhereError: Its processes are in another replica.
        """
        if (process := self.find(server, resident.key)) is None:
            await resident.claim(server, _Tenancy(self, server, resident.key))
            # What is configured may have changed meanwhile.
            process = self.find(server, resident.key) or self._begin(server, resident)
        await process.until_ready(self._changed)

    def give_up(self, server: ServerName, key: Hashable) -> None:
        """End the process that a client has of a server, since it has one elsewhere."""
        if (process := self.find(server, key)) is not None:
            logger.warning("stopped, since its client has one elsewhere", extra={"server": server})
            self._end(process)

    def leave(self, key: Hashable) -> None:
        """End all processes of a client that has left."""
        for process in [each for each in self if each.resident.key == key]:
            self._end(process)

    def reconfigure(self, servers: Mapping[ServerName, ServerConfig]) -> None:
        """Go over to another configuration: who is reached otherwise ends, once it is free."""
        for process in list(self):
            server = servers.get(process.name)
            if server is None or not process.downstream.server.is_reached_like(server):
                process.retire()
                self._forget(process)
                self._drained.append(process)
            elif process.downstream.server != as_own(server):
                process.downstream.reconfigure(as_own(server))
        self._changed.send()

    async def tell_roots_changed(self, key: Hashable) -> None:
        """Tell the processes of a client that its roots have changed."""
        for process in [each for each in self if each.resident.key == key]:
            await process.downstream.tell_roots_changed()

    async def watch(self, server: ServerName, key: Hashable, uris: Collection[str]) -> None:
        """Have a client told when these resources change, and no others.

        Where it has no process now, the next is told from the beginning.

        Raises:
            MCPError: The server refuses.
        """
        if (process := self.find(server, key)) is not None:
            await process.watch(uris)
            self._look(process)

    def _begin(self, name: ServerName, resident: Resident) -> ClientProcess:
        if resident.has_left:
            raise ServerUnavailableError(name, "its client has left")
        if (server := self._configured(name)) is None:
            raise ServerUnavailableError(name, "its configuration has changed")
        if not self._held.fits_one_more(resident.party, MAX_CLIENT_PROCESSES):
            raise CrowdedError(server.name, self._held.total)
        process = ClientProcess(server, resident, self._make, self._look)
        self._taken[server.name, resident.key] = process
        self._held.change(resident.party, 1)
        self._begun.append(process)
        self._changed.send()
        return process

    async def _keep(self, process: ClientProcess) -> None:
        """Run a client's process until it ends."""
        self._living.append(process.name)
        try:
            with process.scope:
                await process.downstream.run()
        finally:
            self._living.remove(process.name)

    def _look(self, process: ClientProcess) -> None:
        """Take note that something about a process has changed."""
        if isinstance(process.state, Ready) and not process.state.offers.unlisted:
            self._listed(process.name, process.state)
        if process.is_over:
            self._end(process)
        self._changed.send()

    def _end_unused(self) -> None:
        time = anyio.current_time()
        for process in [each for each in self if each.due <= time]:
            logger.info("stopped, since its client has gone away", extra={"server": process.name})
            self._end(process)

    def _end(self, process: ClientProcess) -> None:
        """Have a process end now, and another take its place when it is needed."""
        if self.find(process.name, process.resident.key) is process:
            self._forget(process)
            self._ended.append(process)
            self._changed.send()

    def _forget(self, process: ClientProcess) -> None:
        del self._taken[process.name, process.resident.key]
        self._held.change(process.resident.party, -1)


class _Tenancy:
    """That a client has its process of a server here, and nowhere else."""

    def __init__(
        self, client_processes: ClientProcesses, server: ServerName, key: Hashable
    ) -> None:
        self._client_processes = client_processes
        self._server = server
        self._key = key

    def is_used(self) -> bool:
        return self._client_processes.find(self._server, self._key) is not None

    def lose(self) -> None:
        self._client_processes.give_up(self._server, self._key)


def as_own(server: ServerConfig) -> ServerConfig:
    """Return a server as one client has it: kept until the file or its client says otherwise."""
    return replace(server, start="eager")


def as_listed(server: ServerConfig) -> ServerConfig:
    """Return a server as it is run for nobody: only to see what it offers."""
    return replace(server, start="lazy", idle_timeout=LISTED)


async def _drain(process: ClientProcess) -> None:
    """End a process that is no longer configured, once its calls in flight have ended."""
    await process.downstream.retire(DRAIN_PATIENCE)
    process.scope.cancel()
