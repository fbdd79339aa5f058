"""A task is there as long as what works on it, and for as long as its client may ask."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import anyio
import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from aggregator.config import Config, Settings
from aggregator.config.profile import Profile
from aggregator.downstream.transport import Transport
from aggregator.upstream.visitor import Visitor
from tests.peers import Mortal, aggregating, configured, ready
from tests.raw import Dispatch, Json, RawServer, raw_client
from tests.upstream.digger import CALL, CAN, DONE, REMOTE, Digger, asked

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("each_way")]


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


@pytest.mark.parametrize("how", ["crash", "rest"])
async def test_a_task_is_gone_with_its_process_whatever_the_next_calls_its_own(how: str) -> None:
    runs: list[Digger] = []

    @asynccontextmanager
    async def connect() -> AsyncGenerator[Transport, None]:
        runs.append(Digger(ttl=1000))
        async with runs[-1].connect() as transport:
            yield transport

    way = Mortal(connect)
    options = {"start": "lazy", "idle_timeout": 5.0}
    async with aggregating({"peer": way}, is_shared=True, peer=options) as upstream:
        await ready(upstream)
        async with (
            raw_client(upstream, "modern", CAN, Visitor("one", "/", 1)) as one,
            raw_client(upstream, "modern", CAN, Visitor("two", "/", 2)) as two,
        ):
            mine = (await one.request("tools/call", CALL))["taskId"]
            if how == "crash":
                way.cut()
            await anyio.sleep(20)
            before = len(runs)
            without = await asked(one, mine)
            assert len(runs) == before
            other = (await two.request("tools/call", CALL))["taskId"]
            runs[-1].tasks["dig-0"] |= DONE
            told = await asked(one, mine)
            theirs = (await two.request("tasks/get", {"taskId": other}))["result"]

    assert {str(each).partition(" since")[0] for each in (*without, *told)} == {"The task is gone"}
    assert runs[-1].tasks["dig-0"]["status"] == "completed"
    assert runs[-1].asked_about() == [("tasks/get", "dig-0")]
    assert theirs == DONE["result"]


async def _refuse(_context: Dispatch, _params: Json) -> Json:
    raise MCPError(types.INVALID_PARAMS, "Not these answers")


@pytest.mark.parametrize("then", ["nothing", "tasks/get", "tasks/update", "tasks/cancel"])
async def test_of_two_tasks_of_one_name_each_client_has_its_own(then: str) -> None:
    digger = Digger(own_id="one name")
    digger.handlers["tasks/update"] = _refuse
    async with aggregating({"peer": digger.connect}, is_shared=True, peer=REMOTE) as upstream:
        await ready(upstream)
        async with (
            raw_client(upstream, "modern", CAN, Visitor("one", "/", 1)) as one,
            raw_client(upstream, "modern", CAN, Visitor("two", "/", 2)) as two,
        ):
            first = (await one.request("tools/call", CALL))["taskId"]
            second = (await two.request("tools/call", CALL))["taskId"]
            digger.tasks["one name"] |= DONE
            if then != "nothing":
                with suppress(MCPError):
                    await two.request(then, {"taskId": second, "inputResponses": {}})
            told = await asked(one, first)
            theirs = await two.request("tasks/get", {"taskId": second})

    assert {str(each).partition(" since")[0] for each in told} == {"The task is gone"}
    assert theirs["status"] == ("cancelled" if then == "tasks/cancel" else "completed")


async def test_a_task_outlives_a_connection_to_an_address_and_not_the_address() -> None:
    digger = Digger()
    way = Mortal(digger.connect)
    async with aggregating({"peer": way}, peer=REMOTE) as upstream:
        await ready(upstream)
        async with raw_client(upstream, "modern", CAN) as client:
            task = (await client.request("tools/call", CALL))["taskId"]
            way.cut()
            await anyio.sleep(5)
            assert (await client.request("tasks/get", {"taskId": task}))["status"] == "working"
            elsewhere = {**REMOTE, "url": "https://other.example/mcp"}
            upstream.fleet.reconfigure(configured({"peer": elsewhere}))
            told = await asked(client, task)
            new = (await client.request("tools/call", CALL))["taskId"]
            digger.tasks.clear()
            with pytest.raises(MCPError) as unknown:
                await client.request("tasks/get", {"taskId": new})

    assert {str(each).partition(" since")[0] for each in told} == {"The task is gone"}
    assert unknown.value.error.message == "Task not found"


async def test_what_cannot_be_found_out_about_a_task_is_said() -> None:
    digger, is_dead = Digger(), False

    @asynccontextmanager
    async def connect() -> AsyncGenerator[Transport, None]:
        if is_dead:
            raise OSError("no such program")
        async with digger.connect() as transport:
            yield transport

    way = Mortal(connect)
    async with aggregating({"peer": way}, peer=REMOTE) as upstream:
        await ready(upstream)
        async with raw_client(upstream, "modern", CAN) as client:
            handle = await client.request("tools/call", CALL)
            is_dead = True
            way.cut()
            await anyio.sleep(60)
            with pytest.raises(MCPError) as unclear:
                await client.request("tasks/get", {"taskId": handle["taskId"]})

    assert unclear.value.error.code == types.INTERNAL_ERROR
    assert "about the task now, ask again later: the server `peer`" in unclear.value.error.message
    assert "tool was not run" not in unclear.value.error.message


def _denied(name: str) -> Config:
    profile = Profile("p", clients=("raw client",), deny=("dig",) if name == "profile" else ())
    options: Json = {"deny": ("dig",)} if name == "server" else {}
    return configured({"peer": options}, Settings(profiles={"p": profile}))


@pytest.mark.parametrize("by", ["server", "profile"])
async def test_a_task_of_a_tool_that_is_denied_since_can_only_be_cancelled(by: str) -> None:
    digger = Digger()
    digger.tool("other", digger.handlers["tools/call dig"])
    settings = _denied("").settings
    async with aggregating({"peer": digger.connect}, settings) as upstream:
        await ready(upstream)
        async with raw_client(upstream, "modern", CAN) as client:
            task = (await client.request("tools/call", CALL))["taskId"]
            digger.tasks["dig-0"] |= DONE
            upstream.fleet.reconfigure(_denied(by))
            got, updated, cancelled = await asked(client, task)

    assert "`peer__dig`, which is not offered any more" in str(got)
    assert got == updated
    assert isinstance(cancelled, dict)
    assert digger.asked_about() == [("tasks/cancel", "dig-0")]


async def test_a_task_of_a_server_that_was_taken_out_is_gone() -> None:
    digger = Digger()
    servers = {"peer": digger.connect, "other": RawServer("modern").connect}
    async with aggregating(servers) as upstream:
        await ready(upstream)
        async with raw_client(upstream, "modern", CAN) as client:
            handle = await client.request("tools/call", CALL)
            upstream.fleet.reconfigure(configured({"other": {}}))
            with pytest.raises(MCPError, match="gone with its server `peer`"):
                await client.request("tasks/get", {"taskId": handle["taskId"]})
