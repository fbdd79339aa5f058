"""What a later session knows of an earlier one, and what it must not."""

from pathlib import Path

import pytest
from mcp import Client

from aggregator.basics.json import is_plain_object
from aggregator.config import Settings
from aggregator.memory import Notebook
from aggregator.upstream.client_memory import LOADED, ClientMemory
from aggregator.upstream.conversation import Conversation
from tests.loopback.door import door
from tests.peers import Peer, aggregating, connect_to, ready, visiting

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("each_way")]

PROMOTE = Settings(surface="promote")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def search(client: Client) -> None:
    await client.list_tools()
    await client.call_tool("ToolSearch", {"query": "select:db__query"})
    await names(client)


async def names(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools]


async def test_a_session_on_a_stream_goes_on_where_the_last_one_ended() -> None:
    """A client that starts us again resumes a conversation more often than it begins one."""
    async with aggregating({"db": connect_to(Peer("query"))}, PROMOTE, Notebook(None)) as upstream:
        await ready(upstream)
        async with visiting(upstream, "handshake") as client:
            await search(client)
        async with visiting(upstream, "handshake") as client:
            listed = await names(client)

    assert listed == ["ToolSearch", "db__query"]


async def test_what_a_live_session_has_loaded_is_its_own() -> None:
    async with aggregating({"db": connect_to(Peer("query"))}, PROMOTE, Notebook(None)) as upstream:
        await ready(upstream)
        async with visiting(upstream, "handshake") as one:
            await search(one)
            async with visiting(upstream, "handshake") as other:
                listed = await names(other)

    assert listed == ["ToolSearch"]


async def test_over_http_nothing_is_left_to_a_session_of_the_same_name(tmp_path: Path) -> None:
    """Neither by one that has ended, nor by one on a stream, nor to one."""
    memory = Notebook(None)
    async with door({"db": connect_to(Peer("query"))}, tmp_path, PROMOTE, memory=memory) as opened:
        await ready(opened.upstream)
        async with opened.client("handshake") as client:
            await search(client)
        async with opened.client("handshake") as client:
            later = await names(client)
        async with visiting(opened.upstream, "handshake") as client:
            on_stream = await names(client)
            await search(client)
        async with opened.client("handshake") as client:
            after_stream = await names(client)

    assert later == on_stream == after_stream == ["ToolSearch"]


async def test_over_http_it_is_still_learned_how_a_client_behaves(tmp_path: Path) -> None:
    memory = Notebook(None)
    async with door({"db": connect_to(Peer("query"))}, tmp_path, PROMOTE, memory=memory) as opened:
        await ready(opened.upstream)
        async with opened.client("handshake") as client:
            await search(client)
            await client.call_tool("ToolSearch", {"query": "db"})

    assert memory.get("clients", "mcp") == {"relists": True}
    assert memory.get("loaded", "mcp") is None


@pytest.mark.parametrize(
    ("data", "loaded"),
    [
        (None, []),
        (7, []),
        ("abc", []),
        ({"a": 1}, []),
        (["a", 1, None, ["b"], "c"], ["a", "c"]),
    ],
)
def test_only_names_are_taken_over_from_what_a_file_says(data: object, loaded: list[str]) -> None:
    memory = Notebook(None)
    client_memory = ClientMemory(memory, Path("servers.yaml"), clock=lambda: 0.0)
    conversation = Conversation(client="cursor", is_alone=True, remembered=["x"])
    client_memory.end(conversation)
    kept = memory.get(LOADED, client_memory.key("cursor"))
    assert is_plain_object(kept)

    memory.put(LOADED, client_memory.key("cursor"), {**kept, "tools": data})

    assert list(client_memory.loaded("cursor")) == loaded
