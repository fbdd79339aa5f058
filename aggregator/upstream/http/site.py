"""What there is to ask for over HTTP: the protocol at one path, and whether we are well.

Nothing here takes a command, a URL or the definition of a server.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus

import anyio
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import UNSUPPORTED_PROTOCOL_VERSION
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from aggregator.catalog import Pending
from aggregator.signals import Signal
from aggregator.upstream.server import Upstream

PROTOCOL = "/mcp"
ALIVE = "/healthz"
READY = "/readyz"

MAX_BODY_BYTES = 16 << 20
"""Bytes one request of a client may have."""
MAX_SESSIONS = 1000
"""Sessions of handshake clients at a time."""
IDLE_TIME = 30 * 60.0
"""Seconds after which a session without requests and without a stream is ended."""

Endpoint = Callable[[Scope, Receive, Send], Awaitable[None]]


class Site:
    """Answers requests that have been let in, and knows which are under way."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self.manager = StreamableHTTPSessionManager(
            upstream,
            max_request_body_size=MAX_BODY_BYTES,
            max_sessions=MAX_SESSIONS,
            session_idle_timeout=IDLE_TIME,
        )
        self.routes: Mapping[str, tuple[frozenset[str], Endpoint]] = {
            PROTOCOL: (frozenset(("GET", "POST", "DELETE")), self._speak),
            ALIVE: (frozenset(("GET", "HEAD")), self._alive),
            READY: (frozenset(("GET", "HEAD")), self._ready),
        }
        """All there is, with the methods each path takes."""
        self._requests: dict[anyio.CancelScope, bool] = {}
        self._ended = Signal()
        self._is_closing = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        methods, endpoint = self.routes.get(scope["path"], (frozenset[str](), _nowhere))
        if methods and scope["method"] not in methods:
            allowed = {"allow": ", ".join(sorted(methods))}
            endpoint = Response(status_code=HTTPStatus.METHOD_NOT_ALLOWED, headers=allowed)
        elif self._is_closing and endpoint == self._speak:
            endpoint = _leaving
        await endpoint(scope, receive, send)

    async def drain(self, patience: float) -> None:
        """Take nothing new, let what is under way come to its end, then hang up on the rest."""
        self._is_closing = True
        with anyio.move_on_after(patience):
            while not all(self._requests.values()):
                await self._ended.wait()
        for request in tuple(self._requests):
            request.cancel()

    async def _speak(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        version = headers.get("mcp-protocol-version")
        if self._upstream.grows_lists and version not in (None, *HANDSHAKE_PROTOCOL_VERSIONS):
            await _declined(version or "")(scope, receive, send)
            return
        request = anyio.CancelScope()
        self._requests[request] = _lasts(scope["method"], headers)
        try:
            with request:
                await self.manager.handle_request(scope, receive, send)
        finally:
            del self._requests[request]
            self._ended.send()

    async def _alive(self, scope: Scope, receive: Receive, send: Send) -> None:
        await JSONResponse({"status": "alive"})(scope, receive, send)

    async def _ready(self, scope: Scope, receive: Receive, send: Send) -> None:
        states = self._upstream.fleet.now.catalog.servers.values()
        is_starting = any(isinstance(each, Pending) and each.phase == "starting" for each in states)
        if self._is_closing or is_starting:
            status = "closing" if self._is_closing else "starting"
            response = JSONResponse({"status": status}, HTTPStatus.SERVICE_UNAVAILABLE)
        else:
            response = JSONResponse({"status": "ready"})
        await response(scope, receive, send)


def _lasts(method: str, headers: Mapping[str, str]) -> bool:
    """Whether a request is one that only waits for news, and so is not waited for."""
    return method == "GET" or headers.get("mcp-method") == "subscriptions/listen"


async def _nowhere(scope: Scope, receive: Receive, send: Send) -> None:
    await Response(status_code=HTTPStatus.NOT_FOUND)(scope, receive, send)


async def _leaving(scope: Scope, receive: Receive, send: Send) -> None:
    headers = {"retry-after": "5", "connection": "close"}
    response = Response("We are shutting down\n", HTTPStatus.SERVICE_UNAVAILABLE, headers)
    await response(scope, receive, send)


def _declined(version: str) -> Response:
    """Send a modern client back to the handshake, since its era forbids a list that grows."""
    error = {
        "code": UNSUPPORTED_PROTOCOL_VERSION,
        "message": "Unsupported protocol version",
        "data": {"supported": list(HANDSHAKE_PROTOCOL_VERSIONS), "requested": version},
    }
    body = json.dumps({"jsonrpc": "2.0", "id": None, "error": error})
    return Response(body, HTTPStatus.BAD_REQUEST, media_type="application/json")
