"""All servers at once: what they report is folded, whoever waits is woken, and nobody is lost."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from weakref import ref

import anyio
import pytest

from aggregator.app.life import IDENTITY
from aggregator.catalog import Ready
from aggregator.config import Config
from aggregator.downstream.start_queue import HOLD, StartQueue
from aggregator.downstream.transport import Connect
from aggregator.errors import ServerUnavailableError
from aggregator.fleet.fleet import STARTING_AT_ONCE, Fleet
from aggregator.names import ServerName
from tests.peers import Mortal, Peer, configured, connect_to, late, never

pytestmark = pytest.mark.anyio

DB, HUNG = ServerName("db"), ServerName("hung")


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


@asynccontextmanager
async def running(config: Config, **ways: Connect) -> AsyncGenerator[Fleet, None]:
    starting = Fleet(config, connect=lambda server: ways[server.name], identity=IDENTITY)
    async with kept(starting) as fleet:
        yield fleet


@asynccontextmanager
async def kept(fleet: Fleet) -> AsyncGenerator[Fleet, None]:
    async with anyio.create_task_group() as group:
        await group.start(fleet.run)
        yield fleet
        group.cancel_scope.cancel()


async def test_a_request_that_read_now_goes_on_with_what_it_read() -> None:
    async with running(configured({DB: {}}), db=late(connect_to(Peer("query")), 5)) as fleet:
        before = fleet.now
        await anyio.sleep(6)

        assert before.catalog.pending == (DB,)
        assert list(fleet.now.catalog.entries) == ["db__query"]


async def test_whoever_waits_for_a_server_goes_on_the_moment_it_is_ready() -> None:
    async with running(configured({DB: {}}), db=late(connect_to(Peer("query")), 5)) as fleet:
        began = anyio.current_time()
        await fleet.until_ready(DB)

        assert anyio.current_time() - began == 5
        assert isinstance(fleet.now.catalog.servers[DB], Ready)


async def test_a_server_that_hangs_is_waited_for_no_longer_than_it_may_take_to_start() -> None:
    config = configured({HUNG: {"connect_timeout": 7.0}})
    async with running(config, hung=never()) as fleet:
        began = anyio.current_time()
        with pytest.raises(ServerUnavailableError):
            await fleet.until_ready(HUNG)

        assert anyio.current_time() - began == 7


async def test_those_who_wait_for_several_wait_for_those_only() -> None:
    ways = {"db": late(connect_to(Peer("query")), 2), "hung": never()}
    async with running(configured({DB: {}, HUNG: {}}), **ways) as fleet:
        began = anyio.current_time()
        await fleet.awaiting.until_settled([DB], patience=30)
        assert anyio.current_time() - began == 2

        await fleet.awaiting.until_settled([DB, HUNG], patience=3)
        assert anyio.current_time() - began == 5


async def test_many_servers_start_in_turns_and_none_waits_for_one_that_hangs() -> None:
    names = [ServerName(f"hung{number}") for number in range(STARTING_AT_ONCE)]
    config = configured({name: {} for name in [*names, DB]})
    ways = {name: never() for name in names} | {"db": connect_to(Peer("query"))}
    async with running(config, **ways) as fleet:
        began = anyio.current_time()
        await fleet.awaiting.until_settled([DB], patience=30)

        assert anyio.current_time() - began == HOLD


async def test_servers_start_one_after_the_other_until_there_is_haste() -> None:
    ways = {f"s{number}": Mortal(late(connect_to(Peer("do")), 1)) for number in range(3)}
    config = configured({name: {} for name in ways})
    start_queue = StartQueue(STARTING_AT_ONCE, is_open=False)
    starting = Fleet(
        config, connect=lambda server: ways[server.name], identity=IDENTITY, start_queue=start_queue
    )
    async with kept(starting) as fleet:
        await anyio.sleep(0.1)
        assert [way.opened for way in ways.values()] == [[0.0], [], []]

        fleet.hasten()
        await fleet.awaiting.until_settled(fleet.now.catalog.servers, patience=30)

        assert [len(way.opened) for way in ways.values()] == [1, 1, 1]
        assert round(anyio.current_time(), 3) == 1.1


async def test_a_server_that_is_no_longer_configured_cannot_be_asked() -> None:
    async with running(configured({DB: {}}), db=connect_to(Peer("query"))) as fleet:
        await fleet.until_ready(DB)
        assert fleet.server(DB).name == DB

        fleet.reconfigure(configured({}))

        with pytest.raises(ServerUnavailableError, match="no longer configured"):
            fleet.server(DB)
        with pytest.raises(ServerUnavailableError, match="no longer configured"):
            await fleet.until_ready(DB)


async def test_a_problem_with_the_file_is_a_change_that_is_told_once() -> None:
    async with running(configured({DB: {}}), db=connect_to(Peer("query"))) as fleet:
        await fleet.until_ready(DB)
        told: list[str | None] = []

        async def listen() -> None:
            while True:
                await fleet.changed.wait()
                told.append(fleet.now.problem)

        async with anyio.create_task_group() as group:
            group.start_soon(listen)
            for problem in ("odd", "odd", "other"):
                await anyio.sleep(1)
                fleet.report_problem(problem)
            await anyio.sleep(1)
            group.cancel_scope.cancel()

    assert told == ["odd", "other"]


class Said(dict[str, Any]):
    """What a client says, of which can be told when nobody has it any more."""


@pytest.mark.parametrize("is_shared", [False, True])
async def test_nothing_is_kept_of_clients_that_no_server_is_told(*, is_shared: bool) -> None:
    fleet = Fleet(
        configured({}), connect=lambda _server: never(), identity=IDENTITY, is_shared=is_shared
    )
    said, forms = Said({"some/extension": {}}), Said()
    kept = [ref(said)] + [ref(forms)] * is_shared
    fleet.meet({"elicitation": forms, "extensions": said})
    del said, forms

    assert [each() for each in kept] == [None] * len(kept)
