"""Every page of a server's lists is taken in, within bounds."""

from typing import Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError

from aggregator.catalog import Offers
from aggregator.config import ServerConfig
from aggregator.downstream.inventory import (
    MAX_INSTRUCTIONS,
    MAX_PAGES,
    Inventory,
    list_resources,
    list_tools,
)
from aggregator.downstream.peer import Peer, describe
from aggregator.names import ServerName
from tests.downstream.linking import HANDSHAKE, MODERN, Json, linked
from tests.transports import Script
from tests.work import TURN_BOUND, counting

pytestmark = pytest.mark.anyio

DB = ServerConfig(ServerName("db"), "db")


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


def tool(name: str, **properties: Any) -> Json:
    return {"name": name, "inputSchema": {"type": "object", "properties": properties}}


async def listed(peer: Peer, *pages: Json) -> Inventory:
    script = Script()

    async def serve() -> None:
        for page in pages:
            await script.answer(page)

    async with linked(script, peer) as link, anyio.create_task_group() as group:
        group.start_soon(serve)
        found = await list_tools(DB, link)
        group.cancel_scope.cancel()
        return found
    raise AssertionError


def names(inventory: Inventory) -> list[str]:
    return [entry.own_name for entry in inventory.state.entries]


async def test_pages_are_asked_for_one_after_another() -> None:
    pages = [{"tools": [tool("one")], "nextCursor": "2"}, {"tools": [tool("two")]}]
    inventory = await listed(HANDSHAKE, *pages)

    assert names(inventory) == ["one", "two"]
    assert inventory.state.protocol_version == "2025-11-25"


async def test_a_listing_that_repeats_a_page_ends_there() -> None:
    page: Json = {"tools": [tool("one")], "nextCursor": "again"}
    inventory = await listed(HANDSHAKE, page, {**page, "tools": [tool("two")]})

    assert names(inventory) == ["one", "two"]
    assert inventory.state.refused == ("Its listing repeats a page; it is taken to end there",)


async def test_a_listing_without_end_is_cut_off() -> None:
    pages: list[Json] = [
        {"tools": [tool(f"t{number}")], "nextCursor": str(number)} for number in range(MAX_PAGES)
    ]

    assert len(names(await listed(HANDSHAKE, *pages))) == MAX_PAGES


async def test_an_answer_without_a_list_is_an_error() -> None:
    with pytest.RaisesGroup(MCPError, flatten_subgroups=True):
        await listed(HANDSHAKE, {"tools": "none"})


async def test_which_arguments_are_repeated_in_headers_is_known_with_the_tools() -> None:
    mirrored = tool("draw", where={"type": "string", "x-mcp-header": "Place"})
    wrong = tool("odd", where={"type": "string", "x-mcp-header": "not a name"})
    modern = await listed(MODERN, {"tools": [mirrored, wrong]})
    old = await listed(HANDSHAKE, {"tools": [mirrored, wrong]})

    assert names(modern) == ["draw"]
    assert modern.mirrored == {"draw": {("where",): "Place"}}
    assert modern.state.refused == ("`odd` has an invalid `x-mcp-header`",)
    assert names(old) == ["draw", "odd"]
    assert old.mirrored == {}


async def test_a_server_may_have_resources_and_no_templates() -> None:
    script = Script()
    able = Peer("2025-11-25", capabilities={"resources": {}})

    async def serve() -> None:
        await script.answer({"resources": [{"uri": "x://1", "name": "one"}]})
        await script.refuse(-32601, "Method not found")

    async with linked(script, able) as link, anyio.create_task_group() as group:
        group.start_soon(serve)
        offers = await list_resources(DB, link, Offers(completes=True))

        assert [each.own_uri for each in offers.resources] == ["x://1"]
        assert (offers.templates, offers.completes) == ((), True)


async def test_of_what_a_server_says_of_itself_no_more_is_looked_at_than_is_kept() -> None:
    said = describe(
        "2025-11-25",
        {"name": "n\n" * 500_000, "description": "\n" * 500_000 + "a\n" * 500_000},
        {"instructions": "i\n" * 500_000},
    )

    with counting() as tally:
        inventory = await listed(said, {"tools": [tool("one")]})

    assert tally.calls < TURN_BOUND
    assert inventory.state.about == "i"
    assert inventory.state.instructions == "i\n" * (MAX_INSTRUCTIONS // 2)
