"""Real HTTP servers on the loopback interface: any ASGI application, or a peer of either era."""

import json
import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import anyio
import uvicorn
from mcp.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.peers import Era


class QuietServer(uvicorn.Server):
    """uvicorn without its hands on the signals of the test process."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


def listening(port: int = 0) -> socket.socket:
    """Return a socket that listens on the loopback interface."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(("127.0.0.1", port))
    sock.listen(128)
    return sock


@asynccontextmanager
async def web(app: ASGIApp, *, port: int = 0) -> AsyncGenerator[str, None]:
    """Serve an application; gives its origin."""
    sock = listening(port)
    config = uvicorn.Config(
        app, lifespan="off", log_config=None, timeout_graceful_shutdown=1, ws="none"
    )
    server = QuietServer(config)
    with sock:
        async with anyio.create_task_group() as group:
            group.start_soon(server.serve, [sock])
            try:
                yield f"http://127.0.0.1:{sock.getsockname()[1]}"
            finally:
                server.should_exit = server.force_exit = True


def manager_of(peer: Server[Any]) -> StreamableHTTPSessionManager:
    """Return what carries a peer over Streamable HTTP."""
    return StreamableHTTPSessionManager(peer)


@asynccontextmanager
async def peer_at(
    peer: Server[Any], era: Era = "modern", *, port: int = 0
) -> AsyncGenerator[str, None]:
    """Serve a peer over Streamable HTTP; gives its URL. One of the handshake era knows no other."""
    manager = manager_of(peer)
    async with manager.run(), web(of_era(manager.handle_request, era), port=port) as origin:
        yield f"{origin}/mcp"


def of_era(app: ASGIApp, era: Era) -> ASGIApp:
    """Have an application refuse what came after its time."""

    async def refuse_modern(scope: Scope, receive: Receive, send: Send) -> None:
        version = dict(scope["headers"]).get(b"mcp-protocol-version", b"").decode()
        if era == "handshake" and version in MODERN_PROTOCOL_VERSIONS:
            await answer(send, 400, b"Bad Request: Unsupported protocol version")
        else:
            await app(scope, receive, send)

    return refuse_modern


async def answer(
    send: Send, status: int, body: bytes | dict[str, Any] = b"", **headers: str
) -> None:
    """Answer a request as an ASGI application does."""
    if isinstance(body, dict):
        body = json.dumps(body).encode()
        headers = {"content_type": "application/json", **headers}
    wire = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": wire})
    await send({"type": "http.response.body", "body": body})
