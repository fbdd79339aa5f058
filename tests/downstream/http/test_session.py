"""A server that has forgotten its session: another is begun in place, at the next call if need be.

What fails here costs the call that needed the session, and nothing is sent twice that may have run.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
import pytest
import uvicorn
from mcp import Client
from starlette.types import Receive, Scope, Send

from aggregator.catalog import Failed, Pending, Ready, ServerState
from aggregator.config import ServerConfig
from aggregator.downstream.http.reach import reach
from aggregator.names import ServerName
from aggregator.upstream.server import Upstream
from tests.loopback.scripted import Act, Scripted
from tests.loopback.web import QuietServer, answer, listening, web
from tests.patience import PATIENCE
from tests.peers import aggregating, ready, text_of, until, visiting

pytestmark = pytest.mark.anyio

WEB = ServerName("web")
NOT_RUN = "was not run"
MISSING: dict[str, Any] = {"code": -32600, "message": "Bad Request: Missing session ID"}


class Forgetful(Scripted):
    """Takes no call outside a session, and knows none any more once it was restarted."""

    def __init__(self) -> None:
        super().__init__()
        self.is_restarted = False
        self.opening: Act | None = None
        """What the next attempt to begin a session meets."""
        self.forgotten = 0
        """Calls in a session that it does not know."""
        self.stirred = anyio.Event()

    async def _post(
        self, scope: Scope, receive: Receive, send: Send, message: dict[str, Any]
    ) -> None:
        match message["method"]:
            case "initialize":
                act, self.opening = self.opening or self.begin, None
                await act(scope, receive, send, message)
            case "tools/call" if b"mcp-session-id" not in dict(scope["headers"]):
                await answer(send, 400, {"jsonrpc": "2.0", "id": "none", "error": MISSING})
            case "tools/call" if self.is_restarted:
                self.forgotten += 1
                self.stirred.set()
                self.stirred = anyio.Event()
                await self.forget(send)
            case _:
                await super()._post(scope, receive, send, message)

    async def begin(
        self, scope: Scope, receive: Receive, send: Send, message: dict[str, Any]
    ) -> None:
        """Begin a session."""
        self.is_restarted = False
        await super()._post(scope, receive, send, message)

    async def forget(self, send: Send) -> None:
        """Say that a session is not known."""
        await answer(send, 404)


@dataclass
class Scene:
    """A client, and the way to its server."""

    upstream: Upstream
    client: Client

    async def call(self) -> str:
        with anyio.fail_after(PATIENCE):
            return text_of(await self.client.call_tool("web__go", {}))

    @property
    def state(self) -> ServerState:
        return self.upstream.fleet.now.catalog.servers[WEB]

    async def until(self, kind: type[ServerState]) -> None:
        fleet = self.upstream.fleet
        await until(lambda: isinstance(self.state, kind), lambda: fleet.changed)


@asynccontextmanager
async def client_of(origin: str) -> AsyncGenerator[Scene, None]:
    server = ServerConfig(WEB, "web", type="http", url=f"{origin}/mcp")
    async with aggregating({"web": reach(server)}) as upstream:
        await ready(upstream)
        async with visiting(upstream, "handshake") as client:
            yield Scene(upstream, client)


def saying(status: int, body: dict[str, Any] | None = None) -> Act:
    async def act(_scope: Scope, _receive: Receive, send: Send, _message: Any) -> None:
        await answer(send, status, body or b"")

    return act


@pytest.mark.parametrize(
    ("opening", "says"),
    [
        (saying(503), "no other could be had: it is unavailable for now (503)"),
        (saying(500), "no other could be had: it failed with status 500"),
        (saying(400, {"jsonrpc": "2.0", "id": 1, "error": MISSING}), "it refused another"),
    ],
)
async def test_a_renewal_that_fails_costs_one_call(opening: Act, says: str) -> None:
    server = Forgetful()
    async with web(server) as origin, client_of(origin) as scene:
        server.is_restarted, server.opening = True, opening
        failed = await scene.call()
        answers = [await scene.call() for _ in range(3)]

    assert says in failed
    assert NOT_RUN in failed
    assert answers == ["gone"] * 3
    assert server.calls == 3
    assert isinstance(scene.state, Ready)


async def test_a_renewal_that_is_withdrawn_with_its_call_is_made_up_for() -> None:
    asked = anyio.Event()

    async def hold(_scope: Scope, receive: Receive, _send: Send, _message: Any) -> None:
        asked.set()
        await receive()

    server = Forgetful()
    async with web(server) as origin, client_of(origin) as scene:
        server.is_restarted, server.opening = True, hold
        async with anyio.create_task_group() as group:
            group.start_soon(scene.call)
            await until(asked.is_set, lambda: asked)
            group.cancel_scope.cancel()
        answered = await scene.call()

    assert answered == "gone"
    assert server.calls == 1


async def test_a_call_during_a_renewal_waits_for_it() -> None:
    asked, released = anyio.Event(), anyio.Event()
    answers: list[str] = []

    async def hold(scope: Scope, receive: Receive, send: Send, message: Any) -> None:
        asked.set()
        await released.wait()
        await server.begin(scope, receive, send, message)

    async def call() -> None:
        answers.append(await scene.call())

    server = Forgetful()
    async with web(server) as origin, client_of(origin) as scene:
        server.is_restarted, server.opening = True, hold
        async with anyio.create_task_group() as group:
            group.start_soon(call)
            await until(asked.is_set, lambda: asked)
            group.start_soon(call)
            await until(lambda: server.forgotten == 2, lambda: server.stirred)
            released.set()

    assert answers == ["gone", "gone"]
    assert server.calls == 2


async def test_credentials_that_are_missing_for_a_renewal_are_said_at_once() -> None:
    server = Forgetful()
    async with web(server) as origin, client_of(origin) as scene:
        server.is_restarted, server.opening = True, saying(401)
        refused = await scene.call()
        await scene.until(Failed)
        answered = await scene.call()

    assert "auth required" in refused
    assert NOT_RUN in refused
    assert answered == "gone"


class Leaving(Forgetful):
    """Closes its door before it says that a session is not known."""

    def __init__(self) -> None:
        super().__init__()
        config = uvicorn.Config(self, lifespan="off", log_config=None, ws="none")
        self._server = QuietServer(config)

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[int, None]:
        """Open the door; gives its port."""
        with listening() as door:
            async with anyio.create_task_group() as group:
                group.start_soon(self._server.serve, [door])
                yield door.getsockname()[1]
                self._server.should_exit = self._server.force_exit = True

    async def forget(self, send: Send) -> None:
        for each in self._server.servers:
            each.close()
        await answer(send, 404, connection="close")


async def test_a_server_that_leaves_before_the_renewal_is_back_by_itself() -> None:
    server = Leaving()
    async with server.open() as port, client_of(f"http://127.0.0.1:{port}") as scene:
        server.is_restarted = True
        failed = await scene.call()
        await scene.until(Pending)
        async with web(server, port=port):
            await scene.until(Ready)
            answered = await scene.call()

    assert "no other could be had: it cannot be reached" in failed
    assert NOT_RUN in failed
    assert answered == "gone"
    assert server.calls == 1
