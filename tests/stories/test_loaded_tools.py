"""Tools that a search has found: in the list of that session, for as long as their server lives."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import mcp_types as types
import pytest
from mcp import Client

from aggregator.config import Settings
from aggregator.downstream.transport import Transport
from tests.peers import Era, Mortal, Peer, aggregating, connect_to, late, ready, text_of, visiting

pytestmark = pytest.mark.anyio

PROMOTE = Settings(surface="promote")


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


async def names(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools]


async def search(client: Client, query: str) -> str:
    return text_of(await client.call_tool("ToolSearch", {"query": query, "max_results": 1}))


async def test_they_leave_with_their_server_and_come_back_with_it() -> None:
    told: list[float] = []
    connect = connect_to(Peer("query"))
    mortal = Mortal(connect)
    ways = [mortal, late(connect, 25)]

    @asynccontextmanager
    async def next_way() -> AsyncGenerator[Transport, None]:
        async with ways.pop(0)() as transport:
            yield transport

    async def hear(message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            told.append(anyio.current_time())

    async with aggregating({"db": next_way}, PROMOTE) as upstream:
        async with visiting(upstream, "handshake", message_handler=hear) as client:
            await ready(upstream)
            await search(client, "query")
            loaded = await names(client)
            began = anyio.current_time()
            mortal.cut()
            await anyio.sleep(2)
            expected = await names(client)
            await anyio.sleep(20)
            gone = await names(client)
            await anyio.sleep(5)
            back = await names(client)

    assert loaded == ["ToolSearch", "db__query"]
    assert expected == loaded
    assert gone == ["ToolSearch"]
    assert back == loaded
    assert [round(when - began) for when in told[1:]] == [20, 25]


async def test_two_sessions_do_not_see_each_others_tools() -> None:
    peer = connect_to(Peer("query", "drop"))

    async with aggregating({"db": peer}, PROMOTE) as upstream:
        await ready(upstream)
        async with visiting(upstream, "handshake") as one:
            await search(one, "query")
            first = await names(one)
        async with visiting(upstream, "handshake") as two:
            await search(two, "drop")
            second = await names(two)

    assert first == ["ToolSearch", "db__query"]
    assert second == ["ToolSearch", "db__drop"]


async def test_the_oldest_unused_ones_leave_in_one_batch_when_there_are_too_many() -> None:
    tools = [f"tool{number}" for number in range(12)]
    told: list[None] = []

    async def hear(message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            told.append(None)

    async with aggregating(
        {"s": connect_to(Peer(*tools))}, Settings(surface="promote", max_loaded=10)
    ) as upstream:
        async with visiting(upstream, "handshake", message_handler=hear) as client:
            await ready(upstream)
            for name in tools[:10]:
                await search(client, f"select:s__{name}")
            await client.call_tool("s__tool0", {})
            before = len(told)
            await search(client, "select:s__tool10")
            listed = await names(client)

    assert "s__tool0" in listed
    assert "s__tool1" not in listed
    assert listed[-1] == "s__tool10"
    assert len(told) == before + 1


async def test_a_call_that_does_not_fit_an_unseen_schema_is_answered_with_it() -> None:
    schema = {
        "type": "object",
        "properties": {"count": {"type": "integer"}, "to": {"type": "string"}},
        "required": ["count", "to"],
    }
    peer = Peer(send={"description": "Sends", "inputSchema": schema})

    async with aggregating({"mail": connect_to(peer)}) as upstream:
        async with visiting(upstream, "handshake") as client:
            await ready(upstream)
            wrong = await client.call_tool("mail__send", {"count": "many"})
            right = await client.call_tool("mail__send", {"count": "5", "to": "x"})

    assert wrong.is_error
    assert "definition had not been loaded" in text_of(wrong)
    assert "count (integer, required)" in text_of(wrong)
    assert text_of(right) == "send: {'count': 5, 'to': 'x'}"


@pytest.mark.parametrize("way", ["mail__send", "CallTool"])
async def test_a_mistake_is_told_with_the_definition_after_it_was_sent_too(
    way: str, client_era: Era
) -> None:
    """After a compaction a model does not know any more what it was sent."""
    schema = {
        "type": "object",
        "properties": {"count": {"type": "integer"}},
        "required": ["count"],
    }
    peer = Peer(send={"description": "Sends", "inputSchema": schema})

    def called(arguments: dict[str, object]) -> dict[str, object]:
        return {"name": "mail__send", "arguments": arguments} if way == "CallTool" else arguments

    async with aggregating({"mail": connect_to(peer)}) as upstream:
        async with visiting(upstream, client_era) as client:
            await ready(upstream)
            await search(client, "select:mail__send")
            fitting = await client.call_tool(way, called({"count": "5"}))
            wrong = await client.call_tool(way, called({"count": "many"}))
            another = await client.call_tool(way, called({}))
            repeated = await client.call_tool(way, called({}))

    assert text_of(fitting) == "send: {'count': 5}"
    assert wrong.is_error
    assert "count: must be integer" in text_of(wrong)
    assert "Call it again to fit its definition:" in text_of(wrong)
    assert "count: required, but missing" in text_of(another)
    # The server has the last word: it may take more than its definition says.
    assert text_of(repeated) == "send: {}"
