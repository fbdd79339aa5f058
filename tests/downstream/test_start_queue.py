"""A few servers start at a time, whoever is waited for first, and nobody waits for one that hangs.

The machine is made of virtual time: each server needs so many seconds of a processor, and has its
share of those that there are.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest

from aggregator.app.life import IDENTITY
from aggregator.catalog import Ready
from aggregator.downstream.start_queue import HOLD, LONGEST_HOLD, StartQueue
from aggregator.downstream.transport import Connect, Transport
from aggregator.errors import ServerUnavailableError
from aggregator.fleet.fleet import Fleet
from aggregator.names import ServerName
from tests.peers import Mortal, Peer, configured, connect_to, late, never

pytestmark = pytest.mark.anyio

QUANTUM = 0.05
"""Seconds for which a process has its share of a processor before that is looked at again."""


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


class Machine:
    """Some processors, and what runs on them."""

    def __init__(self, processors: int) -> None:
        self._processors = processors
        self.running = 0
        self.most = 0

    def share(self, _starting: int = 0) -> float:
        return min(1.0, self._processors / max(1, self.running))

    def run(self, connect: Connect, seconds: float) -> Connect:
        """Return a way to a server that takes so many seconds of a processor to start."""

        @asynccontextmanager
        async def connect_after_work() -> AsyncGenerator[Transport, None]:
            self.running += 1
            self.most = max(self.most, self.running)
            left = seconds
            try:
                while left > 0:
                    await anyio.sleep(QUANTUM)
                    left -= QUANTUM * self.share()
            finally:
                self.running -= 1
            async with connect() as transport:
                yield transport

        return connect_after_work


@asynccontextmanager
async def started(
    start_queue: StartQueue, ways: dict[str, Connect], **options: object
) -> AsyncGenerator[Fleet, None]:
    config = configured({name: {"connect_timeout": 5.0, **options} for name in ways})
    fleet = Fleet(
        config, connect=lambda server: ways[server.name], identity=IDENTITY, start_queue=start_queue
    )
    async with anyio.create_task_group() as group:
        await group.start(fleet.run)
        yield fleet
        group.cancel_scope.cancel()


def crowd(machine: Machine, number: int, seconds: float) -> dict[str, Mortal]:
    return {
        f"s{each:02}": Mortal(machine.run(connect_to(Peer("do")), seconds))
        for each in range(number)
    }


async def test_none_of_many_is_ended_because_we_started_too_many() -> None:
    machine = Machine(2)
    ways = crowd(machine, 29, seconds=1.5)
    async with started(StartQueue(4, machine.share), {**ways}) as fleet:
        await fleet.awaiting.until_settled(fleet.now.catalog.servers, patience=100)

        assert all(isinstance(each, Ready) for each in fleet.now.catalog.servers.values())
        assert [len(way.opened) for way in ways.values()] == [1] * 29
        # Two processors have 43.5 seconds of work, and nobody waits while there is one to spare.
        assert anyio.current_time() < 25
    assert machine.most < 20


async def test_nor_on_a_machine_that_others_keep_busy() -> None:
    machine = Machine(2)
    machine.running = 20
    ways = crowd(machine, 4, seconds=2)
    async with started(StartQueue(4, machine.share), {**ways}) as fleet:
        await fleet.awaiting.until_settled(fleet.now.catalog.servers, patience=100)

        # Each has taken three times as long as it may, and has had two seconds of it.
        assert anyio.current_time() > 15
        assert [len(way.opened) for way in ways.values()] == [1] * 4


async def test_who_waits_for_a_server_waits_for_its_turn_as_well() -> None:
    machine = Machine(1)
    machine.running = 9
    ways = crowd(machine, 2, seconds=1.5)
    async with started(StartQueue(1, machine.share), {**ways}) as fleet:
        await anyio.sleep(QUANTUM)
        await fleet.until_ready(ServerName("s01"))

        assert anyio.current_time() > 5


async def test_who_waits_for_one_that_hangs_does_not_wait_for_ever() -> None:
    async with started(StartQueue(1, lambda _starting: 0.1), {"hung": never()}) as fleet:
        with pytest.raises(ServerUnavailableError):
            await fleet.until_ready(ServerName("hung"))

        assert anyio.current_time() == 20


async def test_servers_start_in_the_order_of_the_file() -> None:
    ways = {f"s{each:02}": Mortal(late(connect_to(Peer("do")), 0.25)) for each in range(9)}
    async with started(StartQueue(1), {**ways}) as fleet:
        await fleet.awaiting.until_settled(fleet.now.catalog.servers, patience=100)

    assert [way.opened for way in ways.values()] == [[each / 4] for each in range(9)]


async def test_who_is_waited_for_starts_next() -> None:
    ways = {name: Mortal(late(connect_to(Peer("do")), 0.25)) for name in ("a", "b", "c")}
    async with started(StartQueue(1), {**ways}) as fleet:
        await anyio.sleep(0.1)
        await fleet.until_ready(ServerName("c"))
        await fleet.awaiting.until_settled(fleet.now.catalog.servers, patience=100)

    assert [way.opened for way in ways.values()] == [[0.0], [0.5], [0.25]]


async def test_who_is_always_loaded_starts_before_others() -> None:
    ways = {name: Mortal(late(connect_to(Peer("do")), 0.25)) for name in ("a", "b", "c")}
    config = configured({"a": {}, "b": {}, "c": {"always_load": True}})
    fleet = Fleet(
        config,
        connect=lambda server: ways[server.name],
        identity=IDENTITY,
        start_queue=StartQueue(1),
    )
    async with anyio.create_task_group() as group:
        await group.start(fleet.run)
        await fleet.awaiting.until_settled(fleet.now.catalog.servers, patience=100)
        group.cancel_scope.cancel()

    assert [way.opened for way in ways.values()] == [[0.25], [0.5], [0.0]]


async def test_those_that_hang_are_soon_passed_over() -> None:
    ways: dict[str, Connect] = {f"hung{each}": never() for each in range(8)}
    async with started(StartQueue(4), {**ways, "good": connect_to(Peer("do"))}) as fleet:
        await fleet.awaiting.until_settled([ServerName("good")], patience=100)

        assert anyio.current_time() == 2 * HOLD


async def test_and_that_is_bounded_however_busy_the_machine_is() -> None:
    ways: dict[str, Connect] = {"hung": never(), "good": connect_to(Peer("do"))}
    async with started(StartQueue(1, lambda _starting: 0.001), ways) as fleet:
        await fleet.awaiting.until_settled([ServerName("good")], patience=100)

        assert anyio.current_time() == LONGEST_HOLD


async def test_a_server_elsewhere_takes_no_processor_of_ours() -> None:
    ways = {f"far{each}": late(connect_to(Peer("do")), 1) for each in range(20)}
    async with started(StartQueue(1), {**ways}, type="http") as fleet:
        await fleet.awaiting.until_settled(fleet.now.catalog.servers, patience=100)

        assert anyio.current_time() == 1


async def test_who_leaves_the_queue_leaves_nothing_behind() -> None:
    start_queue = StartQueue(1)
    ways: dict[str, Connect] = {"hung": never(), "other": connect_to(Peer("do"))}
    async with started(start_queue, ways) as fleet:
        await anyio.sleep(0.1)
        assert repr(start_queue) == "<StartQueue 1 starting, 1 waiting>"

        fleet.reconfigure(configured({"hung": {"connect_timeout": 5.0}}))
        await anyio.sleep(0.1)
        assert repr(start_queue) == "<StartQueue 1 starting, 0 waiting>"
    assert repr(start_queue) == "<StartQueue 0 starting, 0 waiting>"
