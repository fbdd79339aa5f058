"""A stream that opens with the modern era, and whatever its client sends then."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError
from mcp.shared.memory import create_client_server_memory_streams

from aggregator.app.life import serve_client
from aggregator.upstream.server import Upstream
from tests.peers import aggregating, ready
from tests.raw import Dispatch, Json, RawClient, RawServer

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


@asynccontextmanager
async def modern_client(upstream: Upstream) -> AsyncGenerator[RawClient, None]:
    async with (
        create_client_server_memory_streams() as (ours, theirs),
        anyio.create_task_group() as group,
    ):
        client = RawClient("modern", ours, {})
        await group.start(client.run)
        group.start_soon(lambda: serve_client(upstream, theirs, opens_modern=True))
        await client.open()
        yield client
        group.cancel_scope.cancel()


async def test_requests_are_answered_each_by_itself() -> None:
    async def fill(_context: Dispatch, _params: Json) -> Json:
        return {"content": [{"type": "text", "text": "full"}]}

    server = RawServer("modern")
    server.tool("fill", fill)
    async with aggregating({"one": server.connect}) as upstream, modern_client(upstream) as client:
        await ready(upstream)
        found = await client.request("tools/call", {"name": "one__fill", "arguments": {}})

    assert found["content"][0]["text"] == "full"
    assert found["resultType"] == "complete"


@pytest.mark.parametrize(
    ("params", "requested"),
    [({"protocolVersion": "2025-11-25"}, "2025-11-25"), ({"protocolVersion": 7}, None)],
)
async def test_a_handshake_comes_too_late(params: Json, requested: str | None) -> None:
    async with aggregating({}) as upstream, modern_client(upstream) as client:
        client.era = "handshake"
        with pytest.raises(MCPError, match="handshake is not accepted") as caught:
            await client.request("initialize", params)

    assert caught.value.code == types.UNSUPPORTED_PROTOCOL_VERSION
    assert caught.value.data["supported"] == ["2026-07-28"]
    assert caught.value.data.get("requested") == requested


async def test_what_does_not_say_who_asks_is_refused_and_news_are_not() -> None:
    async with aggregating({}) as upstream, modern_client(upstream) as client:
        await client.notify("notifications/whatever")
        client.era = "handshake"
        with pytest.raises(MCPError) as caught:
            await client.request("tools/list")
        client.era = "modern"
        assert "tools" in await client.request("tools/list")

    assert caught.value.code == types.INVALID_PARAMS
