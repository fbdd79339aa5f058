"""Servers that are reached by their URL, in either era."""

from typing import Any

import anyio
import pytest

from aggregator.config import ServerConfig
from aggregator.downstream.http.reach import reach
from aggregator.downstream.transport import Connect
from aggregator.names import ServerName
from tests.loopback.web import peer_at
from tests.patience import PATIENCE
from tests.peers import ERAS, Era, Peer, aggregating, ready, text_of, visiting

pytestmark = pytest.mark.anyio


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> Era:
    return request.param


def at(url: str, **options: Any) -> Connect:
    return reach(ServerConfig(ServerName("web"), "web", type="http", url=url, **options))


async def test_a_server_is_listed_and_called(era: Era) -> None:
    peer = Peer("send", "receive")
    async with peer_at(peer, era) as url, aggregating({"web": at(url)}) as upstream:
        await ready(upstream)
        async with visiting(upstream, "handshake") as client:
            result = await client.call_tool("web__send", {"text": "hello"})
        state: Any = upstream.fleet.now.catalog.servers[ServerName("web")]

    assert text_of(result) == "send: {'text': 'hello'}"
    assert state.protocol_version == {"handshake": "2025-11-25", "modern": "2026-07-28"}[era]


async def test_a_changed_list_is_followed(era: Era) -> None:
    peer = Peer("send")
    async with peer_at(peer, era) as url, aggregating({"web": at(url)}) as upstream:
        await ready(upstream)
        fleet = upstream.fleet
        with anyio.fail_after(PATIENCE):
            while "web__post" not in fleet.now.catalog.entries:
                changed = fleet.changed
                await peer.change(post={"description": "Posts"})
                with anyio.move_on_after(0.5):
                    await changed.wait()


async def test_progress_reaches_the_caller(era: Era) -> None:
    seen: list[float] = []

    async def progressed(progress: float, total: float | None, message: str | None) -> None:
        seen.append(progress)

    async with peer_at(Peer("count"), era) as url, aggregating({"web": at(url)}) as upstream:
        await ready(upstream)
        async with visiting(upstream, "handshake") as client:
            await client.call_tool("web__count", {}, progress_callback=progressed)

    assert sorted(seen) == [0, 1, 2]


async def test_a_cancelled_call_is_cancelled_on_its_server(era: Era) -> None:
    peer = Peer("block")
    async with peer_at(peer, era) as url, aggregating({"web": at(url)}) as upstream:
        await ready(upstream)
        async with visiting(upstream, "handshake") as client, anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "web__block")
            with anyio.fail_after(PATIENCE):
                await peer.blocked.wait()
                group.cancel_scope.cancel()
                with anyio.CancelScope(shield=True):
                    await peer.cancelled.wait()

    assert peer.calls == [("block", {})]
