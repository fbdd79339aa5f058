"""The first question after the start: it waits a moment for servers that are starting."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from aggregator.config import Settings
from aggregator.downstream.transport import Connect
from aggregator.fleet.fleet import STARTING_AT_ONCE
from aggregator.fleet.starting import GRACE
from tests.peers import (
    Era,
    Mortal,
    Peer,
    aggregating,
    connect_to,
    failing,
    late,
    never,
    ready,
    text_of,
    visiting,
)
from tests.raw import Dispatch, Json, RawServer

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


class Visit:
    """A client that asks, and when it is answered."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._began = anyio.current_time()

    @property
    def time(self) -> float:
        """Seconds since the servers have begun to start."""
        return round(anyio.current_time() - self._began, 3)

    async def search(self, query: str, **arguments: Any) -> str:
        return text_of(await self.client.call_tool("ToolSearch", {"query": query, **arguments}))


@asynccontextmanager
async def visit(servers: Mapping[str, Connect], era: Era) -> AsyncGenerator[Visit, None]:
    # On this surface no search waits for the client to list again.
    settings = replace(Settings(), surface="relay")
    async with aggregating(servers, settings) as upstream, visiting(upstream, era) as client:
        yield Visit(client)


def jira(seconds: float, era: Era = "modern") -> Connect:
    return late(connect_to(Peer("search_issues"), era), seconds)


async def test_a_search_at_the_start_finds_what_is_there_a_moment_later(
    client_era: Era, server_era: Era
) -> None:
    servers = {"jira": jira(2, server_era), "mail": connect_to(Peer("send_mail"), server_era)}
    async with visit(servers, client_era) as visitor:
        listed = [tool.name for tool in (await visitor.client.list_tools()).tools]
        assert visitor.time == 0

        found = await visitor.search("issues")
        assert visitor.time == 2

    assert listed == ["ToolSearch", "CallTool", "CallReadOnlyTool"]
    assert "jira__search_issues" in found
    assert "Not searched yet" not in found


async def test_an_overview_at_the_start_tells_of_what_is_there_a_moment_later(
    client_era: Era,
) -> None:
    async with visit({"jira": jira(2)}, client_era) as visitor:
        told = await visitor.search("")

        assert visitor.time == 2
    assert "- jira (1 tool)" in told


async def test_one_that_hangs_holds_up_searches_for_the_first_seconds_of_its_start_alone(
    client_era: Era,
) -> None:
    async with visit({"jira": jira(1), "hung": never()}, client_era) as visitor:
        await anyio.sleep(2)
        first = await visitor.search("server:jira")
        assert visitor.time < GRACE

        nothing = await visitor.search("weather")
        assert visitor.time == GRACE
        await visitor.search("weather")
        assert visitor.time == GRACE

    assert "jira__search_issues" in first
    assert nothing.startswith(
        "Not searched yet: hung (starting for 3 s). "
        'To include it, ask with "wait": 10 instead of asking the same again.\n'
    )
    assert "fewer words" not in nothing


@pytest.mark.parametrize(
    "query",
    ["server:mail send", "select:mail__send_mail", "mail__send_mail", "server:nowhere x"],
)
async def test_a_search_that_no_starting_server_could_change_does_not_wait(query: str) -> None:
    servers = {"hung": never(), "mail": connect_to(Peer("send_mail"))}
    async with visit(servers, "modern") as visitor:
        await visitor.search("select:mail__send_mail")
        await visitor.search(query)

        assert visitor.time == 0


@pytest.mark.parametrize(
    "query", ["jira__search_issues", "select:jira__search_issues", "server:jira issues"]
)
async def test_a_search_that_names_a_starting_server_waits_for_that_one_alone(query: str) -> None:
    async with visit({"hung": never(), "jira": jira(1)}, "modern") as visitor:
        found = await visitor.search(query)

        assert visitor.time == 1
    assert "jira__search_issues" in found


async def test_one_that_fails_to_start_is_not_waited_for(client_era: Era) -> None:
    refused = failing(ConnectionRefusedError("connection refused"))
    async with visit({"down": refused}, client_era) as visitor:
        for _ in range(20):
            assert "connection refused" in await visitor.search("anything")
            await anyio.sleep(0.25)

        assert visitor.time == 5


async def test_waiting_goes_beyond(client_era: Era) -> None:
    servers = {"jira": jira(10), "hung": never()}
    async with visit(servers, client_era) as visitor:
        found = await visitor.search("zzz", wait=20)

        assert visitor.time == 20
    assert found.startswith("Not searched yet: hung (starting for 20 s)")


async def test_a_server_whose_turn_has_not_come_is_waited_for(client_era: Era) -> None:
    servers = {f"hung{number}": never() for number in range(STARTING_AT_ONCE)}
    async with visit({**servers, "jira": jira(1)}, client_era) as visitor:
        found = await visitor.search("search issues")

    assert "jira__search_issues" in found


async def test_one_that_crashed_and_is_started_anew_is_waited_for(client_era: Era) -> None:
    mortal = Mortal(jira(1))
    async with aggregating({"jira": mortal}) as upstream, visiting(upstream, client_era) as client:
        await ready(upstream)
        await anyio.sleep(100)
        mortal.cut()
        visitor = Visit(client)
        await anyio.sleep(0.1)
        found = await visitor.search("issues", max_results=1)

    assert "jira__search_issues" in found
    assert "lost" not in found


async def test_a_client_that_asks_no_longer_leaves_nothing_behind(client_era: Era) -> None:
    servers = {"hung": never(), "mail": connect_to(Peer("send_mail"))}
    async with visit(servers, client_era) as visitor:
        await visitor.search("select:mail__send_mail")
        before = len(anyio.get_running_tasks())
        with anyio.move_on_after(1):
            await visitor.search("weather")
        await anyio.sleep(0.1)

        assert visitor.time == 1.1
        assert len(anyio.get_running_tasks()) == before
        await visitor.search("server:mail")
        assert visitor.time == 1.1


async def test_a_call_by_a_name_without_a_server_waits_like_a_search(client_era: Era) -> None:
    async with visit({"jira": jira(1), "hung": never()}, client_era) as visitor:
        answer = await visitor.client.call_tool("CallTool", {"name": "search_issues"})

        assert visitor.time == 1
    assert text_of(answer) == "search_issues: {}"


def library(era: Era, seconds: float = 0.0) -> RawServer:
    """Return a server whose prompts and resources take a while to be listed after its tools."""

    def slowly(key: str, item: Json) -> Any:
        async def answer(_context: Dispatch, _params: Json) -> Json:
            await anyio.sleep(seconds)
            return {key: [item]}

        return answer

    async def get(_context: Dispatch, _params: Json) -> Json:
        return {"messages": []}

    async def read(_context: Dispatch, _params: Json) -> Json:
        return {"contents": [{"uri": "book://1", "text": "Once"}]}

    template = {"uriTemplate": "page://{number}", "name": "page"}
    server = RawServer(
        era,
        prompts__list=slowly("prompts", {"name": "summarize"}),
        prompts__get=get,
        resources__list=slowly("resources", {"uri": "book://1", "name": "one"}),
        resources__read=read,
    )
    server.handlers["resources/templates/list"] = slowly("resourceTemplates", template)
    return server


async def test_prompts_and_resources_are_listed_to_a_client_that_lists_once(
    client_era: Era, server_era: Era
) -> None:
    servers = {"library": late(library(server_era, 0.5).connect, 1)}
    async with visit(servers, client_era) as visitor:
        client = visitor.client
        prompts = (await client.list_prompts()).prompts
        assert visitor.time == 1.5
        resources = (await client.list_resources()).resources
        assert visitor.time == 2.5
        templates = (await client.list_resource_templates()).resource_templates

    assert [prompt.name for prompt in prompts] == ["library__summarize"]
    assert "book://1" in [str(resource.uri) for resource in resources]
    assert "page://{number}" in [template.uri_template for template in templates]


async def test_lists_besides_tools_wait_for_one_that_hangs_in_the_first_seconds_alone(
    client_era: Era,
) -> None:
    servers = {"hung": never(), "slow": library("handshake", 60).connect}
    async with visit(servers, client_era) as visitor:
        assert (await visitor.client.list_prompts()).prompts == []
        assert visitor.time == GRACE
        await visitor.client.list_resources()
        await visitor.client.list_resource_templates()
        assert visitor.time == GRACE


async def test_a_prompt_and_a_resource_can_be_asked_for_at_once(client_era: Era) -> None:
    async with visit({"library": late(library("modern").connect, 1)}, client_era) as visitor:
        await visitor.client.get_prompt("library__summarize")
        assert visitor.time == 1
    async with visit({"library": late(library("modern").connect, 1)}, client_era) as visitor:
        await visitor.client.read_resource("book://1")
        assert visitor.time == 1
    async with visit({"library": late(library("modern").connect, 1)}, client_era) as visitor:
        with pytest.raises(MCPError, match="no prompt"):
            await visitor.client.get_prompt("library__unknown")
        assert visitor.time == 1
