"""What there is to ask for over HTTP: the protocol at one path, whether we are well, and counts.

Nothing here takes a command, a URL or the definition of a server.
"""

import json
from collections.abc import Awaitable, Callable, Collection, Mapping
from http import HTTPStatus

import anyio
from anyio import to_thread
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import INVALID_REQUEST, UNSUPPORTED_PROTOCOL_VERSION
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

from aggregator.catalog import Pending
from aggregator.records.metrics import CONTENT_TYPE, Metrics
from aggregator.signals import Signal
from aggregator.upstream.caller import PROFILE
from aggregator.upstream.http.binding import PROTOCOL
from aggregator.upstream.http.bodies import MAX_BODY_BYTES, Bodies, BodyRefusedError
from aggregator.upstream.http.keys import GRANT, Token
from aggregator.upstream.http.profiles import profile_at
from aggregator.upstream.http.sessions import Owner, Sessions
from aggregator.upstream.server import Upstream

ALIVE = "/healthz"
READY = "/readyz"
METRICS = "/metrics"

MAX_SESSIONS = 1000
"""Sessions of handshake clients at a time; for one more, the longest idle is ended."""
MAX_OPENING = 100
"""Sessions that may be opening beside them."""
SESSION = "mcp-session-id"
IDLE_TIME = 30 * 60.0
"""Seconds after which a session without requests and without a stream is ended."""

Endpoint = Callable[[Scope, Receive, Send], Awaitable[None]]


class Site:
    """Answers requests that have been let in, and knows which are under way."""

    def __init__(
        self, upstream: Upstream, max_sessions: int = MAX_SESSIONS, profile: str | None = None
    ) -> None:
        self._upstream = upstream
        self._profile = profile
        """What all clients see, if there is no choice."""
        self.metrics = Metrics()
        """Hears what happens, for as long as somebody may ask."""
        self._sessions = Sessions()
        self._bodies = Bodies()
        self._max_sessions = max_sessions
        self.manager = StreamableHTTPSessionManager(
            upstream,
            max_request_body_size=MAX_BODY_BYTES,
            max_sessions=max_sessions + MAX_OPENING,
            session_idle_timeout=IDLE_TIME,
        )
        self.routes: Mapping[str, tuple[frozenset[str], Endpoint]] = {
            PROTOCOL: (frozenset(("GET", "POST", "DELETE")), self._speak),
            ALIVE: (frozenset(("GET", "HEAD")), self._alive),
            READY: (frozenset(("GET", "HEAD")), self._ready),
            METRICS: (frozenset(("GET", "HEAD")), self._measured),
        }
        if profile is not None:
            # They are of all servers, whoever may see them.
            self.routes = {path: each for path, each in self.routes.items() if path != METRICS}
        """All there is, with the methods each path takes."""
        self._requests: dict[anyio.CancelScope, bool] = {}
        self._alone: dict[anyio.CancelScope, Owner] = {}
        """Whose requests are that belong to no session, with which they would end."""
        self._ended = Signal()
        self._is_closing = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        scope = self._chosen(scope)
        methods, endpoint = self.routes.get(scope["path"], (frozenset[str](), _nowhere))
        if methods and scope["method"] not in methods:
            allowed = {"allow": ", ".join(sorted(methods))}
            endpoint = Response(status_code=HTTPStatus.METHOD_NOT_ALLOWED, headers=allowed)
        elif self._is_closing and endpoint == self._speak:
            endpoint = _leaving
        await endpoint(scope, receive, send)

    def _chosen(self, scope: Scope) -> Scope:
        """Return a request to the address of a profile as one that has chosen it."""
        profiles = self._upstream.fleet.now.config.settings.profiles
        grant: Token | None = scope.get(GRANT)
        bound = grant and grant.profile
        if bound is not None and self._profile not in (None, bound):
            return {**scope, "path": ""}
        if bound is not None and scope["path"] == METRICS:
            # They are of all servers, whoever may see them.
            return {**scope, "path": ""}
        chosen = profile_at(scope["path"], profiles, bound or self._profile)
        if chosen is None:
            return scope
        return {**scope, "path": PROTOCOL, PROFILE: chosen.profile}

    async def part_with(self, grants: Collection[str]) -> None:
        """End what was begun by tokens that open nothing any more."""
        for session in self._sessions.of(grants):
            await self._end(session)
        for request, whose in tuple(self._alone.items()):
            if whose.grant in grants:
                request.cancel()

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
        if self._upstream.grows_lists(scope.get(PROFILE)) and version not in (
            None,
            *HANDSHAKE_PROTOCOL_VERSIONS,
        ):
            await _declined(version or "")(scope, receive, send)
            return
        request = anyio.CancelScope()
        self._requests[request] = _lasts(scope["method"], headers)
        if SESSION not in headers:
            self._alone[request] = _owner(scope)
        try:
            with request:
                await self._speak_in_session(scope, receive, send, headers)
        finally:
            del self._requests[request]
            self._alone.pop(request, None)
            self._ended.send()

    async def _speak_in_session(
        self, scope: Scope, receive: Receive, send: Send, headers: Mapping[str, str]
    ) -> None:
        """Pass a request on, and take note of the session that it begins, uses or ends."""
        session = headers.get(SESSION)
        if session is not None and not self._sessions.is_of(session, _owner(scope)):
            # Whoever has it from somewhere is told what is told of one that does not exist.
            await _unknown_session()(scope, receive, send)
            return

        async def note(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._note(message, session, scope)
            await send(message)

        if _is_overlong(headers.get("content-length", "")):
            # It is refused without being read.
            await self.manager.handle_request(scope, receive, note)
            return
        try:
            async with self._bodies.taken(receive) as again:
                if session is None:
                    await self._make_room()
                with self._sessions.used(session or ""):
                    await self.manager.handle_request(scope, again, note)
        except BodyRefusedError as error:
            await _refused(error)(scope, receive, send)

    def _note(self, start: Message, session: str | None, scope: Scope) -> None:
        status: int = start["status"]
        method = scope["method"]
        if session is not None:
            if status == HTTPStatus.NOT_FOUND or (method == "DELETE" and status == HTTPStatus.OK):
                self._sessions.end(session)
        elif status == HTTPStatus.OK:
            for name, value in start.get("headers", ()):
                if name.lower() == SESSION.encode():
                    self._sessions.begin(value.decode("latin-1"), _owner(scope))

    async def _make_room(self) -> None:
        """End the session that has been idle longest where there are too many."""
        while len(self._sessions) >= self._max_sessions:
            session = self._sessions.longest_idle
            if session is None:
                return
            await self._end(session)

    async def _end(self, session: str) -> None:
        self._sessions.end(session)
        await self.manager.handle_request(_parting(session), _nothing, _unsaid)

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

    async def _measured(self, scope: Scope, receive: Receive, send: Send) -> None:
        # With many tools it takes long enough for others to wait.
        await to_thread.run_sync(self.metrics.weigh)
        catalog = self._upstream.fleet.now.catalog
        text = self.metrics.text(catalog, len(self._sessions))
        headers = {"cache-control": "no-store", "content-type": CONTENT_TYPE}
        await Response(text, headers=headers)(scope, receive, send)


def _owner(scope: Scope) -> Owner:
    """Return whose a session is that is begun by a request."""
    grant: Token | None = scope.get(GRANT)
    return Owner(scope.get(PROFILE), grant and grant.digest)


def _unknown_session() -> Response:
    told = {"code": INVALID_REQUEST, "message": "Session not found"}
    return JSONResponse({"jsonrpc": "2.0", "id": None, "error": told}, HTTPStatus.NOT_FOUND)


def _lasts(method: str, headers: Mapping[str, str]) -> bool:
    """Whether a request is one that only waits for news, and so is not waited for."""
    return method == "GET" or headers.get("mcp-method") == "subscriptions/listen"


def _is_overlong(length: str) -> bool:
    """Whether a body says of itself that it is too long."""
    return length.isdecimal() and int(length[:20]) > MAX_BODY_BYTES


def _refused(error: BodyRefusedError) -> Response:
    """Say why a body is not parsed; what it asks, and so the id of it, is not known."""
    told = {"code": INVALID_REQUEST, "message": str(error)}
    headers = {"retry-after": "1"} if error.status is HTTPStatus.SERVICE_UNAVAILABLE else None
    body = {"jsonrpc": "2.0", "id": None, "error": told}
    return JSONResponse(body, error.status, headers)


def _parting(session: str) -> Scope:
    """Return the request by which a client would end its session."""
    named = [(SESSION.encode(), session.encode("latin-1"))]
    return {"type": "http", "method": "DELETE", "path": PROTOCOL, "headers": named}


async def _nothing() -> Message:
    return {"type": "http.request"}


async def _unsaid(_message: Message) -> None:
    """Answer nobody."""


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
