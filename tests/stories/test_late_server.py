"""A server that takes its time: nobody waits for long, and all hear when it is there."""

import anyio
import mcp_types as types
import pytest

from aggregator.fleet.starting import GRACE
from tests.peers import (
    ERAS,
    Era,
    Peer,
    aggregating,
    connect_to,
    error_of,
    keep_listening,
    late,
    never,
    text_of,
    visiting,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


@pytest.mark.parametrize("client_era", ERAS)
@pytest.mark.parametrize("server_era", ERAS)
async def test_a_late_server_is_named_pending_and_announced_when_it_is_ready(
    client_era: Era, server_era: Era
) -> None:
    slow = late(connect_to(Peer("search_issues"), server_era), 10)
    told: list[float] = []

    async def hear(message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            told.append(anyio.current_time())

    async with aggregating({"jira": slow}, jira={"always_load": True}) as upstream:
        async with visiting(upstream, client_era, message_handler=hear) as client:
            began = anyio.current_time()
            first = [tool.name for tool in (await client.list_tools()).tools]
            assert anyio.current_time() == began
            found = await client.call_tool("ToolSearch", {"query": "issues"})
            assert anyio.current_time() == began + GRACE

            async with anyio.create_task_group() as group:
                if client_era == "modern":
                    group.start_soon(keep_listening, client)
                await anyio.sleep(12 - GRACE)
                group.cancel_scope.cancel()
            then = [tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools]

    assert first == ["ToolSearch", "CallTool", "CallReadOnlyTool"]
    assert "jira" in text_of(found)
    assert "wait" in text_of(found)
    assert [round(when - began) for when in told] == [10]
    # With every tool always loaded there is nothing left to search for.
    assert then == ["jira__search_issues"]


@pytest.mark.parametrize("era", ERAS)
async def test_a_search_can_wait_for_the_servers_that_matter(era: Era) -> None:
    servers = {"jira": late(connect_to(Peer("search_issues")), 10), "hung": never()}

    async with aggregating(servers) as upstream, visiting(upstream, era) as client:
        began = anyio.current_time()
        found = await client.call_tool("ToolSearch", {"query": "server:jira issues", "wait": 25})
        took = anyio.current_time() - began

    assert "jira__search_issues" in text_of(found)
    assert took == 10


@pytest.mark.parametrize("era", ERAS)
async def test_a_call_of_a_tool_whose_server_is_pending_waits_for_it(era: Era) -> None:
    async with aggregating({"jira": late(connect_to(Peer("close_issue")), 10)}) as upstream:
        async with visiting(upstream, era) as client:
            direct = await client.call_tool("jira__close_issue", {"id": 1})

    assert text_of(direct) == "close_issue: {'id': 1}"


async def test_a_call_waits_no_longer_than_its_server_may_take_to_start() -> None:
    options = {"connect_timeout": 20.0}

    async with aggregating({"hung": never()}, hung=options) as upstream:
        async with visiting(upstream, "handshake") as client:
            began = anyio.current_time()
            answer = await client.call_tool("CallTool", {"name": "hung__anything"})
            took = anyio.current_time() - began

    assert answer.is_error
    assert error_of(answer) == {"kind": "server-unavailable", "server": "hung"}
    assert took == 20


async def test_servers_connect_side_by_side() -> None:
    servers = {f"s{number}": late(connect_to(Peer("do")), 3) for number in range(30)}

    async with aggregating(servers) as upstream:
        began = anyio.current_time()
        await upstream.fleet.awaiting.until_settled(upstream.fleet.now.catalog.servers, 60)
        took = anyio.current_time() - began

    assert not upstream.fleet.now.catalog.pending
    # Eight start at once; each of the others follows after a quarter of a second at the most.
    assert took <= 3 + 22 * 0.25
