"""A network that breaks in front of a server: one call is lost at most, and nobody else notices."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest
from mcp import Client

from aggregator.catalog import Failed, Pending, Ready
from aggregator.config import ServerConfig
from aggregator.downstream.http.reach import reach
from aggregator.downstream.transport import Connect
from aggregator.fleet.fleet import Fleet
from aggregator.names import ServerName
from aggregator.upstream.server import Upstream
from tests.loopback.proxy import (
    Fault,
    Proxy,
    half_answer,
    held,
    proxied,
    reset_answer,
    reset_unsent,
    saying,
    trickled,
)
from tests.loopback.web import peer_at
from tests.patience import PATIENCE
from tests.peers import ERAS, Era, Peer, aggregating, connect_to, text_of, until, visiting

pytestmark = pytest.mark.anyio

WEB = ServerName("web")
NOT_RUN = "was not run"
MAY_HAVE_RUN = "may or may not have taken effect"


def at(url: str) -> Connect:
    return reach(ServerConfig(WEB, "web", type="http", url=url))


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> Era:
    return request.param


@dataclass
class Scene:
    """A server behind a proxy, a healthy neighbour, and a client of both."""

    peer: Peer
    proxy: Proxy
    upstream: Upstream
    client: Client
    states: list[str] = field(default_factory=list[str])

    async def call(self, tool: str = "web__echo", **arguments: Any) -> str:
        with anyio.fail_after(PATIENCE):
            return text_of(await self.client.call_tool(tool, arguments))

    def state(self) -> Any:
        return self.upstream.fleet.now.catalog.servers[WEB]

    async def ready(self) -> None:
        fleet = self.upstream.fleet
        await until(lambda: isinstance(self.state(), Ready), lambda: fleet.changed)


@asynccontextmanager
async def scene(era: Era) -> AsyncGenerator[Scene, None]:
    peer, neighbour = Peer("echo", "block"), Peer("echo")
    async with peer_at(peer, era) as url, proxied(int(url.split(":")[2][:-4])) as proxy:
        servers = {"web": at(proxy.url), "near": connect_to(neighbour)}
        async with aggregating(servers) as upstream, visiting(upstream, "handshake") as client:
            staged = Scene(peer, proxy, upstream, client)
            await staged.ready()
            yield staged


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (reset_unsent, MAY_HAVE_RUN),
        (reset_answer, MAY_HAVE_RUN),
        (half_answer, MAY_HAVE_RUN),
        (saying("502 Bad Gateway"), MAY_HAVE_RUN),
        (saying("500 Internal Server Error"), MAY_HAVE_RUN),
        (saying("503 Service Unavailable", "retry-after: 7"), NOT_RUN),
        (saying("429 Too Many Requests", "retry-after: 7"), NOT_RUN),
        (saying("413 Content Too Large"), NOT_RUN),
    ],
)
async def test_a_fault_costs_its_call_and_no_other(era: Era, fault: Fault, says: str) -> None:
    async with scene(era) as staged, anyio.create_task_group() as group:
        group.start_soon(staged.client.call_tool, "web__block")
        await staged.peer.blocked.wait()

        staged.proxy.next(fault)
        assert says in await staged.call(number=1)
        assert await staged.call("near__echo", number=2) == "echo: {'number': 2}"
        assert await staged.call(number=3) == "echo: {'number': 3}"
        assert not staged.peer.cancelled.is_set()
        group.cancel_scope.cancel()


async def test_an_answer_in_crumbs_is_an_answer(era: Era) -> None:
    async with scene(era) as staged:
        staged.proxy.next(trickled)
        answer = await staged.call(number=1)

    assert answer == "echo: {'number': 1}"
    assert len(staged.peer.calls) == 1


async def test_a_slow_network_costs_nothing_but_time(era: Era) -> None:
    answers = list[str]()
    released = anyio.Event()

    async def call(staged: Scene) -> None:
        answers.append(await staged.call(number=1))

    async with scene(era) as staged, anyio.create_task_group() as group:
        staged.proxy.next(held(released))
        group.start_soon(call, staged)
        assert await staged.call("near__echo", number=2) == "echo: {'number': 2}"
        assert answers == []
        released.set()

    assert answers == ["echo: {'number': 1}"]
    assert len(staged.peer.calls) == 1


async def test_a_wish_to_be_left_alone_is_passed_on(era: Era) -> None:
    async with scene(era) as staged:
        staged.proxy.next(saying("503 Service Unavailable", "retry-after: 7"))
        failed = await staged.call()

    assert "it asks to wait 7 s" in failed


async def test_an_expired_session_is_renewed_without_losing_the_call() -> None:
    async with scene("handshake") as staged:
        staged.proxy.next(saying("404 Not Found"))
        listed_before = staged.peer.lists
        answer = await staged.call(number=1)
        fleet = staged.upstream.fleet
        with anyio.fail_after(PATIENCE):
            while staged.peer.lists == listed_before:
                with anyio.move_on_after(0.1):
                    await fleet.changed.wait()

    assert answer == "echo: {'number': 1}"
    assert len(staged.peer.calls) == 1


async def test_a_server_that_restarts_is_back_by_itself() -> None:
    """Its sessions are gone with it: the same address, but nobody there who knows us."""
    peer = Peer("echo")
    async with proxied(1) as placeholder:
        port = placeholder.port
    async with aggregating({"web": at(f"http://127.0.0.1:{port}/mcp")}) as upstream:
        fleet = upstream.fleet
        async with peer_at(peer, "handshake", port=port):
            await until(
                lambda: isinstance(fleet.now.catalog.servers[WEB], Ready), lambda: fleet.changed
            )
        async with peer_at(peer, "handshake", port=port), visiting(upstream, "modern") as client:
            with anyio.fail_after(PATIENCE):
                answer = text_of(await client.call_tool("web__echo", {}))

    assert answer == "echo: {}"


async def test_a_server_that_is_not_there_is_pending_and_then_back(era: Era) -> None:
    peer = Peer("echo")
    async with peer_at(peer, era) as url:
        target = int(url.split(":")[2][:-4])
        async with proxied(target) as proxy:
            port = proxy.port
        async with aggregating({"web": at(f"http://127.0.0.1:{port}/mcp")}) as upstream:
            fleet = upstream.fleet
            reason = await _reason(fleet)
            async with proxied(target, port=port):
                await until(
                    lambda: isinstance(fleet.now.catalog.servers[WEB], Ready), lambda: fleet.changed
                )

    assert reason.startswith("it cannot be reached")


async def _reason(fleet: Fleet) -> str:
    """Wait until there is a reason why the server is not there."""
    while True:
        changed, state = fleet.changed, fleet.now.catalog.servers[WEB]
        if isinstance(state, Pending | Failed) and state.reason:
            return state.reason
        with anyio.fail_after(PATIENCE):
            await changed.wait()


@pytest.mark.parametrize("status", ["401 Unauthorized", "403 Forbidden"])
async def test_missing_credentials_are_a_state_until_a_call_wakes_it(era: Era, status: str) -> None:
    async with scene(era) as staged:
        staged.proxy.next(saying(status))
        refused = await staged.call(number=1)
        fleet = staged.upstream.fleet
        await until(lambda: isinstance(staged.state(), Failed), lambda: fleet.changed)
        reason = staged.state().reason
        answer = await staged.call(number=2)

    assert NOT_RUN in refused
    assert "try again" not in refused
    assert reason.startswith("auth required")
    assert answer == "echo: {'number': 2}"


async def test_a_tool_beyond_the_credentials_costs_only_its_own_calls(era: Era) -> None:
    async with scene(era) as staged:
        header = 'www-authenticate: Bearer error="insufficient_scope"'
        staged.proxy.next(saying("403 Forbidden", header))
        refused = await staged.call(number=1)
        answer = await staged.call(number=2)
        state = staged.state()

    assert "auth required" in refused
    assert answer == "echo: {'number': 2}"
    assert isinstance(state, Ready)
