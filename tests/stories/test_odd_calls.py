"""Calls that are written in an odd way, and calls that a server has no room for."""

from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client
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


COUNTING = {
    "inputSchema": {
        "type": "object",
        "properties": {"count": {"type": "integer"}, "note": {"type": "string"}},
        "required": ["count"],
    }
}


async def through(client: Client, tool: str, way: str, arguments: dict[str, Any]) -> Any:
    """Call a tool by its own name, or through a meta-tool."""
    if way == "own name":
        return await client.call_tool(tool, arguments)
    return await client.call_tool(way, {"name": tool, "arguments": arguments})


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("way", ["own name", "CallTool"])
async def test_a_wrong_type_is_put_right_for_a_tool_that_was_shown_too(way: str, era: Era) -> None:
    peer = Peer(tally=COUNTING)

    async with aggregating({"db": connect_to(peer)}) as upstream:
        await ready(upstream)
        async with visiting(upstream, era) as client:
            await client.call_tool("ToolSearch", {"query": "tally"})
            await through(client, "db__tally", way, {"count": "3", "note": None})
            await through(client, "db__tally", way, {"count": 3, "note": "x"})
            told = await through(client, "db__tally", way, {"count": "three"})
            await through(client, "db__tally", way, {"count": "three"})

    # What cannot be put right is told; who insists is answered by the server.
    assert "count: must be integer" in text_of(told)
    sent = [arguments for _, arguments in peer.calls]
    assert sent == [{"count": 3}, {"count": 3, "note": "x"}, {"count": "three"}]


@pytest.mark.parametrize("era", ERAS)
async def test_a_long_name_that_no_tool_has_is_not_repeated_at_length(era: Era) -> None:
    async with aggregating({"db": connect_to(Peer("work"))}) as upstream:
        await ready(upstream)
        async with visiting(upstream, era) as client:
            told = await through(client, "n" * 1_000_000, "CallTool", {})
            with pytest.raises(MCPError) as caught:
                await client.call_tool("n" * 1_000_000)

    for text in (text_of(told), caught.value.message):
        assert text.startswith(f"There is no tool `{'n' * 200}`")
        assert len(text) < 500


class Refusing(Peer):
    """A server that answers calls with an error of the protocol."""

    def __init__(self, code: int) -> None:
        super().__init__("work")
        self._code = code
        self.add_request_handler("tools/call", types.CallToolRequestParams, self._refuse)

    async def _refuse(self, _ctx: object, _params: object) -> types.CallToolResult:
        raise MCPError(self._code, "No such row", {"row": 7})


@pytest.mark.parametrize("era", ERAS)
async def test_an_error_of_a_server_is_a_result_only_through_a_meta_tool(era: Era) -> None:
    async with aggregating({"db": connect_to(Refusing(types.INVALID_PARAMS))}) as upstream:
        await ready(upstream)
        async with visiting(upstream, era) as client:
            told = await through(client, "db__work", "CallTool", {})
            with pytest.raises(MCPError) as caught:
                await client.call_tool("db__work")

    assert told.is_error
    assert text_of(told) == "The call failed with error -32602: No such row"
    assert error_of(told) == {"kind": "server-error", "code": -32602, "data": {"row": 7}}
    assert (caught.value.code, caught.value.message) == (types.INVALID_PARAMS, "No such row")
    assert caught.value.data == {"row": 7}


@pytest.mark.parametrize("era", ERAS)
async def test_an_error_that_asks_something_of_the_client_stays_one(era: Era) -> None:
    asking = Refusing(types.URL_ELICITATION_REQUIRED)

    async with aggregating({"db": connect_to(asking)}) as upstream:
        await ready(upstream)
        async with visiting(upstream, era) as client:
            with pytest.raises(MCPError) as caught:
                await through(client, "db__work", "CallTool", {})

    assert caught.value.code == types.URL_ELICITATION_REQUIRED
