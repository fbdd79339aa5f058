"""Calls over Streamable HTTP: the programs that are measured, and a raw client for them."""

import http.client
import json
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from benchmarks.measure import INITIALIZE, MODERN, ROOT, Era, params_of
from benchmarks.peers import SERVER

PATIENCE = 30.0
"""Seconds a program has to start."""
IDLE = 4.0
"""Seconds after which a connection is not used again: servers close theirs after five."""

Stack = Literal["alone", "beside"]
"""What serves a server that is measured: what `mcp` installs, or whatever is installed here.

The aggregator brings httptools and, with the extra `fast`, uvloop. The servers that people run have
environments of their own, and get neither by installing `mcp`. So a server in this environment
would be made faster by what it is measured against.
"""

_SERVE = """\
import json, uvicorn, logging
def serve(server):
    app = server.streamable_http_app(host="127.0.0.1")
    if sys.argv[-1] == "handshake":
        app = declining(app)
    stack = {} if sys.argv[2] == "beside" else {"http": "h11", "loop": "asyncio"}
    port = int(sys.argv[1])
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error", access_log=False, **stack)
def declining(app):
    from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS as known
    data = {"supported": list(known), "requested": "2026-07-28"}
    error = {"code": -32022, "message": "Unsupported protocol version", "data": data}
    body = json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()
    head = {"type": "http.response.start", "status": 400}
    head["headers"] = [(b"content-type", b"application/json")]
    async def serve(scope, receive, send):
        headers = dict(scope.get("headers", ()))
        if headers.get(b"mcp-protocol-version") == b"2026-07-28":
            await send(head)
            await send({"type": "http.response.body", "body": body})
        else:
            await app(scope, receive, send)
    return serve
"""

WEB_SERVER = (
    "import sys\n"
    + _SERVE
    + SERVER.partition("async def main")[0]
    + 'serve(Server("server", on_list_tools=list_tools, on_call_tool=call_tool))\n'
)
"""The same server as over stdio; its arguments are the port, what serves it, and its era."""

WEB_FORWARDER = (
    "import sys\n"
    + _SERVE
    + """\
import contextlib
from mcp import Client
from mcp.server import Server
@contextlib.asynccontextmanager
async def lifespan(server):
    async with Client(sys.argv[3]) as client:
        yield client
async def list_tools(ctx, params):
    return await ctx.lifespan_context.list_tools()
async def call_tool(ctx, params):
    return await ctx.lifespan_context.call_tool(params.name, params.arguments)
serve(Server("f", lifespan=lifespan, on_list_tools=list_tools, on_call_tool=call_tool))
"""
)
"""The plainest forwarder over HTTP; after the port and what serves it, the server's address."""

WEB_FASTMCP = """\
import sys
from fastmcp.server import create_proxy
proxy = create_proxy(sys.argv[2])
proxy.run("http", show_banner=False, log_level="ERROR", port=int(sys.argv[1]), path="/mcp")
"""
"""FastMCP's proxy over HTTP; its arguments are the port and the address of the server."""


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


class Program:
    """A program that serves HTTP on the loopback interface."""

    def __init__(self, command: Sequence[str], port: int, cwd: Path = ROOT) -> None:
        self.port = port
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=cwd, env=os.environ
        )
        give_up = time.monotonic() + PATIENCE
        while not _is_listening(port):
            if self._process.poll() is not None or time.monotonic() > give_up:
                raise RuntimeError(f"it does not serve: {command[:3]}")
            time.sleep(0.05)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(timeout=30)


def _is_listening(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


class WebClient:
    """A client with one session, and one connection for each request in flight."""

    def __init__(self, port: int, era: Era = "handshake", pid: int = 0) -> None:
        self.pid = pid
        self._port = port
        self._era: Era = era
        self._idle: list[tuple[http.client.HTTPConnection, float]] = []
        """Connections that may be used again, and since when they are not used."""
        self._busy: list[http.client.HTTPConnection] = []
        self._last = 0
        self._headers = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
        }

    def open(self) -> None:
        """Say hello, in the way of its era."""
        if self._era == "modern":
            self._headers["mcp-protocol-version"] = MODERN
            self.ask("server/discover")
            return
        self.ask("initialize", INITIALIZE)
        self._headers["mcp-protocol-version"] = INITIALIZE["protocolVersion"]
        self._post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self._response().read()

    def ask(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        self.send(method, params)
        return self.read()

    def send(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a request on a connection that is free."""
        self._last += 1
        given = params_of(self._era, params)
        if self._era == "modern":
            self._headers["mcp-method"] = method
            self._headers.pop("mcp-name", None)
            if "name" in given:
                self._headers["mcp-name"] = given["name"]
        self._post({"jsonrpc": "2.0", "id": self._last, "method": method, "params": given})

    def read(self) -> dict[str, Any]:
        """Read the answer to the oldest request, skipping notifications."""
        response = self._response()
        if (session := response.getheader("mcp-session-id")) is not None:
            self._headers["mcp-session-id"] = session
        body = response.read()
        if response.getheader("content-type", "").startswith("application/json"):
            return json.loads(body)
        lines = [line[6:] for line in body.splitlines() if line.startswith(b"data: {")]
        return next(found for line in lines if "id" in (found := json.loads(line)))

    def close(self) -> None:
        for connection in (*(each for each, _ in self._idle), *self._busy):
            connection.close()

    def _post(self, message: Mapping[str, Any]) -> None:
        connection = self._kept() or _connected(self._port)
        connection.request("POST", "/mcp", json.dumps(message), self._headers)
        self._busy.append(connection)

    def _kept(self) -> http.client.HTTPConnection | None:
        """Return a connection that the server does not close just now."""
        while self._idle:
            connection, since = self._idle.pop()
            if time.monotonic() - since < IDLE and _is_open(connection):
                return connection
            connection.close()
        return None

    def _response(self) -> http.client.HTTPResponse:
        connection = self._busy.pop(0)
        self._idle.append((connection, time.monotonic()))
        return connection.getresponse()


def _connected(port: int) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.connect()
    connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _is_open(connection: http.client.HTTPConnection) -> bool:
    return connection.sock is not None and not select.select([connection.sock], [], [], 0)[0]


def program(source: str, *arguments: str) -> Program:
    """Run a program that takes its port as its first argument."""
    port = free_port()
    return Program([sys.executable, "-c", source, str(port), *arguments], port)
