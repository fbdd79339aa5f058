"""What there is to ask for over HTTP: the protocol at one path, whether we are well, and the page.

Nothing here takes a command, a URL or the definition of a server.
"""

import json
from collections.abc import Awaitable, Callable, Collection, Mapping
from http import HTTPStatus
from pathlib import Path

import anyio
from anyio import to_thread
from mcp_types import UNSUPPORTED_PROTOCOL_VERSION
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from aggregator.basics.shutdown_notice import ShutdownNotice
from aggregator.config.http import Http
from aggregator.records.metrics import CONTENT_TYPE, Metrics
from aggregator.upstream.caller import PROFILE
from aggregator.upstream.http.binding import PROTOCOL
from aggregator.upstream.http.endpoint import OWNER, Endpoint
from aggregator.upstream.http.issuer.challenges import WELL_KNOWN, metadata
from aggregator.upstream.http.page.activity import Activity, Confided
from aggregator.upstream.http.page.codes import CODE, EXCHANGE, Codes
from aggregator.upstream.http.page.files import read_files
from aggregator.upstream.http.page.following import ACTIVITY, Following
from aggregator.upstream.http.page.saved import STATS, Saved
from aggregator.upstream.http.profiles import chosen_for, hears_of_all
from aggregator.upstream.http.refusal import Refusal, Told
from aggregator.upstream.http.replicas.mail import Mail
from aggregator.upstream.http.sessions import Owner
from aggregator.upstream.identity import IDENTITY, OPERATOR, Identity
from aggregator.upstream.server import Upstream

ALIVE = "/healthz"
READY = "/readyz"
METRICS = "/metrics"

OF_ALL = frozenset((METRICS, ACTIVITY, STATS))
"""What is told of all servers, and so to nobody whose profile hides some."""

MAX_SESSIONS = 1000
"""Sessions of handshake clients at a time; for one more, the longest idle is ended."""

Answering = Callable[[Scope, Receive, Send], Awaitable[None]]

_READING = frozenset(("GET", "HEAD"))


class Site:
    """Answers requests that have been let in, and knows which are under way."""

    def __init__(
        self,
        upstream: Upstream,
        max_sessions: int = MAX_SESSIONS,
        stats: Path | None = None,
        *,
        shows_arguments: bool = False,
        profile: str | None = None,
        http: Callable[[], Http] = Http,
        mail: Mail | None = None,
    ) -> None:
        self._upstream = upstream
        self._http = http
        self._profile = profile
        """What all clients see, if there is no choice."""
        self.metrics = Metrics()
        """Hears what happens, for as long as somebody may ask."""
        self.endpoint = Endpoint(
            upstream,
            upstream.schema,
            max_sessions,
            upstream.replica,
            mail=mail,
            fast_path=upstream.fast_path,
        )
        self._mail = mail
        """How other replicas are reached, where they have a store in common."""
        fleet = upstream.fleet
        self.activity = Activity(Confided(fleet), shows_arguments=shows_arguments)
        """Hears what happens, for whoever looks at the page."""
        self._following = Following(self.activity, fleet.stream.name, fleet.now.config.path)
        self._followers: dict[anyio.CancelScope, str] = {}
        files, codes, reading = read_files(), Codes(), _READING
        self.open_paths = frozenset((ALIVE, READY, EXCHANGE, *files))
        """What needs no token."""
        self.routes: Mapping[str, tuple[frozenset[str], Answering]] = {
            PROTOCOL: (frozenset(("GET", "POST", "DELETE")), self._speak),
            ALIVE: (reading, self._alive),
            READY: (reading, self._ready),
            METRICS: (reading, self._measured),
            ACTIVITY: (frozenset(("GET",)), self._follow),
            STATS: (reading, Saved(fleet, stats)),
            CODE: (frozenset(("POST",)), codes.give),
            EXCHANGE: (frozenset(("POST",)), codes.exchange),
            **{path: (reading, file) for path, file in files.items()},
        }
        """All there is, with the methods each path takes."""
        self._told = Told()
        self._is_leaving = False
        self._is_closing = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        chosen = self._chosen(scope)
        if isinstance(chosen, Refusal):
            self._told.tell(chosen)
            await chosen.response()(scope, receive, send)
            return
        scope = chosen
        methods, endpoint = self._route(scope["path"])
        if methods and scope["method"] not in methods:
            allowed = {"allow": ", ".join(sorted(methods))}
            endpoint = Response(status_code=HTTPStatus.METHOD_NOT_ALLOWED, headers=allowed)
        elif self._is_closing and endpoint == self._speak:
            endpoint = _leaving
        await endpoint(scope, receive, send)

    def _route(self, path: str) -> tuple[frozenset[str], Answering]:
        if path.startswith(WELL_KNOWN):
            return _READING, self._described
        return self.routes.get(path, (frozenset[str](), _nowhere))

    def _chosen(self, scope: Scope) -> Scope | Refusal:
        """Return a request to an address as one for what whoever asks sees there."""
        config, path = self._upstream.fleet.now.config, scope["path"]
        identity: Identity = scope.get(IDENTITY, OPERATOR)
        if path in OF_ALL:
            is_told = hears_of_all(identity, config, self._profile)
            return scope if is_told else {**scope, "path": ""}
        if path != PROTOCOL and not path.startswith(f"{PROTOCOL}/"):
            return scope
        chosen = chosen_for(identity, path, config, self._profile)
        if isinstance(chosen, Refusal):
            return chosen
        if chosen is None:
            return {**scope, "path": ""}
        owner = Owner(chosen.profile, identity.key, identity.holder)
        return {**scope, "path": PROTOCOL, PROFILE: chosen.profile, OWNER: owner}

    def part_with(self, grants: Collection[str]) -> None:
        """End what was begun by tokens that open nothing any more."""
        self.endpoint.part_with(grants)
        for follower, key in tuple(self._followers.items()):
            if key in grants:
                follower.cancel()

    def give_notice(self) -> None:
        """Have gateways know that we are about to leave, and serve those who still come."""
        self._is_leaving = True

    async def drain(self, patience: float, shutdown_notice: ShutdownNotice) -> None:
        """Take nothing new, let what is under way come to its end, then hang up on the rest."""
        self._is_closing = True
        await self.endpoint.under_way.drain(patience, shutdown_notice)
        for follower in tuple(self._followers):
            follower.cancel()

    async def _speak(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._upstream.grows_lists(scope.get(PROFILE)):
            version = _version(scope)
            if version not in (None, *HANDSHAKE_PROTOCOL_VERSIONS):
                await _declined(version or "")(scope, receive, send)
                return
        await self.endpoint(scope, receive, send)

    async def _described(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Say whose word is taken here for who somebody is, if anybody's is."""
        issuer = self._http().issuer
        told = None if issuer is None else metadata(issuer, scope["path"])
        response = _nowhere if told is None else JSONResponse(told)
        await response(scope, receive, send)

    async def _follow(self, scope: Scope, receive: Receive, send: Send) -> None:
        with anyio.CancelScope() as follower:
            self._followers[follower] = scope.get(IDENTITY, OPERATOR).key
            try:
                await self._following(scope, receive, send)
            finally:
                del self._followers[follower]

    async def _alive(self, scope: Scope, receive: Receive, send: Send) -> None:
        await JSONResponse({"status": "alive"})(scope, receive, send)

    async def _ready(self, scope: Scope, receive: Receive, send: Send) -> None:
        # A server that is tried again, or came later, is no reason to turn away from the others.
        is_starting = bool(self._upstream.fleet.now.untried)
        is_closing = self._is_leaving or self._is_closing
        if is_closing or is_starting:
            status = "closing" if is_closing else "starting"
            response = JSONResponse({"status": status}, HTTPStatus.SERVICE_UNAVAILABLE)
        elif self._mail is not None:
            # Without it most is as it was, and no other replica would have more of it.
            store = "up" if self._mail.is_up else "down"
            response = JSONResponse({"status": "ready", "store": store})
        else:
            response = JSONResponse({"status": "ready"})
        await response(scope, receive, send)

    async def _measured(self, scope: Scope, receive: Receive, send: Send) -> None:
        # With many tools it takes long enough for others to wait.
        await to_thread.run_sync(self.metrics.weigh)
        catalog = self._upstream.fleet.now.catalog
        text = self.metrics.text(catalog, len(self.endpoint.sessions))
        headers = {"cache-control": "no-store", "content-type": CONTENT_TYPE}
        await Response(text, headers=headers)(scope, receive, send)


def _version(scope: Scope) -> str | None:
    """Return the version of the protocol that a request is sent in, if it says so."""
    found = (value for name, value in scope["headers"] if name == b"mcp-protocol-version")
    return next((value.decode("latin-1") for value in found), None)


async def _nowhere(scope: Scope, receive: Receive, send: Send) -> None:
    # One text for all: what is hidden from somebody is as if it were not there.
    text = f"There is nothing here for you: clients come to {PROTOCOL}, or {PROTOCOL}/PROFILE\n"
    await Response(text, HTTPStatus.NOT_FOUND, media_type="text/plain")(scope, receive, send)


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
