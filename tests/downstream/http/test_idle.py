"""Connections that nobody uses are closed when their time is over, and not by the next call."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import anyio
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from aggregator.downstream.http.address import Address
from aggregator.downstream.http.endpoint import KEEP_ALIVE, Endpoint, open_endpoint
from tests.downstream.http.test_wire import OK, Bare, Visit, bare, post

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    """Time stands still until a test has it pass: what comes over a socket is not waited for."""
    return "trio", {"clock": MockClock()}


async def pass_by(seconds: float) -> None:
    clock = trio.lowlevel.current_clock()
    assert isinstance(clock, MockClock)
    clock.jump(seconds)
    await wait_all_tasks_blocked()


@asynccontextmanager
async def tended() -> AsyncGenerator[tuple[Bare, Endpoint], None]:
    """Have a server that answers whatever comes, and somebody who looks after connections."""

    async def answer(visit: Visit) -> None:
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
            while True:
                await visit.read()
                await visit.say(OK)

    async with (
        bare(answer) as server,
        open_endpoint(Address(server.url)) as endpoint,
        anyio.create_task_group() as group,
    ):
        group.start_soon(endpoint.tend)
        yield server, endpoint
        group.cancel_scope.cancel()


async def test_a_connection_is_closed_once_it_is_older_than_it_is_kept() -> None:
    async with tended() as (server, endpoint):
        await post(endpoint)
        await pass_by(KEEP_ALIVE - 0.5)
        is_closed_early = server.left.is_set()
        await pass_by(0.5)

        assert not is_closed_early
        await server.left.wait()


async def test_a_connection_that_is_used_again_is_kept_anew() -> None:
    async with tended() as (server, endpoint):
        for _ in range(3):
            await post(endpoint)
            await pass_by(KEEP_ALIVE - 0.5)
        is_closed_early = server.left.is_set()
        await pass_by(0.5)
        await server.left.wait()

        assert not is_closed_early
        assert len(server.visits) == 1


async def test_a_connection_that_is_made_after_others_have_gone_is_closed_as_well() -> None:
    async with tended() as (server, endpoint):
        for _ in range(2):
            server.left = anyio.Event()
            await post(endpoint)
            await pass_by(KEEP_ALIVE)
            await server.left.wait()

        assert len(server.visits) == 2
