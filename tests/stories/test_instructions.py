"""What a client is told of us when it connects is what then holds for it."""

from dataclasses import replace

import mcp_types as types
import pytest

from aggregator.config import Settings
from aggregator.config.mode import ToolSearchMode
from tests.peers import (
    ERAS,
    Era,
    Peer,
    aggregating,
    configured,
    connect_to,
    ready,
    text_of,
    visiting,
)

pytestmark = pytest.mark.anyio

GROWS, RELAYS = "joins your tool list", "Call a found tool with `CallTool`"


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


@pytest.mark.parametrize(("era", "told"), [("handshake", GROWS), ("modern", RELAYS)])
async def test_a_client_is_told_how_tools_reach_it_in_its_era(era: Era, told: str) -> None:
    info = types.Implementation(name="made-up", version="1")

    async with aggregating({"db": connect_to(Peer("query"))}) as upstream:
        async with visiting(upstream, era, client_info=info) as client:
            search = (await client.list_tools()).tools[0]

            assert told in (client.instructions or "")
            assert told in (search.description or "")


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_that_is_known_is_told_what_holds_for_it(era: Era) -> None:
    info = types.Implementation(name="claude-code", version="2.1.0")

    async with aggregating({"db": connect_to(Peer("query"))}) as upstream:
        await ready(upstream)
        async with visiting(upstream, era, client_info=info) as client:
            missing = await client.call_tool("CallTool", {"name": "no"})

            # It has a `ToolSearch` of its own, which answers a model that means ours.
            assert (client.instructions or "").startswith("`mcp__<server>__ToolSearch` finds")
            assert "Call a found tool with `mcp__<server>__CallTool`" in (client.instructions or "")
            assert "Use `mcp__<server>__ToolSearch` to find the right name" in text_of(missing)


@pytest.mark.parametrize("era", ERAS)
async def test_without_a_search_no_search_is_spoken_of(era: Era) -> None:
    never = replace(Settings(), tool_search=ToolSearchMode(100))

    async with aggregating({"db": connect_to(Peer("query"))}, settings=never) as upstream:
        async with visiting(upstream, era) as client:
            assert "ToolSearch" not in (client.instructions or "")


@pytest.mark.parametrize("era", ERAS)
async def test_who_connects_after_a_reload_is_told_of_the_servers_there_are_then(era: Era) -> None:
    ways = {"old": connect_to(Peer("x")), "new": connect_to(Peer("y"))}

    async with aggregating(ways, without=("new",)) as upstream:
        await ready(upstream)
        upstream.fleet.reconfigure(configured({"new": {}}))
        async with visiting(upstream, era) as client:
            assert (client.instructions or "").startswith("`ToolSearch` finds tools of new,")
