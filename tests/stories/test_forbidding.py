"""What another configuration forbids holds from the next call on, whatever is under way."""

from typing import Any

import anyio
import anyio.lowlevel
import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from tests.peers import (
    ERAS,
    Era,
    Mortal,
    Peer,
    aggregating,
    configured,
    connect_to,
    ready,
    text_of,
    visiting,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


def asked(tool: str) -> dict[str, Any]:
    return {"name": tool, "arguments": {}}


@pytest.mark.parametrize("era", ERAS)
async def test_what_is_forbidden_is_so_at_once_however_the_server_lists(era: Era) -> None:
    class Silent(Peer):
        async def _list(self, ctx: Any, _params: Any) -> types.ListToolsResult:
            if self.lists:
                await anyio.sleep_forever()
            return await super()._list(ctx, _params)

    peer = Silent("query", "drop")
    way = Mortal(connect_to(peer))

    async with aggregating({"db": way}) as upstream:
        async with visiting(upstream, era) as client:
            await ready(upstream)
            upstream.fleet.reconfigure(configured({"db": {"deny": ("drop",)}}))
            await anyio.sleep(1)
            refused = await client.call_tool("CallTool", {"name": "db__drop", "arguments": {}})

    assert refused.is_error
    assert [name for name, _ in peer.calls] == []
    assert len(way.opened) == 1


LARGE = {f"tool_{number}": {"description": f"Does {number}"} for number in range(600)}
"""Tools that take longer to be read into the index than a call takes."""


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("server_era", ERAS)
async def test_what_is_forbidden_is_so_at_once_however_long_its_tools_are_read(
    era: Era, server_era: Era
) -> None:
    reads = {"description": "Drops it", "annotations": types.ToolAnnotations(read_only_hint=True)}
    peer = Peer(**LARGE, drop=reads, peek=reads)
    way = Mortal(connect_to(peer, server_era))
    drop, peek = asked("db__drop"), asked("db__peek")

    async with aggregating({"db": way}) as upstream:
        async with visiting(upstream, era) as client:
            await ready(upstream)
            fleet = upstream.fleet
            allowed = [
                await client.call_tool("db__drop", {}),
                await client.call_tool("CallReadOnlyTool", peek),
            ]
            words = {"deny": ("drop",), "trust_annotations": False, "prefix": "store"}
            fleet.reconfigure(configured({"db": words}))
            with pytest.raises(MCPError, match="There is no tool `db__drop`"):
                await client.call_tool("db__drop", {})
            refused = [
                await client.call_tool("CallTool", drop),
                await client.call_tool("CallReadOnlyTool", peek),
            ]
            found = text_of(await client.call_tool("ToolSearch", {"query": "drops it"}))
            # Names are given anew only with what they are found by.
            is_reading = "db__peek" in fleet.now.catalog.entries
            await anyio.sleep(1)

    assert [each.is_error for each in allowed] == [False, False]
    assert [each.is_error for each in refused] == [True, True]
    assert "db__peek" in found
    assert "db__drop" not in found
    assert is_reading
    assert [name for name, _ in peer.calls] == ["drop", "peek"]
    assert "store__peek" in fleet.now.catalog.entries
    assert "store__drop" not in fleet.now.catalog.entries
    assert len(way.opened) == 1


@pytest.mark.parametrize("era", ERAS)
async def test_a_list_that_is_being_read_brings_nothing_back_that_is_forbidden(era: Era) -> None:
    peer = Peer(**LARGE, drop={"description": "Drops it"})
    shown: list[bool] = []

    async with aggregating({"db": connect_to(peer)}) as upstream:
        async with visiting(upstream, era) as client:
            await ready(upstream)
            fleet = upstream.fleet
            await peer.change(newest={"description": "Comes later"})
            while peer.lists < 2:
                await anyio.lowlevel.checkpoint()
            for _ in range(200):
                await anyio.lowlevel.checkpoint()
            assert "db__newest" not in fleet.now.catalog.entries
            fleet.reconfigure(configured({"db": {"deny": ("drop",)}}))
            with pytest.raises(MCPError, match="There is no tool `db__drop`"):
                await client.call_tool("db__drop", {})
            while "db__newest" not in fleet.now.catalog.entries:
                shown.append("db__drop" in fleet.now.catalog.entries)
                await fleet.changed.wait()
            shown.append("db__drop" in fleet.now.catalog.entries)
            await anyio.sleep(1)

    assert not any(shown)
    assert "db__drop" not in fleet.now.catalog.entries
    assert peer.calls == []


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("own", ["db_drop_table", "db__drop_table", "DB-drop-table", "dbDropTable"])
async def test_a_tool_that_names_its_server_itself_is_forbidden_as_it_can_be_called(
    own: str, era: Era
) -> None:
    """`db__drop_table` calls it, so `drop_*` is about it."""
    peer = Peer(own, "query")

    async with aggregating({"db": connect_to(peer)}, db={"deny": ("drop_*",)}) as upstream:
        async with visiting(upstream, era) as client:
            await ready(upstream)
            for text in ("db__drop_table", "db_drop_table", own, f"db__{own}", f"mcp__us__{own}"):
                refused = await client.call_tool("CallTool", asked(text))
                assert refused.is_error

    assert peer.calls == []
