"""Clients of either era that come in over HTTP."""

import gc
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import mcp_types as types
import pytest
from mcp import Client

from aggregator.config import Settings
from aggregator.downstream.transport import Connect, Transport
from aggregator.upstream.conversation import Conversation
from tests.loopback.door import door
from tests.patience import PATIENCE
from tests.peers import (
    ERAS,
    Context,
    Era,
    Peer,
    connect_to,
    failing,
    never,
    ready,
    text_of,
    until,
)

pytestmark = pytest.mark.anyio


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> Era:
    return request.param


class PatientPeer(Peer):
    """A server whose one tool ends when it is told to."""

    def __init__(self) -> None:
        super().__init__("wait")
        self.waiting = anyio.Event()
        self.go_on = anyio.Event()

    async def _call(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        self.waiting.set()
        await self.go_on.wait()
        return await super()._call(ctx, params)


def _after(started: anyio.Event, connect: Connect) -> Connect:
    """Connect only once something has happened."""

    @asynccontextmanager
    async def connect_then() -> AsyncGenerator[Transport, None]:
        await started.wait()
        async with connect() as transport:
            yield transport

    return connect_then


async def names(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools]


async def test_tools_are_listed_searched_and_called(era: Era, tmp_path: Path) -> None:
    peer = Peer("send_message", "list_channels")
    async with door({"slack": connect_to(peer)}, tmp_path) as opened:
        await ready(opened.upstream)
        async with opened.client(era) as client:
            listed = await names(client)
            found = await client.call_tool("ToolSearch", {"query": "send a message"})
            called = await client.call_tool(
                "CallTool", {"name": "slack__send_message", "arguments": {"text": "hello"}}
            )
            direct = await client.call_tool("slack__list_channels", {})

    assert listed == ["ToolSearch", "CallTool", "CallReadOnlyTool"]
    assert "slack__send_message" in text_of(found)
    assert text_of(called) == "send_message: {'text': 'hello'}"
    assert text_of(direct) == "list_channels: {}"


async def test_a_changed_list_is_announced(era: Era, tmp_path: Path) -> None:
    """In the handshake era on the stream that the client opened with GET."""
    peer = Peer("send_message")
    told = anyio.Event()

    async def hear(message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            told.set()

    options = {"always_load": ("post_*",)}
    async with door({"slack": connect_to(peer)}, tmp_path, slack=options) as opened:
        await ready(opened.upstream)
        async with opened.client(era, message_handler=hear) as client:
            before = await names(client)
            with anyio.fail_after(PATIENCE):
                async with anyio.create_task_group() as group:
                    if era == "modern":
                        group.start_soon(_listen, client, told)
                    while not told.is_set():
                        number = len(peer.tools)
                        await peer.change(**{f"post_{number}": {"description": "Posts"}})
                        with anyio.move_on_after(1):
                            await told.wait()
                    group.cancel_scope.cancel()
            after = await names(client)

    assert after[: len(before)] == before
    assert "slack__post_1" in after


async def _listen(client: Any, told: anyio.Event) -> None:
    async with client.listen(tools_list_changed=True) as events:
        async for _ in events:
            told.set()


async def test_a_cancelled_call_is_cancelled_on_its_server(era: Era, tmp_path: Path) -> None:
    peer = Peer("block")
    async with door({"slow": connect_to(peer)}, tmp_path) as opened:
        await ready(opened.upstream)
        async with opened.client(era) as client, anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "slow__block")
            with anyio.fail_after(PATIENCE):
                await peer.blocked.wait()
                group.cancel_scope.cancel()
                with anyio.CancelScope(shield=True):
                    await peer.cancelled.wait()

    assert peer.calls == [("block", {})]


async def test_what_one_session_loads_is_not_in_the_list_of_another(tmp_path: Path) -> None:
    settings = Settings(surface="promote")
    peer = Peer("send_message", "list_channels")
    async with door({"slack": connect_to(peer)}, tmp_path, settings) as opened:
        await ready(opened.upstream)
        async with opened.client("handshake") as one, opened.client("handshake") as other:
            await one.call_tool("ToolSearch", {"query": "select:slack__send_message"})
            lists = await names(one), await names(other)

    assert lists == (["ToolSearch", "slack__send_message"], ["ToolSearch"])


async def test_nothing_is_left_of_a_client_whose_session_has_ended(tmp_path: Path) -> None:
    async with door({}, tmp_path) as opened:
        async with opened.client("modern") as stranger, opened.client("handshake") as client:
            await names(stranger)
            await names(client)
            during = _conversations()
        async with httpx2.AsyncClient(trust_env=False) as http:
            with anyio.fail_after(PATIENCE):
                while _conversations() == during:
                    await http.get(f"{opened.origin}/healthz")
        after = _conversations()

    assert after == during - 1


def _conversations() -> int:
    """Count what is remembered of clients anywhere."""
    gc.collect()
    return sum(isinstance(each, Conversation) for each in gc.get_objects())


@pytest.mark.parametrize("surface", ["promote", "hybrid"])
async def test_a_list_that_grows_is_not_for_the_modern_era(surface: Any, tmp_path: Path) -> None:
    async with door({}, tmp_path, Settings(surface=surface)) as opened:
        async with httpx2.AsyncClient(headers=opened.credentials, trust_env=False) as http:
            response = await http.post(
                opened.url,
                headers={
                    "mcp-protocol-version": "2026-07-28",
                    "mcp-method": "server/discover",
                    "accept": "application/json, text/event-stream",
                },
                json={"jsonrpc": "2.0", "id": 1, "method": "server/discover"},
            )
        async with opened.client("modern") as client:
            version = client.session.protocol_version

    assert response.status_code == 400
    assert "2025-11-25" in response.json()["error"]["data"]["supported"]
    assert version == "2025-11-25"


async def test_what_is_under_way_ends_before_we_leave(era: Era, tmp_path: Path) -> None:
    """The call in flight is answered; a new one is turned away; streams of news are cut."""
    peer = PatientPeer()
    options = {"always_load": True}
    async with door({"slow": connect_to(peer)}, tmp_path, slow=options) as opened:
        await ready(opened.upstream)
        answers: list[str] = []

        async def call(client: Client) -> None:
            answers.append(text_of(await client.call_tool("slow__wait", {})))

        async with opened.client(era) as client, anyio.create_task_group() as group:
            await names(client)
            group.start_soon(call, client)
            await peer.waiting.wait()
            opened.stop.set()
            async with httpx2.AsyncClient(trust_env=False) as http:
                await _until_closing(http, opened.origin)
                refused = await http.post(opened.url, headers=opened.credentials)
            assert refused.status_code == 503
            peer.go_on.set()

    assert answers == ["wait: {}"]


async def _until_closing(http: httpx2.AsyncClient, origin: str) -> None:
    with anyio.fail_after(PATIENCE):
        while (await http.get(f"{origin}/readyz")).is_success:
            pass


async def test_a_server_that_is_tried_again_does_not_make_the_rest_unready(tmp_path: Path) -> None:
    attempts, again = [failing(OSError("it is down")), never()], anyio.Event()

    @asynccontextmanager
    async def connect() -> AsyncGenerator[Transport, None]:
        if len(attempts) == 1:
            again.set()
        async with attempts.pop(0)() as transport:
            yield transport

    async with (
        door({"slack": connect_to(Peer("send")), "lost": connect}, tmp_path) as opened,
        httpx2.AsyncClient(trust_env=False, base_url=opened.origin) as http,
    ):
        with anyio.fail_after(PATIENCE):
            await again.wait()
        fleet = opened.upstream.fleet
        await until(lambda: len(fleet.now.catalog.known) == 1, lambda: fleet.changed)
        answer = await http.get("/readyz")

    assert (answer.status_code, answer.json()) == (200, {"status": "ready"})


async def test_being_well_is_told_without_a_token_and_without_names(tmp_path: Path) -> None:
    started = anyio.Event()

    async with (
        door({"slack": _after(started, connect_to(Peer("send")))}, tmp_path) as opened,
        httpx2.AsyncClient(trust_env=False, base_url=opened.origin) as http,
    ):
        alive, starting = await http.get("/healthz"), await http.get("/readyz")
        started.set()
        await ready(opened.upstream)
        settled = await http.get("/readyz")

    assert (alive.status_code, starting.status_code, settled.status_code) == (200, 503, 200)
    assert [each.json() for each in (alive, starting, settled)] == [
        {"status": "alive"},
        {"status": "starting"},
        {"status": "ready"},
    ]
