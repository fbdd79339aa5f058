"""Another configuration while calls are in flight: only what changed is touched."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import anyio
import mcp_types as types
import pytest

from aggregator.config import Config, Settings
from aggregator.config.values import ToolSearchMode
from tests.peers import (
    ERAS,
    Era,
    Mortal,
    Peer,
    aggregating,
    configured,
    connect_to,
    never,
    ready,
    text_of,
    visiting,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


def configuration(servers: Mapping[str, Mapping[str, Any]], **settings: Any) -> Config:
    return configured(servers, replace(Settings(), **settings))


@pytest.mark.parametrize("era", ERAS)
async def test_unchanged_servers_keep_their_connection_and_their_calls(era: Era) -> None:
    steady = Peer("block", "query")
    ways = {
        name: Mortal(connect_to(peer)) for name, peer in {"db": steady, "old": Peer("x")}.items()
    }
    ways["new"] = Mortal(connect_to(Peer("y")))
    results: list[types.CallToolResult] = []

    async with aggregating(ways, without=("new",)) as upstream:
        async with visiting(upstream, era) as client:
            await ready(upstream)

            async def call() -> None:
                results.append(await client.call_tool("db__query", {}))

            async with anyio.create_task_group() as group:
                group.start_soon(call)
                upstream.fleet.reconfigure(configuration({"new": {}, "db": {}}))
            await ready(upstream)
            names = list(upstream.fleet.now.catalog.entries)

    assert text_of(results[0]) == "query: {}"
    assert len(ways["db"].opened) == 1
    assert names == ["new__y", "db__block", "db__query"]


@pytest.mark.parametrize("era", ERAS)
async def test_a_changed_server_is_started_anew_and_its_calls_are_drained(era: Era) -> None:
    peer = Peer("block", "query")
    way = Mortal(connect_to(peer))
    results: list[types.CallToolResult] = []
    again: list[types.CallToolResult] = []

    async with aggregating({"db": way}, db={"call_timeout": 10.0}) as upstream:
        async with visiting(upstream, era) as client:
            await ready(upstream)

            async def call() -> None:
                results.append(await client.call_tool("db__block", {}))

            async with anyio.create_task_group() as group:
                group.start_soon(call)
                await peer.blocked.wait()
                changed = {"call_timeout": 10.0, "description": "other", "deny": ("block",)}
                upstream.fleet.reconfigure(configuration({"db": changed}))
                again.append(await client.call_tool("db__query", {}))

    assert text_of(again[0]) == "query: {}"
    # It was left to run into its own time limit.
    assert "did not answer within 10 s" in text_of(results[0])
    assert len(way.opened) == 2
    assert list(upstream.fleet.now.catalog.entries) == ["db__query"]


async def test_a_drained_server_is_not_waited_for_for_ever() -> None:
    peer = Peer("block")
    slow = {"call_timeout": 500.0}
    results: list[types.CallToolResult] = []

    async with aggregating({"db": connect_to(peer)}, db=slow) as upstream:
        async with visiting(upstream, "handshake") as client:
            await ready(upstream)

            async def call() -> None:
                results.append(await client.call_tool("db__block", {}))

            began = anyio.current_time()
            async with anyio.create_task_group() as group:
                group.start_soon(call)
                await peer.blocked.wait()
                upstream.fleet.reconfigure(configuration({}))
            took = anyio.current_time() - began

    assert took == 30
    assert "may or may not have taken effect" in text_of(results[0])


async def test_settings_apply_to_clients_that_are_connected() -> None:
    async with aggregating({"db": connect_to(Peer("query"))}) as upstream:
        async with visiting(upstream, "handshake") as client:
            await ready(upstream)
            before = [tool.name for tool in (await client.list_tools()).tools]
            upstream.fleet.reconfigure(configuration({"db": {}}, surface="full"))
            after = [tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools]

    assert before == ["ToolSearch", "CallTool", "CallReadOnlyTool"]
    assert after == ["db__query"]


async def test_servers_that_wait_to_be_started_may_leave_the_configuration() -> None:
    hanging = {f"hanging{number}": never() for number in range(8)}
    ways = {**hanging, "late": connect_to(Peer("x")), "kept": connect_to(Peer("y"))}

    async with aggregating(ways) as upstream:
        await anyio.sleep(0.1)
        assert "late" not in upstream.fleet.now.catalog.entries
        upstream.fleet.reconfigure(configuration({name: {} for name in hanging}))
        await anyio.sleep(1)
        upstream.fleet.reconfigure(configuration({"kept": {}}))
        await ready(upstream)

        assert list(upstream.fleet.now.catalog.entries) == ["kept__y"]


@pytest.mark.parametrize("era", ERAS)
async def test_tools_stay_deferred_when_only_a_setting_changes(era: Era) -> None:
    peer = Peer(*(f"tool{number}" for number in range(50)))
    auto = Settings(tool_search=ToolSearchMode(1), context_window=10_000)

    async with aggregating({"db": connect_to(peer)}, settings=auto) as upstream:
        async with visiting(upstream, era) as client:
            await ready(upstream)
            before = await client.list_tools()
            settings = replace(auto, max_results=6)
            upstream.fleet.reconfigure(configured({"db": {}}, settings))
            after = await client.list_tools()

    assert [tool.name for tool in after.tools] == [tool.name for tool in before.tools]
