"""Another configuration while calls are in flight: only what changed is touched."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.client.caching import CacheConfig

from aggregator.catalog import Pending
from aggregator.config import Config, Settings
from aggregator.config.mode import ToolSearchMode
from aggregator.downstream.transport import Connect, Transport
from tests.peers import (
    ERAS,
    Era,
    Mortal,
    Peer,
    aggregating,
    configured,
    connect_to,
    failing,
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
                changed = {"call_timeout": 10.0, "args": ("other",), "deny": ("block",)}
                upstream.fleet.reconfigure(configuration({"db": changed}))
                again.append(await client.call_tool("db__query", {}))

    assert text_of(again[0]) == "query: {}"
    # It was left to run into its own time limit.
    assert "did not answer within 10 s" in text_of(results[0])
    assert len(way.opened) == 2
    assert list(upstream.fleet.now.catalog.entries) == ["db__query"]


WORDS = {
    "description": "A place for parcels",
    "search_hints": {"query": "zeppelin"},
    "always_load": ("query",),
    "deny": ("drop",),
    "prefix": "store",
    "call_timeout": 7.0,
    "connect_timeout": 7.0,
    "max_in_flight": 1,
    "trust_annotations": False,
}
"""What says how a server is treated, and not what it is."""


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("server_era", ERAS)
async def test_other_words_are_applied_to_the_server_that_runs(era: Era, server_era: Era) -> None:
    """Behind it may be a browser with somebody logged in."""
    peer = Peer("block", "query", "drop")
    way = Mortal(connect_to(peer, server_era))
    slow: list[types.CallToolResult] = []

    async with aggregating({"db": way}, db={"deny": ("block",)}) as upstream:
        async with visiting(upstream, era) as client:
            await ready(upstream)
            assert "zeppelin" not in text_of(await client.call_tool("db__query", {}))
            upstream.fleet.reconfigure(configuration({"db": WORDS}))
            await anyio.sleep(0.1)
            listed = [tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools]
            found = text_of(await client.call_tool("ToolSearch", {"query": "zeppelin"}))
            overview = text_of(await client.call_tool("ToolSearch", {"query": ""}))
            began = anyio.current_time()
            slow.append(await client.call_tool("store__block", {}))
            took = anyio.current_time() - began

    assert len(way.opened) == 1
    assert listed[3:] == ["store__query"]
    assert "store__query" in found
    assert "A place for parcels" in overview
    assert list(upstream.fleet.now.catalog.entries) == ["store__block", "store__query"]
    assert took == 7
    assert "did not answer within 7 s" in text_of(slow[0])


@pytest.mark.parametrize(
    "change",
    [
        {"command": "other"},
        {"args": ("other",)},
        {"env": {"A": "b"}},
        {"inherited": {"A": "b"}},
        {"headers": {"A": "b"}},
        {"problem": "a variable is missing"},
    ],
)
async def test_what_makes_another_process_replaces_the_server(change: dict[str, Any]) -> None:
    way = Mortal(connect_to(Peer("query")))

    async with aggregating({"db": way}) as upstream:
        await ready(upstream)
        upstream.fleet.reconfigure(configuration({"db": change}))
        await anyio.sleep(1)

    assert len(way.opened) == (1 if "problem" in change else 2)


async def test_a_server_that_is_starting_gets_the_time_it_is_given_now() -> None:
    way = Mortal(never())

    async with aggregating({"db": way}, db={"connect_timeout": 10.0}) as upstream:
        await anyio.sleep(5)
        upstream.fleet.reconfigure(configuration({"db": {"connect_timeout": 20.0}}))
        await anyio.sleep(14)
        before = upstream.fleet.now.catalog.servers
        await anyio.sleep(2)
        after = upstream.fleet.now.catalog.servers

    assert [state.reason for state in before.values() if isinstance(state, Pending)] == [None]
    assert [state.reason for state in after.values() if isinstance(state, Pending)] != [None]


async def test_a_server_that_fails_is_tried_again_when_its_words_change() -> None:
    """A person who edits what is said of it looks at it now."""
    ways: list[Connect] = [connect_to(Peer("query")), *(failing(OSError("no")) for _ in range(6))]

    @asynccontextmanager
    async def connect() -> AsyncGenerator[Transport, None]:
        async with (ways.pop() if ways[1:] else ways[0])() as transport:
            yield transport

    async with aggregating({"db": connect}) as upstream:
        await anyio.sleep(30)
        assert (ways[1:], upstream.fleet.now.catalog.pending) == ([], ("db",))
        began = anyio.current_time()
        upstream.fleet.reconfigure(configuration({"db": {"description": "new"}}))
        await ready(upstream)

        assert anyio.current_time() - began < 1
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


async def test_a_client_that_keeps_lists_sees_an_added_server_within_seconds() -> None:
    """The SDK's client keeps answers for as long as they say; it has not subscribed to changes."""
    ways = {"db": connect_to(Peer("query")), "new": connect_to(Peer("hello"))}
    cache = CacheConfig(clock=anyio.current_time)

    async with aggregating(ways, without=["new"]) as upstream:
        async with visiting(upstream, "modern", cache=cache) as client:
            await ready(upstream)
            await client.list_tools()
            await client.list_resources()
            await client.read_resource("catalog://servers")
            upstream.fleet.reconfigure(configuration({"db": {}, "new": {"always_load": ("*",)}}))
            await ready(upstream)
            seen = await client.read_resource("catalog://servers")
            at_once = await client.list_tools()
            await anyio.sleep(3)
            listed = await client.list_tools()
            first = await client.list_resources()

    assert '"new"' in text_in(seen)
    assert "new__hello" not in [tool.name for tool in at_once.tools]
    assert "new__hello" in [tool.name for tool in listed.tools]
    assert first.ttl_ms == 2_000


@pytest.mark.parametrize("era", ERAS)
async def test_a_broken_edit_is_told_to_whoever_asks(era: Era) -> None:
    async with aggregating({"db": connect_to(Peer("query"))}) as upstream:
        async with visiting(upstream, era) as client:
            await ready(upstream)
            await client.read_resource("catalog://servers")
            upstream.fleet.report_problem("`servers.yaml`, line 3: `comand` is not known")
            read = await client.read_resource("catalog://servers")
            overview = await client.call_tool("ToolSearch", {"query": "server:"})
            search = await client.call_tool("ToolSearch", {"query": "query"})
            upstream.fleet.reconfigure(configuration({"db": {}}))
            after = await client.read_resource("catalog://servers")
            mended = await client.call_tool("ToolSearch", {"query": "server:"})

    assert "line 3: `comand` is not known" in text_in(read)
    assert "line 3: `comand` is not known; going on with" in text_of(overview)
    assert "line 3: `comand` is not known" in (search.meta or {})["aggregator/search"]["problem"]
    assert "comand" not in text_in(after)
    assert "comand" not in text_of(mended)


def text_in(read: types.ReadResourceResult) -> str:
    """Return the text of a resource that was read."""
    (contents,) = read.contents
    assert isinstance(contents, types.TextResourceContents)
    return contents.text


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
