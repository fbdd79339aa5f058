"""A client of either era in front of a server of either era."""

from typing import Any

import anyio
import anyio.lowlevel
import mcp_types as types
import pytest

from tests.patience import PATIENCE
from tests.peers import (
    Era,
    Peer,
    aggregating,
    connect_to,
    keep_listening,
    ready,
    text_of,
    visiting,
)

pytestmark = pytest.mark.anyio


async def test_tools_are_listed_searched_and_called(client_era: Era, server_era: Era) -> None:
    peer = Peer("send_message", "list_channels")

    async with aggregating({"slack": connect_to(peer, server_era)}) as upstream:
        await ready(upstream)
        async with visiting(upstream, client_era) as client:
            listed = [tool.name for tool in (await client.list_tools()).tools]
            found = await client.call_tool("ToolSearch", {"query": "send a message"})
            called = await client.call_tool(
                "CallTool", {"name": "slack__send_message", "arguments": {"text": "hello"}}
            )
            direct = await client.call_tool("slack__list_channels", {})

    assert listed == ["ToolSearch", "CallTool", "CallReadOnlyTool"]
    assert "slack__send_message" in text_of(found)
    assert text_of(called) == "send_message: {'text': 'hello'}"
    assert text_of(direct) == "list_channels: {}"
    assert [name for name, _ in peer.calls] == ["send_message", "list_channels"]


async def test_the_era_of_the_server_is_found_out(server_era: Era) -> None:
    async with aggregating({"slack": connect_to(Peer("send"), server_era)}) as upstream:
        await ready(upstream)
        state: Any = upstream.fleet.now.catalog.servers["slack"]  # pyright: ignore[reportArgumentType]

    assert state.protocol_version == {"handshake": "2025-11-25", "modern": "2026-07-28"}[server_era]


async def test_a_changed_list_downstream_is_followed(client_era: Era, server_era: Era) -> None:
    peer = Peer("send_message")
    told = anyio.Event()

    async def hear(message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            told.set()

    options = {"always_load": ("post_*",)}
    async with aggregating({"slack": connect_to(peer, server_era)}, slack=options) as upstream:
        await ready(upstream)
        async with visiting(upstream, client_era, message_handler=hear) as client:
            before = [tool.name for tool in (await client.list_tools()).tools]
            with anyio.fail_after(PATIENCE):
                async with anyio.create_task_group() as group:
                    if client_era == "modern":
                        await group.start(keep_listening, client)
                    await peer.change(post_file={"description": "Posts a file"})
                    await told.wait()
                    group.cancel_scope.cancel()
            after = [tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools]

    assert "slack__post_file" not in before
    assert after == [*before, "slack__post_file"]


async def test_a_cancelled_call_is_cancelled_on_its_server(
    client_era: Era, server_era: Era
) -> None:
    peer = Peer("block")

    async with aggregating({"slow": connect_to(peer, server_era)}) as upstream:
        await ready(upstream)
        async with visiting(upstream, client_era) as client, anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "slow__block")
            with anyio.fail_after(PATIENCE):
                await peer.blocked.wait()
                group.cancel_scope.cancel()
                with anyio.CancelScope(shield=True):
                    await peer.cancelled.wait()

    assert peer.calls == [("block", {})]


async def test_progress_reaches_the_caller(client_era: Era, server_era: Era) -> None:
    seen: list[tuple[float, float | None, str | None]] = []

    async def progressed(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    async with aggregating({"steps": connect_to(Peer("count"), server_era)}) as upstream:
        await ready(upstream)
        async with visiting(upstream, client_era) as client:
            await client.call_tool("steps__count", {}, progress_callback=progressed)

    assert sorted(seen) == [(0, 3, "step 0"), (1, 3, "step 1"), (2, 3, "step 2")]


async def test_a_large_listing_is_read_without_holding_up_requests() -> None:
    """What takes long is done in a thread; tools are callable before they can be searched."""
    peer = Peer(*(f"tool_{number}" for number in range(1200)))

    async with aggregating({"big": connect_to(peer)}) as upstream:
        await ready(upstream)
        async with visiting(upstream, "handshake") as client:
            called = await client.call_tool("big__tool_7", {})
            with anyio.fail_after(PATIENCE):
                while len(upstream.fleet.index) < 1200:
                    await anyio.lowlevel.checkpoint()
            found = await client.call_tool("ToolSearch", {"query": "tool 777", "max_results": 1})

    assert text_of(called) == "tool_7: {}"
    assert "big__tool_777" in text_of(found)
