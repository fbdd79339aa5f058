"""A server is not stopped while it works on a task, and no longer."""

from collections.abc import Callable
from contextlib import suppress

import anyio
import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from aggregator.catalog import Idle
from aggregator.downstream.tasks import ENDING, LONGEST, MAX_HELD
from aggregator.names import ServerName
from aggregator.upstream.server import Upstream
from tests.peers import ERAS, Era, Mortal, aggregating, ready, until
from tests.raw import Dispatch, Json, raw_client
from tests.upstream.digger import CALL, CAN, Digger

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("each_way")]


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("own_id", ["t", "x" * 3000, 7])
async def test_a_server_is_kept_for_no_task_that_nobody_was_given(own_id: object, era: Era) -> None:
    digger = Digger(ttl=None)

    async def hand_over(_context: Dispatch, _params: Json) -> Json:
        return {"resultType": "task", "taskId": own_id, "status": "working"}

    digger.handlers["tools/call dig"] = hand_over
    options = {"start": "lazy", "idle_timeout": 30.0}
    can = {} if own_id == "t" else CAN
    async with aggregating({"peer": digger.connect}, peer=options) as upstream:
        await ready(upstream)
        async with raw_client(upstream, era, can) as client:
            with pytest.raises(MCPError):
                await client.request("tools/call", CALL)
            await anyio.sleep(31)
            assert _rests(upstream)


async def test_many_short_tasks_do_not_end_the_server_of_a_long_one() -> None:
    digger = Digger(ttl=None)
    options = {"start": "lazy", "idle_timeout": 30.0}
    async with aggregating({"peer": digger.connect}, peer=options) as upstream:
        await ready(upstream)
        async with raw_client(upstream, "modern", CAN) as client:
            about = {"taskId": (await client.request("tools/call", CALL))["taskId"]}
            digger.ttl = 1
            for _ in range(MAX_HELD + 1):
                await client.request("tools/call", CALL)
            await anyio.sleep(3600)
            assert (await client.request("tasks/get", about))["status"] == "working"


@pytest.mark.parametrize(("method", "seconds"), [("tasks/update", 3600), ("tasks/cancel", ENDING)])
async def test_a_server_is_kept_for_a_task_until_it_says_that_it_is_over(
    method: str, seconds: float
) -> None:
    digger = Digger(ttl=None)

    async def refuse(_context: Dispatch, _params: Json) -> Json:
        raise MCPError(types.INVALID_PARAMS, "Not these answers")

    async def agree(_context: Dispatch, _params: Json) -> Json:
        return {}

    digger.handlers |= {"tasks/update": refuse, "tasks/cancel": agree}
    options = {"start": "lazy", "idle_timeout": 30.0}
    async with aggregating({"peer": digger.connect}, peer=options) as upstream:
        await ready(upstream)
        async with raw_client(upstream, "modern", CAN) as client:
            about = {"taskId": (await client.request("tools/call", CALL))["taskId"]}
            with suppress(MCPError):
                await client.request(method, {**about, "inputResponses": {}})
            await anyio.sleep(seconds)
            assert not _rests(upstream)
            assert (await client.request("tasks/get", about))["status"] == "working"
            await anyio.sleep(3600)
            assert not _rests(upstream)


def _completed(digger: Digger) -> None:
    digger.tasks["dig-0"] |= {"status": "completed", "result": {"content": []}}


def _forgotten(digger: Digger) -> None:
    digger.tasks.clear()


@pytest.mark.parametrize("end", [_completed, _forgotten])
async def test_a_server_rests_only_when_its_tasks_are_over(end: Callable[[Digger], None]) -> None:
    digger = Digger(ttl=None)
    way = Mortal(digger.connect)
    options = {"start": "lazy", "idle_timeout": 30.0}
    async with aggregating({"peer": way}, peer=options) as upstream:
        await ready(upstream)
        async with raw_client(upstream, "modern", CAN) as client:
            handle = await client.request("tools/call", CALL)
            await anyio.sleep(3600)
            about = {"taskId": handle["taskId"]}
            assert (await client.request("tasks/get", about))["status"] == "working"
            end(digger)
            try:
                await client.request("tasks/get", about)
            except MCPError:
                assert end is _forgotten
            await anyio.sleep(29)
            assert not _rests(upstream)
            await anyio.sleep(2)
            assert _rests(upstream)

    assert len(way.opened) == 1


@pytest.mark.parametrize(("ttl", "seconds"), [(60_000, 60), (None, LONGEST), ("soon", LONGEST)])
async def test_a_server_is_kept_for_a_task_as_long_as_it_lives(ttl: object, seconds: float) -> None:
    digger = Digger(ttl=ttl)
    options = {"start": "lazy", "idle_timeout": 30.0}
    async with aggregating({"peer": digger.connect}, peer=options) as upstream:
        await ready(upstream)
        async with raw_client(upstream, "modern", CAN) as client:
            await client.request("tools/call", CALL)
            await anyio.sleep(seconds + 29)
            assert not _rests(upstream)
            await anyio.sleep(2)
            await until(lambda: _rests(upstream), lambda: upstream.fleet.changed)


def _rests(upstream: Upstream) -> bool:
    return isinstance(upstream.fleet.now.catalog.servers[ServerName("peer")], Idle)
