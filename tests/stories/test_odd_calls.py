"""Calls that are written in an odd way, and calls that a server has no room for."""

import anyio
import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from tests.peers import ERAS, Era, Peer, aggregating, connect_to, error_of, ready, text_of, visiting
from tests.raw import raw_client

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("arguments", [[1, 2], '{"x": 1}', 7, True])
async def test_arguments_that_are_no_object_are_refused_and_reach_no_tool(
    arguments: object, era: Era
) -> None:
    peer = Peer("work")

    async with aggregating({"db": connect_to(peer)}) as upstream:
        await ready(upstream)
        async with raw_client(upstream, era) as client:
            with pytest.raises(MCPError) as caught:
                await client.request("tools/call", {"name": "db__work", "arguments": arguments})

    assert caught.value.code == types.INVALID_PARAMS
    assert not peer.calls


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("params", [{}, {"arguments": None}, {"arguments": {}}])
async def test_a_call_may_leave_its_arguments_out(params: dict[str, object], era: Era) -> None:
    peer = Peer("work")

    async with aggregating({"db": connect_to(peer)}) as upstream:
        await ready(upstream)
        async with raw_client(upstream, era) as client:
            await client.request("tools/call", {"name": "db__work", **params})

    assert peer.calls == [("work", {})]


@pytest.mark.parametrize("era", ERAS)
async def test_a_server_without_a_queue_is_busy_only_while_it_works(era: Era) -> None:
    peer = Peer("block", "work")
    bounds = {"max_in_flight": 1, "max_queued": 0}
    told: list[types.CallToolResult] = []

    async with aggregating({"db": connect_to(peer)}, db=bounds) as upstream:
        await ready(upstream)
        async with visiting(upstream, era) as client, anyio.create_task_group() as group:
            told.append(await client.call_tool("db__work"))
            group.start_soon(client.call_tool, "db__block")
            with anyio.fail_after(1):
                await peer.blocked.wait()
            told.append(await client.call_tool("db__work"))
            group.cancel_scope.cancel()

    assert text_of(told[0]) == "work: {}"
    assert error_of(told[1]) == {"kind": "busy", "server": "db"}
