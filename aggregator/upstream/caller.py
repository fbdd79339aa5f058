"""The client behind one of its requests, as the server it is forwarded to may reach it."""

from functools import cached_property
from hashlib import sha256
from typing import Any, Protocol

import mcp_types as types
from mcp.server import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from pydantic import BaseModel, RootModel, ValidationError
from starlette.requests import HTTPConnection

from aggregator.basics import eras
from aggregator.basics.eras import Era
from aggregator.basics.json import JsonObject, as_object
from aggregator.basics.tasks import TASKS, has_tasks
from aggregator.clients import profile
from aggregator.downstream.call_slots import Party, Session
from aggregator.downstream.inflight import Notify
from aggregator.downstream.link import LEVELS
from aggregator.downstream.questions import declared, telling_of_roots
from aggregator.names import ServerName
from aggregator.upstream.conversation import Conversation
from aggregator.upstream.identity import identity_of
from aggregator.upstream.visitor import Visitor

Context = ServerRequestContext[Any, Any]

LOOPBACK = ("127.0.0.1", "::1")
PEER = "aggregator.peer"
"""Where in the scope of a request the gateway's address stands that it came from, if from one."""
PROFILE = "aggregator.profile"
"""Where in the scope of a request the door writes the profile that it has chosen."""
HOME = "aggregator.home"
"""Where in the scope of a request the door writes which replica has opened its session."""
LOADED = "aggregator.loaded"
"""Where in the scope of a request the door writes what its session has loaded elsewhere."""
MEET = "aggregator.meet"
"""Where in the scope of a request the door writes who is to be told whose request it is."""
FORWARDING = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip")
"""What whoever passes a request on says of where it comes from."""


class _Raw(BaseModel):
    """A message to a client, as a server sent it and not as the SDK would model it."""

    method: str
    params: dict[str, Any]


_Answer = RootModel[dict[str, Any]]

_ONLY = Visitor.of_process()
"""Who is served by whoever does not say whom."""


class Way(Protocol):
    """How a client is reached for as long as one request of it is under way."""

    request_id: types.RequestId

    def session(self) -> ServerSession:
        """Return what asks it and tells it something there."""
        ...


class ContextCaller:
    """The client of one request."""

    _way: Way | None = None
    """Where it is reached, if not where it asked."""

    def __init__(self, ctx: Context, conversation: Conversation) -> None:
        self._ctx = ctx
        self._conversation = conversation
        self.era: Era = era_of(ctx)
        self.identity = identity_of(ctx.request)
        """Who it is."""
        self.key: object = conversation if conversation.has_memory else object()
        """Tells one client from another: without a session, each request is one of its own."""
        meta = as_object((ctx.params or {}).get("_meta"))
        self.capabilities: JsonObject = self._declared(meta, conversation)
        self.notify: Notify = conversation.notices.put
        """Reaches only clients with a session: nobody else can be told anything by itself."""
        self._token = meta.get("progressToken")
        self._related = ctx.request_id
        wanted = meta.get(types.LOG_LEVEL_META_KEY)
        self.log_level: str | None = conversation.log_level
        if self.era == "modern":
            self.log_level = wanted if wanted in LEVELS else None

    def again(self, token: object, way: Way | None = None) -> "ContextCaller":
        """Return the same client behind another request that it has sent in the same way.

        What belongs to that one is sent to it by itself: on a stream there is no other way.
        """
        level = self.log_level
        if self.era == "handshake":
            # It was set for all that comes after; in the modern era each request says it.
            level = self._conversation.log_level
        own: dict[str, object] = {"_token": token, "_related": None, "log_level": level}
        if way is not None:
            own |= {"_way": way, "_related": way.request_id}
            if not self._conversation.has_memory:
                own["key"] = object()
        other = object.__new__(ContextCaller)
        vars(other).update({**vars(self), **own})
        return other

    @property
    def _session(self) -> ServerSession:
        return self._ctx.session if self._way is None else self._way.session()

    @cached_property
    def principal(self) -> str:
        """What a token for this client is bound to: who it is, if that is known, and profile."""
        if self._ctx.request is None:
            return _key(self._ctx)
        # What somebody shows changes every few minutes, who it is does not.
        credentials = self.identity.key or self._ctx.request.headers.get("authorization", "")
        profile = self._conversation.profile
        shown = credentials if profile is None else f"{profile} {credentials}"
        return sha256(shown.encode()).hexdigest()

    @cached_property
    def party(self) -> Party:
        """Whose share of a server's places the request counts on; nobody's on our only stream."""
        request, conversation = self._ctx.request, self._conversation
        if request is None:
            return _key(self._ctx) or None
        client = self._origin
        if self.identity.holder:
            session = conversation if conversation.has_memory else client
            return Session(self.identity.holder, session)
        return Session(client, conversation) if conversation.has_memory else client

    @property
    def whose(self) -> str:
        """What tells its client from others at every replica: its session, or its origin."""
        session = session_key(self._ctx)
        return " ".join(self._origin) if session is None else session

    @cached_property
    def _origin(self) -> tuple[str, str, str]:
        """All that is known of a client over HTTP: where it comes from and who it says it is."""
        request = self._ctx.request
        address = request.client.host if request is not None and request.client else ""
        return address, self.principal, self._conversation.client

    def is_near(self) -> bool:
        """Whether the client is on this machine."""
        return is_near(self._ctx.request)

    @property
    def _answers(self) -> bool:
        """Whether the client can be asked: with a request back, or by the result of its own."""
        return self.era == "modern" or self._ctx.session.can_send_request

    def _declared(self, meta: JsonObject, conversation: Conversation) -> JsonObject:
        """Return what the client can be asked."""
        if not self._answers:
            return {}
        if self.era == "handshake":
            return conversation.capabilities
        given = declared(as_object(meta.get(types.CLIENT_CAPABILITIES_META_KEY)), self.era)
        if profile(conversation.client, {}).reads_questions:
            return given
        return {"extensions": {TASKS: {}}} if has_tasks(given) else {}

    async def tell(self, method: str, params: JsonObject) -> None:
        """Pass on a notification, in the form of our own hop."""
        if method == "notifications/progress":
            if self._token is None:
                return
            params = {**params, "progressToken": self._token}
        elif method == "notifications/message" and not self._wants(params.get("level")):
            return
        await notify(self._session, method, params, self._related)

    async def tell_list_changed(self) -> None:
        """Tell the client, now, that its list of tools has changed."""
        await self._session.send_tool_list_changed()

    async def ask(self, method: str, params: JsonObject) -> dict[str, Any]:
        """Ask the client on the stream of its request.

        Raises:
            MCPError: The client refuses, or answers in a form that the protocol does not know.
        """
        return await _ask(self._session, method, params, self._related)

    def _wants(self, level: object) -> bool:
        """Whether a log message of this level is wanted."""
        if self.log_level is None:
            return self.era == "handshake"
        return reaches(level, self.log_level)


class SessionGuest:
    """A client with a session, asked outside of any request of its own."""

    def __init__(self, session: ServerSession, conversation: Conversation) -> None:
        self._session = session
        self.sees = conversation.sees
        self.capabilities = conversation.capabilities
        self.is_alone = conversation.is_alone

    async def ask(self, _server: ServerName, method: str, params: JsonObject) -> dict[str, Any]:
        """Ask the client.

        Raises:
            MCPError: The client refuses, or answers in a form that the protocol does not know.
        """
        return await _ask(self._session, method, params)


async def _ask(
    session: ServerSession,
    method: str,
    params: JsonObject,
    related: types.RequestId | None = None,
) -> dict[str, Any]:
    try:
        answer = await session.send_request(
            _Raw(method=method, params=dict(params)),  # pyright: ignore[reportArgumentType]
            _Answer,
            metadata=ServerMessageMetadata(related_request_id=related),
        )
    except ValidationError:
        raise MCPError(types.INTERNAL_ERROR, "The client's answer is malformed") from None
    return answer.root


async def notify(
    session: ServerSession,
    method: str,
    params: JsonObject,
    related: types.RequestId | None = None,
) -> None:
    """Send a client a notification as a server sent it."""
    await session.send_notification(
        _Raw(method=method, params=dict(params)),  # pyright: ignore[reportArgumentType]
        related_request_id=related,
    )


def reaches(level: object, least: str) -> bool:
    """Whether a level of log messages is at least another."""
    return level in LEVELS and LEVELS.index(level) >= LEVELS.index(least)


def era_of(ctx: Context) -> Era:
    """Return the era in which a client speaks."""
    return eras.era_of(ctx.protocol_version)


def visitor_of(ctx: Context) -> Visitor | None:
    """Return who is at the other end of a stream; over HTTP there is none that lasts."""
    if ctx.request is not None:
        return None
    given: object = ctx.lifespan_context
    return given if isinstance(given, Visitor) else _ONLY


def chosen_profile(ctx: Context) -> str | None:
    """Return the profile that was chosen for a client where it came in, if one was."""
    if ctx.request is not None:
        chosen = ctx.request.scope.get(PROFILE)
        return chosen if isinstance(chosen, str) else None
    visitor = visitor_of(ctx)
    return visitor and visitor.profile


def home_of(ctx: Context) -> str | None:
    """Return which replica has opened the session of a request, where there are several."""
    home = None if ctx.request is None else ctx.request.scope.get(HOME)
    return home if isinstance(home, str) else None


def loaded_elsewhere(ctx: Context) -> tuple[str, ...]:
    """Return what the session of a request has loaded in other replicas."""
    found = () if ctx.request is None else ctx.request.scope.get(LOADED)
    return found or ()


def has_servers_alone(ctx: Context) -> bool:
    """Whether what servers ask and are told outside of any call is for this client."""
    visitor = visitor_of(ctx)
    return visitor is not None and visitor.is_only


def _key(ctx: Context) -> str:
    visitor = visitor_of(ctx)
    return "" if visitor is None else visitor.key


def stream_of(ctx: Context) -> str | None:
    """Return what tells a client's stream from others, if it has one."""
    return None if ctx.request is not None else _key(ctx)


def client_name(ctx: Context) -> str:
    """Return what a client calls itself; nothing if it has not said."""
    params = ctx.session.client_params
    return "" if params is None else params.client_info.name


def session_key(ctx: Context) -> str | None:
    """Tell clients apart: a stream has one, HTTP has one for each session of the handshake era."""
    has_session = era_of(ctx) == "handshake"
    if ctx.request is not None:
        return ctx.request.headers.get("mcp-session-id") if has_session else None
    # A stream of the handshake era begins with the words by which its client introduced itself.
    words = id(ctx.session.client_params) if has_session else ""
    return f"stream {_key(ctx)} {words}"


def declaration(ctx: Context) -> JsonObject:
    """Return what servers are to be told of a client that introduces itself."""
    given = ctx.params or {}
    holder, key = given, "capabilities"
    if ctx.method != "initialize":
        holder, key = as_object(given.get("_meta")), types.CLIENT_CAPABILITIES_META_KEY
    capabilities = as_object(holder.get(key))
    era: Era = "handshake" if ctx.method == "initialize" else "modern"
    roots = capabilities.get("roots")
    # In the modern era nobody tells that roots changed, but servers are told once they are known.
    tells = ctx.method != "initialize" or as_object(roots).get("listChanged") is True
    if has_servers_alone(ctx) and roots is not None and tells:
        return telling_of_roots(declared(capabilities, era))
    return declared(capabilities, era)


def introduced(ctx: Context) -> JsonObject:
    """Return what a client has declared in the handshake that it can be asked."""
    known = ctx.session.client_capabilities
    if known is None:
        return {}
    return declared(known.model_dump(by_alias=True, mode="json", exclude_none=True), era_of(ctx))


def is_near(request: HTTPConnection | None) -> bool:
    """Whether a client is on this machine, and nobody between us speaks for others."""
    if request is None:
        return True
    host = request.client.host if request.client else ""
    is_here = host in LOOPBACK and request.url.hostname in (*LOOPBACK, "localhost")
    is_passed_on = PEER in request.scope or any(name in request.headers for name in FORWARDING)
    return is_here and not is_passed_on
