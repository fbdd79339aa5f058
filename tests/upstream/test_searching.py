"""What a search tells a client: as it is configured, as the client lists, and why if asked."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import anyio.lowlevel
import mcp_types as types
import pytest
from mcp import Client

from aggregator.config import Settings
from aggregator.toolsearch.facts import EXPLAIN
from aggregator.upstream.server import Upstream
from tests.peers import ERAS, Era, Peer, aggregating, connect_to, ready, text_of, visiting

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("each_way")]


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


@pytest.mark.parametrize("era", ERAS)
async def test_the_number_of_tools_that_is_told_is_the_one_that_is_configured(era: Era) -> None:
    settings = replace(Settings(), max_results=2)
    several = Peer("read_one", "read_two", "read_three")

    async with aggregating({"db": connect_to(several)}, settings=settings) as upstream:
        await ready(upstream)
        async with visiting(upstream, era) as client:
            search = (await client.list_tools()).tools[0]
            found = await client.call_tool("ToolSearch", {"query": "read"})

    assert search.input_schema["properties"]["max_results"]["default"] == 2
    assert len((found.meta or {})["aggregator/search"]["matches"]) == 2


@pytest.mark.parametrize("era", ERAS)
async def test_a_search_explains_its_own_ranking_to_who_asks(era: Era) -> None:
    async with aggregating({"db": connect_to(Peer("read", "write"))}) as upstream:
        await ready(upstream)
        async with visiting(upstream, era) as client:
            plain = await client.call_tool("ToolSearch", {"query": "read it"})
            told = await client.call_tool("ToolSearch", {"query": "read it"}, meta={EXPLAIN: True})

    facts = (told.meta or {})["aggregator/search"]
    assert "explained" not in (plain.meta or {})["aggregator/search"]
    assert [each["name"] for each in facts["explained"]] == facts["matches"] == ["db__read"]
    assert facts["explained"][0]["why"][0]["word"] == "read"


@pytest.mark.parametrize("era", ERAS)
async def test_others_have_their_turn_while_several_queries_are_answered(era: Era) -> None:
    async with aggregating({"db": connect_to(Peer("read", "write"))}) as upstream:
        await ready(upstream)
        async with visiting(upstream, era) as client:
            words = ["read", "write", "get", "put", "list", "find", "open", "close"]
            await client.call_tool("ToolSearch", {"queries": words})
            one = await _turns_during(client, words[:1])
            eight = await _turns_during(client, words)

    assert eight >= one + len(words) // 2


async def _turns_during(client: Client, queries: list[str]) -> int:
    """Count the turns that somebody else has during a search."""
    turns = 0

    async def act() -> None:
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    async with anyio.create_task_group() as group:
        group.start_soon(act)
        await client.call_tool("ToolSearch", {"queries": queries})
        group.cancel_scope.cancel()
    return turns


META = ["ToolSearch", "CallTool", "CallReadOnlyTool"]


class Lister:
    """A client that lists again some time after it is told to, and applies the list later still."""

    def __init__(self, client: Client, *, hesitates: float | None, applies_in: float) -> None:
        self.offered: list[str] = []
        self.took = 0.0
        self._client = client
        self._hesitates = hesitates
        self._applies_in = applies_in

    async def hear(self, message: object) -> None:
        told = isinstance(message, types.ToolListChangedNotification)
        if told and self._hesitates is not None:
            await anyio.sleep(self._hesitates)
            await self.list()

    async def list(self) -> None:
        listed = await self._client.list_tools(cache_mode="refresh")
        await anyio.sleep(self._applies_in)
        self.offered = [tool.name for tool in listed.tools]

    async def search(self, query: str, **rest: Any) -> str:
        began = anyio.current_time()
        answer = await self._client.call_tool("ToolSearch", {"query": query, **rest})
        self.took = anyio.current_time() - began
        return text_of(answer)


@asynccontextmanager
async def listing(
    upstream: Upstream, name: str, *, hesitates: float | None = 0.0, applies_in: float = 0.05
) -> AsyncGenerator[Lister, None]:
    listers: list[Lister] = []

    async def hear(message: object) -> None:
        await listers[0].hear(message)

    info = types.Implementation(name=name, version="1")
    async with visiting(upstream, "handshake", message_handler=hear, client_info=info) as client:
        listers.append(Lister(client, hesitates=hesitates, applies_in=applies_in))
        await listers[0].list()
        yield listers[0]


@pytest.mark.parametrize("name", ["gemini-cli-mcp-client", "opencode", "made-up"])
async def test_an_answer_comes_once_a_new_list_was_fetched_and_applied(name: str) -> None:
    async with aggregating({"db": connect_to(Peer("query"))}) as upstream:
        await ready(upstream)
        async with listing(upstream, name) as client:
            text = await client.search("query")

            assert client.offered == [*META, "db__query"]
            assert "Call: db__query {} (it is in your tool list)" in text
            assert client.took == pytest.approx(0.1)


@pytest.mark.parametrize("hesitates", [1.0, None])
@pytest.mark.parametrize("name", ["gemini-cli-mcp-client", "opencode", "made-up"])
async def test_a_client_that_did_not_list_again_is_never_told_that_it_has_a_tool(
    name: str, hesitates: float | None
) -> None:
    async with aggregating({"db": connect_to(Peer("query"))}) as upstream:
        await ready(upstream)
        async with listing(upstream, name, hesitates=hesitates) as client:
            text = await client.search("query")

            assert client.offered == META
            assert 'Call: CallTool {"name": "db__query"' in text
            assert "in your tool list" not in text
            assert client.took == pytest.approx(0.4)


async def test_who_was_seen_not_to_list_again_is_not_waited_for_a_second_time() -> None:
    async with aggregating({"db": connect_to(Peer("read", "write"))}) as upstream:
        await ready(upstream)
        async with listing(upstream, "made-up", hesitates=None) as client:
            await client.search("select:db__read")
            await client.search("select:db__write")

            assert client.took == 0


@pytest.mark.parametrize("name", ["mcp", "inspector-cli", "copilot-cli"])
async def test_who_is_known_not_to_list_again_in_time_is_not_waited_for(name: str) -> None:
    async with aggregating({"db": connect_to(Peer("query"))}) as upstream:
        await ready(upstream)
        async with listing(upstream, name, hesitates=None) as client:
            await client.search("query")

            assert client.took == 0


async def test_only_tools_whose_definition_is_in_the_answer_join_the_list() -> None:
    many = {f"read_{number}": {"description": "Reads it. " * 90} for number in range(40)}

    async with aggregating({"db": connect_to(Peer(**many))}) as upstream:
        await ready(upstream)
        async with listing(upstream, "opencode") as client:
            text = await client.search("server:db", max_results=40)

    loaded = client.offered[len(META) :]
    assert all(f"\n- db__{name}" in text or f"## db__{name} " in text for name in many)
    assert loaded
    assert loaded == [f"db__{name}" for name in many if f"## db__{name} " in text]
    assert len(loaded) <= 20


async def test_of_a_usual_search_the_five_that_are_defined_join_the_list() -> None:
    several = [f"read_{number}" for number in range(12)]

    async with aggregating({"db": connect_to(Peer(*several))}) as upstream:
        await ready(upstream)
        async with listing(upstream, "opencode") as client:
            text = await client.search("read")

    loaded = client.offered[len(META) :]
    assert loaded == [f"db__read_{number}" for number in range(5)]
    assert [f"db__read_{number}" for number in range(12) if f"\n- db__read_{number} |" in text] == [
        "db__read_5",
        "db__read_6",
        "db__read_7",
    ]


@pytest.mark.parametrize("era", ERAS)
async def test_a_tool_that_is_told_on_a_line_can_be_called_as_it_stands_there(era: Era) -> None:
    several = [f"read_{number}" for number in range(12)]

    async with aggregating({"db": connect_to(Peer(*several))}) as upstream:
        await ready(upstream)
        async with visiting(upstream, era) as client:
            found = await client.call_tool("ToolSearch", {"query": "read"})
            matches: list[str] = (found.meta or {})["aggregator/search"]["matches"]
            last = {"name": matches[-1], "arguments": dict[str, object]()}
            called = await client.call_tool("CallTool", last)

    assert len(matches) == 8
    assert f"\n- {matches[-1]} |" in text_of(found)
    assert text_of(called) == "read_7: {}"
