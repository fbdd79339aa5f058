"""Plain calls over HTTP, taken where they are read: each is answered in one write.

Where something comes between, such as progress, a question, or a long silence, the answer becomes
the stream of events that it would have been.
"""

from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any, NamedTuple

import anyio.abc
from mcp.server.session import ServerSession
from mcp_types import ErrorData, JSONRPCError, JSONRPCRequest, RequestId
from pydantic_core import from_json
from starlette.requests import Request as HttpRequest
from starlette.types import Message, Scope

from aggregator.basics.json import is_plain_object
from aggregator.fleet.now import Now
from aggregator.jsonrpc.encoding import encoded, encoded_result
from aggregator.upstream.caller import MEET
from aggregator.upstream.fast_path import CALL, FastCall, FastPath, Known
from aggregator.upstream.http.exchange import End, Exchange, instead
from aggregator.upstream.http.modern import status_of
from aggregator.upstream.http.reply import JSON, Headers, Reply, later, status_here
from aggregator.upstream.http.session import Session
from aggregator.upstream.http.sessions import Sessions
from aggregator.upstream.http.shortcut import STANDS, Line, Offer
from aggregator.upstream.http.under_way import UnderWay
from aggregator.upstream.request import Request

Speaking = Callable[[Exchange], ServerSession]
"""Returns what reaches a client for as long as a request of it is under way."""

_NOW = "aggregator.now"
"""Where in the scope of a request it is written what there was when it was let in."""

_MEMBERS = frozenset(("jsonrpc", "id", "method", "params"))


class Call(NamedTuple):
    """What a body asks for that is a call."""

    id: RequestId
    params: dict[str, Any]


class FastLanes:
    """Takes the calls that are like one which went the usual way."""

    def __init__(
        self,
        fast_path: FastPath,
        sessions: Sessions[Session],
        under_way: UnderWay,
        group: anyio.abc.TaskGroup,
    ) -> None:
        self.fast_path = fast_path
        self.sessions = sessions
        self.under_way = under_way
        self.group = group

    def expect(self, scope: Scope) -> None:
        """Take note of what somebody is let in by, before the rest of the request is there."""
        scope[_NOW] = self.fast_path.fleet.now

    def open(self, scope: Scope, speaking: Speaking, session: Session | None = None) -> None:
        """Take the calls that are like one, once it is known who asks."""
        offer: Offer | None = scope["state"].get(Offer.KEY)
        if offer is not None and STANDS in scope:
            scope[MEET] = partial(self._meet, offer, scope, speaking, session)

    def _meet(
        self,
        offer: Offer,
        scope: Scope,
        speaking: Speaking,
        session: Session | None,
        request: Request,
    ) -> None:
        offer.make(FastLane(self, request, scope, speaking, session).take, scope)


class FastLane:
    """Takes the calls that one client sends with one and the same head."""

    def __init__(
        self,
        fast_lanes: FastLanes,
        request: Request,
        scope: Scope,
        speaking: Speaking,
        session: Session | None,
    ) -> None:
        self.fast_path = fast_lanes.fast_path
        self.group = fast_lanes.group
        self.scope = scope
        self.speaking = speaking
        self.session = session
        """What they are part of; nothing in the modern era."""
        self.headers: Headers = () if session is None else session.headers
        self.headers_of_result: Headers = (JSON, *self.headers)
        self._sessions = fast_lanes.sessions
        self._under_way = fast_lanes.under_way
        self._known = Known.by(request)
        self._now: Now = scope[_NOW]
        self._stands: Callable[[], bool] = scope[STANDS]

    def take(self, body: bytes, line: Line) -> bool:
        """Send a call on, if nothing is to be said to it and all is as it was; say whether."""
        found = _call_in(body) if self._is_as_it_was() else None
        if found is None or not self._is_named(found):
            return False
        call = FastLaneCall(self, line, found)
        if not self.fast_path.begin(call, found.params, self._known, call):
            return False
        if self.session is None:
            line.presence.tell(call.leave)
        else:
            self._sessions.use(self.session)
            self.session.begin(call.request_id, call)
        self._under_way.begin(call, call)
        return True

    def end(self, call: "FastLaneCall", line: Line) -> None:
        """Know of a call no longer."""
        self._under_way.end(call, call)
        if self.session is None:
            line.presence.tell_nobody()
        else:
            self.session.forget(call.request_id, call)
            self._sessions.let_go(self.session)

    def status(self, message: JSONRPCError) -> int:
        """Return the status that an error has."""
        return status_of(message.error.code) if self.session is None else status_here(message)

    def _is_as_it_was(self) -> bool:
        """Whether nothing has changed by which a call like the first would be answered otherwise.

        What is configured and what there is are one value, which is replaced whole.
        """
        has_ended = self.session is not None and self.session.has_ended
        is_over = has_ended or self._under_way.is_leaving
        return not is_over and self.fast_path.fleet.now is self._now and self._stands()

    def _is_named(self, call: Call) -> bool:
        """Whether a call is what its head says: in the modern era that says its name."""
        known = self._known.request.params
        return self.session is not None or call.params.get("name") == known.get("name")


class FastLaneCall(FastCall):
    """A call that was taken, until it is answered."""

    def __init__(self, lane: FastLane, line: Line, call: Call) -> None:
        super().__init__(lane.fast_path, lane.group)
        self.request_id = call.id
        self._lane = lane
        self._line = line
        self._params = call.params
        self._exchange: Exchange | None = None
        self._reply: Reply | None = None
        """How it is answered if not in one write."""
        self._is_over = False

    def answered(self, result: dict[str, Any]) -> None:
        """Give its client the result."""
        if not self._is_over:
            body = encoded_result(self.request_id, result)
            self._conclude(HTTPStatus.OK, self._lane.headers_of_result, body)

    def refused(self, error: ErrorData) -> None:
        """Tell its client what became of it instead."""
        if not self._is_over:
            message = JSONRPCError(jsonrpc="2.0", id=self.request_id, error=error)
            status = self._lane.status(message)
            headers = (JSON, *later(status), *self._lane.headers)
            self._conclude(status, headers, encoded(message))

    def session(self) -> ServerSession:
        """Return what asks its client and tells it something, on the way of its answer."""
        if self._is_over and self._exchange is None:
            # Its connection may have another request by now.
            exchange = self._exchange_on(Reply(_nowhere))
            exchange.close()
        else:
            exchange, _ = self._opened()
        return self._lane.speaking(exchange)

    async def beat(self) -> None:
        """Keep its connection, on which nothing has been said for long."""
        if not self._is_over:
            await self._opened()[1].beat()

    def leave(self) -> None:
        """Go on no longer: its client has gone."""
        self.stop("gone")

    def stop(self, end: End) -> None:
        """Go on no longer: there is nobody to answer, or nobody to be answered."""
        if self._is_over:
            return
        self._is_over = True
        self.give_up()
        self._lane.end(self, self._line)
        self._group.start_soon(self._say_so, end)

    async def _say_so(self, end: End) -> None:
        exchange, reply = self._opened()
        exchange.close()
        error = instead(end)
        told = error and JSONRPCError(jsonrpc="2.0", id=self.request_id, error=error)
        if self._lane.session is not None:
            # As it is answered elsewhere: see there.
            await reply.begin()
        if told is None:
            await reply.end(None)
        else:
            await reply.end(encoded(told), self._lane.status(told))

    def _conclude(self, status: int, headers: Headers, body: bytes) -> None:
        self._is_over = True
        # Who waits for the answer does not wait for what is done with it besides.
        try:
            if self._line.is_taken:
                self._line.answer(status, headers, body)
            else:
                exchange, reply = self._opened()
                exchange.close()
                self._group.start_soon(reply.end, body, status)
        finally:
            self._lane.end(self, self._line)

    def _opened(self) -> tuple[Exchange, Reply]:
        """Return how it is answered in several pieces from here on."""
        if self._exchange is None or self._reply is None:
            self._reply = Reply(self._line.usual(), self._lane.headers)
            self._exchange = self._exchange_on(self._reply)
        return self._exchange, self._reply

    def _exchange_on(self, reply: Reply) -> Exchange:
        lane = self._lane
        message = JSONRPCRequest(
            jsonrpc="2.0", id=self.request_id, method=CALL, params=self._params
        )
        questions = None if lane.session is None else lane.session.questions
        return Exchange(message, HttpRequest(lane.scope), reply, questions)


async def _nowhere(_message: Message) -> None:
    """Send nobody anything."""


def _call_in(body: bytes) -> Call | None:
    """Return the call that a body is, if it is one and nothing else."""
    try:
        value: object = from_json(body)
    except ValueError:
        return None
    if not is_plain_object(value) or value.keys() != _MEMBERS:
        return None
    identifier, params = value["id"], value["params"]
    is_call = value["method"] == CALL and value["jsonrpc"] == "2.0" and is_plain_object(params)
    is_known = isinstance(identifier, str | int) and not isinstance(identifier, bool)
    return Call(identifier, params) if is_call and is_known else None
