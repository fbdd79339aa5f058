"""What a client is told of us when it connects is what then holds for it."""

from dataclasses import replace

import mcp_types as types
import pytest

from aggregator.config import Settings
from aggregator.config.values import ToolSearchMode
from tests.peers import (
    ERAS,
    Era,
    Peer,
    aggregating,
    configured,
    connect_to,
    ready,
    visiting,
)

pytestmark = pytest.mark.anyio

GROWS, RELAYS = "joins your tool list", "Call a found tool with `CallTool`"


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


@pytest.mark.parametrize(("era", "told"), [("handshake", GROWS), ("modern", RELAYS)])
async def test_a_client_is_told_how_tools_reach_it_in_its_era(era: Era, told: str) -> None:
    async with aggregating({"db": connect_to(Peer("query"))}) as upstream:
        async with visiting(upstream, era) as client:
            search = (await client.list_tools()).tools[0]

            assert told in (client.instructions or "")
            assert told in (search.description or "")


async def test_a_client_that_is_known_is_told_what_holds_for_it() -> None:
    info = types.Implementation(name="claude-code", version="2.1.0")

    async with aggregating({"db": connect_to(Peer("query"))}) as upstream:
        async with visiting(upstream, "handshake", client_info=info) as client:
            assert RELAYS in (client.instructions or "")


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
            assert (client.instructions or "").endswith("- new")
