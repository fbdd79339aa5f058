"""Several clients on streams of one aggregator: nothing of one is taken for another's."""

import os
from collections import Counter

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from aggregator.config import Settings
from aggregator.memory import Notebook
from aggregator.upstream.visitor import Visitor
from tests.peers import ERAS, Era, Peer, aggregating, connect_to, ready, visiting
from tests.raw import Dispatch, Json, RawServer, raw_client

pytestmark = pytest.mark.anyio

PROMOTE = Settings(surface="promote")
HERE, THERE = (Visitor(key, f"/{key}", os.getpid()) for key in ("here", "there"))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def names(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools]


async def search(client: Client) -> None:
    await client.list_tools()
    await client.call_tool("ToolSearch", {"query": "select:db__query"})
    await names(client)


async def test_what_one_has_loaded_is_left_to_the_next_in_the_same_place_alone() -> None:
    memory = Notebook(None)
    servers = {"db": connect_to(Peer("query"))}
    async with aggregating(servers, PROMOTE, memory, is_shared=True) as upstream:
        await ready(upstream)
        async with visiting(upstream, "handshake", HERE) as client:
            await search(client)
        async with visiting(upstream, "handshake", THERE) as client:
            elsewhere = await names(client)
        again = HERE._replace(key="another")
        async with visiting(upstream, "handshake", again) as client:
            same_place = await names(client)

    assert elsewhere == ["ToolSearch"]
    assert same_place == ["ToolSearch", "db__query"]


@pytest.mark.parametrize("era", ERAS)
async def test_each_has_a_conversation_of_its_own(era: Era) -> None:
    async with aggregating({"db": connect_to(Peer("query"))}, is_shared=True) as upstream:
        await ready(upstream)
        async with (
            visiting(upstream, era, HERE) as one,
            visiting(upstream, era, THERE) as other,
        ):
            await one.call_tool("ToolSearch", {"query": "query"})
            await other.call_tool("ToolSearch", {"query": "query"})
            held = Counter(each.visitor for each in upstream.conversations)

    assert held == {HERE: 1, THERE: 1}


@pytest.mark.parametrize("era", ERAS)
async def test_nothing_is_kept_of_those_who_have_left(era: Era) -> None:
    async with aggregating({"db": connect_to(Peer("query"))}, is_shared=True) as upstream:
        await ready(upstream)
        for number in range(20):
            visitor = HERE._replace(key=str(number))
            async with visiting(upstream, era, visitor) as client:
                await client.call_tool("ToolSearch", {"query": "query"})

        assert list(upstream.conversations) == []


async def test_a_parked_call_cannot_be_taken_up_by_another() -> None:
    server = RawServer("handshake")

    async def ask(_context: Dispatch, _params: Json) -> Json:
        return {"content": [], "structuredContent": await server.ask("elicitation/create", {})}

    server.tool("work", ask)
    call: Json = {"name": "peer__work", "arguments": {}}
    async with aggregating({"peer": server.connect}, is_shared=True) as upstream:
        await ready(upstream)
        async with (
            raw_client(upstream, "modern", {"elicitation": {}}, HERE) as one,
            raw_client(upstream, "modern", {"elicitation": {}}, THERE) as other,
        ):
            asked = await one.request("tools/call", call)
            answers = {key: {"action": "accept"} for key in asked["inputRequests"]}
            again = {**call, "inputResponses": answers, "requestState": asked["requestState"]}
            with pytest.raises(MCPError, match="was not issued for this request"):
                await other.request("tools/call", again)
            result = await one.request("tools/call", again)

    assert result["structuredContent"] == {"action": "accept"}


@pytest.mark.parametrize("era", ERAS)
async def test_the_roots_of_one_are_not_asked_for_all(era: Era) -> None:
    """A server that they share may ask within a call alone; nor is it told that they change."""
    server = RawServer("handshake")
    async with aggregating({"peer": server.connect}, is_shared=True) as upstream:
        roots: Json = {"roots": {"listChanged": True}}
        async with raw_client(upstream, era, roots, HERE) as client:
            await ready(upstream)
            if era == "handshake":
                await client.notify("notifications/roots/list_changed")
            with pytest.raises(MCPError):
                await server.ask("roots/list", {})

    heard = [method for method, _ in server.received]
    assert "notifications/roots/list_changed" not in heard
