"""Where clients speak the protocol over HTTP: a request in, its answer back, in either era.

A client of the handshake era has a session; one of the modern era says with each request all
there is to know.
"""

from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from typing import Any
from uuid import uuid4

import anyio
from anyio.abc import TaskStatus
from mcp.server import Server
from mcp.server.connection import Connection
from mcp.server.runner import ServerRunner
from mcp.shared.inbound import (
    InboundLadderRejection,
    unsupported_protocol_version_rejection,
)
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from aggregator.errors import ElsewhereError
from aggregator.jsonrpc.encoding import encoded
from aggregator.upstream.caller import HOME, LOADED
from aggregator.upstream.fast_path import CALL, FastPath
from aggregator.upstream.http.bodies import (
    MAX_BODY_BYTES,
    Bodies,
    BodyRefusedError,
    small,
    too_long,
)
from aggregator.upstream.http.exchange import Exchange, Listening
from aggregator.upstream.http.fast_lane import FastLanes
from aggregator.upstream.http.modern import Modern, Schema, rejection, speaking
from aggregator.upstream.http.presence import presence
from aggregator.upstream.http.replicas.adoption import Adoption
from aggregator.upstream.http.replicas.mail import Mail
from aggregator.upstream.http.reply import AGAIN, Headers, Reply
from aggregator.upstream.http.session import HERE, Introduction, Place, Session
from aggregator.upstream.http.sessions import OPERATORS, Owner, Sessions
from aggregator.upstream.http.under_way import UnderWay
from aggregator.upstream.http.understanding import NOT_ONE, accepted, is_json, understood
from aggregator.upstream.identity import IDENTITY, OPERATOR, Identity
from aggregator.upstream.replica import ALONE, ELSEWHERE, Replica

LISTEN = "subscriptions/listen"
"""The request that is only answered when the client has heard enough."""

OWNER = "aggregator.owner"
"""Where in the scope of a request it is written whose it is."""

Given = Mapping[bytes, bytes]
"""The headers of a request; of those that are there twice, the first."""

_LEGACY = frozenset(version.encode() for version in HANDSHAKE_PROTOCOL_VERSIONS)
_TOO_MANY = ErrorData(code=INTERNAL_ERROR, message="Too many open sessions")
_SHARE = ErrorData(
    code=INTERNAL_ERROR,
    message="You have your share of open sessions, and all of them are in use: end some",
)
_MISSING = ErrorData(code=INVALID_REQUEST, message="Bad Request: Missing session ID")
_UNKNOWN = ErrorData(code=INVALID_REQUEST, message="Session not found")
_REVOKED = ErrorData(code=INVALID_REQUEST, message="The token is no longer accepted")
_TAKEN = ErrorData(
    code=INVALID_REQUEST, message="Conflict: Only one SSE stream is allowed per session"
)
_NO_JSON = ErrorData(
    code=INVALID_REQUEST, message="Unsupported Media Type: Content-Type must be application/json"
)
_NOT_BOTH = ErrorData(
    code=INVALID_REQUEST,
    message="Not Acceptable: Client must accept both application/json and text/event-stream",
)
_NO_EVENTS = ErrorData(
    code=INVALID_REQUEST, message="Not Acceptable: Client must accept text/event-stream"
)


class Endpoint:
    """Answers whoever has been let in."""

    def __init__(
        self,
        server: Server[Any],
        schema: Schema,
        max_sessions: int,
        replica: Replica = ALONE,
        *,
        mail: Mail | None = None,
        fast_path: FastPath | None = None,
    ) -> None:
        self._adoption = None if replica.cipher is None else Adoption(replica, replica.cipher, mail)
        self._mail = mail
        self.sessions = Sessions[Session](max_sessions)
        self._server = server
        self._modern = Modern(server, schema)
        self._bodies = Bodies()
        self._group = anyio.create_task_group()
        self.under_way = UnderWay()
        # A session that another replica may have taken over is looked for each time.
        self._fast_lanes: FastLanes | None = None
        if fast_path is not None and self._adoption is None:
            self._fast_lanes = FastLanes(fast_path, self.sessions, self.under_way, self._group)

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[None, None]:
        """Answer requests for the length of the block."""
        async with self._group as group:
            group.start_soon(self.under_way.keep_alive)
            try:
                yield
            finally:
                group.cancel_scope.cancel()

    def part_with(self, grants: Collection[str]) -> None:
        """End what was begun by tokens that open nothing any more."""
        for session in self.sessions.known():
            if session.owner.grant in grants:
                self.sessions.end(session)
        self.under_way.part_with(grants)

    @property
    def grants(self) -> frozenset[str]:
        """By whom something was begun that has not ended."""
        sessions = (session.owner.grant for session in self.sessions.known())
        return self.under_way.grants.union(sessions)

    def end(self, key: str) -> None:
        """End a session as its client wants it, and do not open it again."""
        if (session := self.sessions.get(key)) is not None:
            self.sessions.end(session)
        if self._adoption is not None:
            self._adoption.end(key)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        given: Given = dict(reversed(scope["headers"]))
        version = given.get(b"mcp-protocol-version")
        is_modern = version is not None and version not in _LEGACY
        if scope["method"] != "POST" and is_modern:
            await _refuse(send, HTTPStatus.METHOD_NOT_ALLOWED, None, ((b"allow", b"POST"),))
        elif scope["method"] == "POST":
            await self._post(scope, receive, send, given, is_modern=is_modern)
        elif (session := await self._session(scope, send, given)) is not None:
            if scope["method"] == "GET":
                await self._listen(session, scope, send, given)
            else:
                self.end(session.key)
                if self._mail is not None:
                    self._mail.ended(session.key)
                await Reply(send, session.headers).end(None)

    async def _post(
        self, scope: Scope, receive: Receive, send: Send, given: Given, *, is_modern: bool
    ) -> None:
        speak = partial(self._speak, scope, send, given, is_modern=is_modern)
        arriving = self.under_way.expect(_owner(scope))
        if self._fast_lanes is not None:
            self._fast_lanes.expect(scope)
        try:
            _check_length(given.get(b"content-length", b""))
            first = await receive()
            body = small(first)
            if body is not None and self.under_way.take(arriving):
                await speak(body)
                return
            async with self._bodies.taken(receive, first) as body:
                # Who takes long to send it may have lost the right to have it answered.
                if not self.under_way.take(arriving):
                    await _refuse(send, HTTPStatus.UNAUTHORIZED, _REVOKED)
                elif body is not None:
                    await speak(body)
        except BodyRefusedError as error:
            # What it asks, and so the id of it, is not known.
            told = ErrorData(code=INVALID_REQUEST, message=str(error))
            await _refuse(send, error.status, told)
        finally:
            self.under_way.take(arriving)

    async def _speak(
        self, scope: Scope, send: Send, given: Given, body: bytes, *, is_modern: bool
    ) -> None:
        """Understand what a client sends, and have it answered."""
        takes = accepted(given.get(b"accept", b"").decode("latin-1"))
        if not is_json(given.get(b"content-type", b"").decode("latin-1")):
            await _refuse(send, HTTPStatus.UNSUPPORTED_MEDIA_TYPE, _NO_JSON)
        elif not (takes.json and takes.events):
            await _refuse(send, HTTPStatus.NOT_ACCEPTABLE, _NOT_BOTH)
        elif isinstance(message := understood(body), ErrorData):
            await _refuse(send, HTTPStatus.BAD_REQUEST, message)
        elif is_modern:
            await self._speak_alone(scope, send, given, message)
        elif isinstance(message, JSONRPCRequest) and _opens(message, given):
            await self._shake_hands(scope, send, message)
        elif (session := await self._session(scope, send, given)) is not None:
            await self._speak_in(session, scope, send, message)

    async def _speak_alone(
        self, scope: Scope, send: Send, given: Given, message: JSONRPCMessage
    ) -> None:
        """Answer a request of the modern era."""
        if isinstance(message, JSONRPCNotification):
            requested = given[b"mcp-protocol-version"].decode("latin-1")
            unsupported = unsupported_protocol_version_rejection(requested)
            # None is defined: a client takes a request back by going.
            await Reply(send).end(
                *(rejection(unsupported) if unsupported else (None, HTTPStatus.ACCEPTED))
            )
            return
        if not isinstance(message, JSONRPCRequest):
            await _refuse(send, HTTPStatus.BAD_REQUEST, NOT_ONE)
            return
        request, reply = Request(scope), Reply(send)
        route = self._modern.route(message, request)
        if isinstance(route, InboundLadderRejection):
            await reply.end(*rejection(route, message.id))
            return
        is_call = self._fast_lanes is not None and message.method == CALL
        if self._fast_lanes is not None and is_call and not self._modern.mirrors(message, request):
            self._fast_lanes.open(scope, partial(speaking, route))
        exchange = Exchange(message, request, reply)
        lasts = message.method == LISTEN
        with (
            self.under_way.answering(
                exchange, reply, owner=_owner(scope), lasts=lasts, until=_until(scope)
            ),
            presence(scope).telling(partial(exchange.stop, "gone")),
        ):
            await self._modern.answer(exchange, route, reply)

    async def _shake_hands(self, scope: Scope, send: Send, message: JSONRPCRequest) -> None:
        """Settle with a new client how it is spoken to, and open a session for it."""
        reply = Reply(send)
        exchange = Exchange(message, Request(scope), reply)
        connection = Connection.for_loop(exchange)
        answer = await exchange.run(ServerRunner(self._server, connection, {}))
        client = connection.client_params
        if client is None or not isinstance(answer, JSONRPCResponse):
            await reply.end(encoded(answer) if answer else None)
            return
        introduction = Introduction(client, connection.protocol_version)
        session = await self._opened(introduction, _owner(scope))
        if session is None:
            await self._refuse_more(send, _owner(scope))
        else:
            await Reply(send, session.headers).end(encoded(answer))

    async def _opened(self, introduction: Introduction, owner: Owner) -> Session | None:
        """Open a session that nobody knows of yet, unless there are too many."""
        if self._adoption is None:
            return await self.begin(uuid4().hex, introduction, owner)
        key = self._adoption.key(introduction, owner)
        return await self.begin(key, introduction, owner, self._adoption.place)

    async def begin(
        self, key: str, introduction: Introduction, owner: Owner, place: Place = HERE
    ) -> Session | None:
        """Open a session, unless there are too many: all that it needs to be known by is given."""
        if not self.sessions.make_room(owner):
            return None
        session = Session(key, introduction, owner, self._server, place)
        self.sessions.begin(session)
        await self._group.start(self._live, session)
        return session

    async def _refuse_more(self, send: Send, owner: Owner) -> None:
        """Say that there are too many sessions, of one or of all, and none of them is idle."""
        if self.sessions.has_its_share(owner):
            await _refuse(send, HTTPStatus.TOO_MANY_REQUESTS, _SHARE, (AGAIN,))
        else:
            await _refuse(send, HTTPStatus.SERVICE_UNAVAILABLE, _TOO_MANY)

    async def _live(self, session: Session, *, task_status: TaskStatus[None]) -> None:
        try:
            await session.run(task_status=task_status)
        finally:
            self.sessions.end(session)

    async def _session(self, scope: Scope, send: Send, given: Given) -> Session | None:
        """Return the session that a request is part of; refuse it if there is none."""
        key = given.get(b"mcp-session-id")
        if key is None:
            await _refuse(send, HTTPStatus.BAD_REQUEST, _MISSING)
            return None
        if self._adoption is not None:
            return await self._adopted(self._adoption, key.decode("latin-1"), scope, send)
        session = self.sessions.get(key.decode("latin-1"))
        # Whoever has learnt the id of another's session learns no more by it than that.
        if session is None or session.owner != _owner(scope):
            await _refuse(send, HTTPStatus.NOT_FOUND, _UNKNOWN)
            return None
        # Of who is not known to be there, nobody would be told that it has gone.
        session.welcome(scope)
        return session

    async def _adopted(
        self, adoption: Adoption, key: str, scope: Scope, send: Send
    ) -> Session | None:
        """Return a session, opened here if another replica has opened it; refuse it if none has."""
        owner = _owner(scope)
        session = self.sessions.get(key)
        if session is None or adoption.is_under_way(key):
            async with adoption.turn(key):
                session = self.sessions.get(key)
                found = await adoption.find(key, owner) if session is None else None
                if found is not None:
                    session = await self.begin(key, found.introduction, owner, found.place)
                    if session is None:
                        await self._refuse_more(send, owner)
                        return None
        if session is None or session.owner != owner:
            await _refuse(send, HTTPStatus.NOT_FOUND, _UNKNOWN)
            return None
        scope[HOME], scope[LOADED] = session.home, session.loaded
        session.welcome(scope)
        return session

    async def _speak_in(
        self, session: Session, scope: Scope, send: Send, message: JSONRPCMessage
    ) -> None:
        """Take a message of a client that has a session."""
        request, reply = Request(scope), Reply(send, session.headers)
        with self.sessions.used(session):
            if isinstance(message, JSONRPCRequest):
                if self._fast_lanes is not None and message.method == CALL:
                    self._fast_lanes.open(scope, session.speaking, session)
                exchange = Exchange(message, request, reply, session.questions)
                with self.under_way.answering(exchange, reply):
                    await session.answer(exchange, reply)
                return
            if isinstance(message, JSONRPCNotification):
                await reply.end(None, HTTPStatus.ACCEPTED)
                session.hear(message, request)
            elif (asker := session.questions.asker(message)) is not None:
                await self._pass_on(session, asker, message, send)
            else:
                await reply.end(None, HTTPStatus.ACCEPTED)
                session.questions.answer(message)

    async def _pass_on(
        self, session: Session, asker: str, message: JSONRPCResponse | JSONRPCError, send: Send
    ) -> None:
        """Have another replica take the answer to what it has asked, or say where it is wanted."""
        if self._mail is not None and self._mail.answered(session.key, asker, message):
            await Reply(send, session.headers).end(None, HTTPStatus.ACCEPTED)
            return
        elsewhere = ElsewhereError("what was asked", asker)
        told = ErrorData(code=ELSEWHERE, message=str(elsewhere), data=elsewhere.facts)
        await _refuse(send, HTTPStatus.SERVICE_UNAVAILABLE, told, session.headers)

    async def _listen(self, session: Session, scope: Scope, send: Send, given: Given) -> None:
        """Tell a client what is not part of any answer, for as long as it listens."""
        if not accepted(given.get(b"accept", b"").decode("latin-1")).events:
            await _refuse(send, HTTPStatus.NOT_ACCEPTABLE, _NO_EVENTS, session.headers)
            return
        if session.has_stream:
            await _refuse(send, HTTPStatus.CONFLICT, _TAKEN, session.headers)
            return
        reply, listening = Reply(send, session.headers), Listening()
        with (
            self.sessions.used(session),
            session.heard_on(reply, listening),
            self.under_way.answering(listening, reply, lasts=True, until=_until(scope)),
            presence(scope).telling(partial(listening.stop, "gone")),
        ):
            await reply.begin()
            await listening.run()
        await reply.end(None)


def _opens(message: JSONRPCRequest, given: Given) -> bool:
    """Whether a request is the first of a client."""
    return message.method == "initialize" and b"mcp-session-id" not in given


def _owner(scope: Scope) -> Owner:
    """Return whose a request is, as the door has found it."""
    return scope.get(OWNER, OPERATORS)


def _until(scope: Scope) -> float | None:
    """Return until when it is known whose a request is, if not for good."""
    identity: Identity = scope.get(IDENTITY, OPERATOR)
    return identity.expires


def _check_length(length: bytes) -> None:
    """Refuse a body that says of itself that it is too long, without reading it."""
    if length.isdigit() and int(length[:20]) > MAX_BODY_BYTES:
        raise too_long(MAX_BODY_BYTES)


async def _refuse(
    send: Send, status: HTTPStatus, error: ErrorData | None, headers: Headers = ()
) -> None:
    """Answer what cannot be answered; what it asks, and so the id of it, is not known."""
    told = error and encoded(JSONRPCError(jsonrpc="2.0", id=None, error=error))
    await Reply(send, headers).end(told, status)
