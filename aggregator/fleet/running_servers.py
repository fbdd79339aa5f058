"""The servers that run: each in a task of its own, from when it comes until it is let go."""

from collections.abc import Awaitable, Callable, Iterator, Mapping

import anyio

from aggregator.basics.frozen import frozen
from aggregator.basics.signals import Signal
from aggregator.config import Config, ServerConfig
from aggregator.downstream.server import Downstream
from aggregator.names import ServerName

DRAIN_PATIENCE = 30.0
"""Seconds that calls in flight have, when their server is no longer configured."""


@frozen
class Running:
    """One of these servers, and what ends it."""

    downstream: Downstream
    scope: anyio.CancelScope


class RunningServers(Mapping[ServerName, Downstream]):
    """The servers of a configuration, by name and in its order."""

    def __init__(
        self,
        make: Callable[[ServerConfig], Downstream],
        prepare: Callable[[Downstream], Awaitable[None]],
    ) -> None:
        self._make = make
        self._prepare = prepare
        """Tells a server what it is to know before it runs."""
        self._members: dict[ServerName, Running] = {}
        self._arrivals: list[Running] = []
        self._leavers: list[Running] = []
        self._living: list[ServerName] = []
        self._changed = Signal()

    def __getitem__(self, name: ServerName) -> Downstream:
        return self._members[name].downstream

    def __iter__(self) -> Iterator[ServerName]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    @property
    def living(self) -> tuple[ServerName, ...]:
        """Those that have been started and have not come to their end."""
        return tuple(self._living)

    @property
    def queued(self) -> set[ServerName]:
        """Those that are to start, and it is not their turn yet."""
        return {name for name, downstream in self.items() if downstream.is_queued}

    def configure(self, config: Config) -> frozenset[ServerName]:
        """Have the servers of a configuration; return those of before that it reaches alike."""
        kept = _kept(self._members, config)
        leavers = [each for name, each in self._members.items() if name not in kept]
        for each in leavers:
            each.downstream.silence()
        self._leavers += leavers
        self._arrivals = [each for each in self._arrivals if kept.get(each.downstream.name) is each]
        members: dict[ServerName, Running] = {}
        for name, server in config.enabled.items():
            if name in kept:
                members[name] = kept[name]
            else:
                members[name] = Running(self._make(server), anyio.CancelScope())
                self._arrivals.append(members[name])
        self._members = members
        self._changed.send()
        return frozenset(kept)

    async def run(self) -> None:
        """Run whoever comes and let go of whoever leaves, until cancelled."""
        async with anyio.create_task_group() as group:
            while True:
                while self._leavers:
                    group.start_soon(_let_go, self._leavers.pop())
                while self._arrivals:
                    group.start_soon(self._keep, self._arrivals.pop(0))
                await self._changed.wait()

    async def _keep(self, member: Running) -> None:
        """Run a server until it is let go."""
        self._living.append(member.downstream.name)
        try:
            with member.scope:
                await self._prepare(member.downstream)
                await member.downstream.run()
        finally:
            self._living.remove(member.downstream.name)


def _kept(members: Mapping[ServerName, Running], config: Config) -> dict[ServerName, Running]:
    """Return the members that another configuration has too, however it treats them."""
    return {
        name: member
        for name, member in members.items()
        if (server := config.enabled.get(name)) is not None
        and member.downstream.server.is_reached_like(server)
    }


async def _let_go(member: Running) -> None:
    """End a server that is no longer configured, once its calls in flight have ended."""
    await member.downstream.retire(DRAIN_PATIENCE)
    member.scope.cancel()
