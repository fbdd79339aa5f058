"""The calls of a client on a stream that need no more than to be sent on, taken out of it.

A task for each, and the SDK's way to it, cost more than all else that is done with such a call.
It is sent on where it is read, and answered where its answer is read. All else of the stream goes
to the SDK, the first request among it: who asks is known from that.
"""

import logging
from collections.abc import Callable
from functools import partial
from itertools import count
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self

import anyio
import anyio.abc
import mcp_types as types
from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage

from aggregator.basics.json import JsonObject, as_object, is_object
from aggregator.downstream.sent import Sent
from aggregator.fleet.fleet import Fleet
from aggregator.jsonrpc.pipes import Tap
from aggregator.upstream.calls import Bound
from aggregator.upstream.forwarding import Begun
from aggregator.upstream.lobby import Lobby
from aggregator.upstream.mishaps import mishap, new_number
from aggregator.upstream.plainly import Calling, PlainCalls
from aggregator.upstream.request import Request

logger = logging.getLogger(__name__)

CALL, CANCELLED = "tools/call", "notifications/cancelled"

SAID_OF_ITSELF = (
    types.PROTOCOL_VERSION_META_KEY,
    types.CLIENT_INFO_META_KEY,
    types.CLIENT_CAPABILITIES_META_KEY,
    types.LOG_LEVEL_META_KEY,
)
"""What each request of the modern era says of its client."""

CLOSED = types.ErrorData(code=types.CONNECTION_CLOSED, message="Connection closed")
"""What is answered to calls that are under way when a stream ends."""

Shape = Callable[[dict[str, Any]], dict[str, Any]]
"""Gives a result the form of its client's era."""


class Source(Protocol):
    """A stream of messages that the SDK can read."""

    async def receive(self, tap: Tap, /) -> SessionMessage | Exception:
        """Return what comes next and is not tapped.

        Raises:
            EndOfStream: Nothing more will come.
        """
        ...

    async def aclose(self) -> None:
        """Read no more."""
        ...


class Answers(Protocol):
    """Where answers are written without waiting."""

    @property
    def is_full(self) -> bool:
        """Whether so much is waiting already that more should wait elsewhere."""
        ...

    def answer(self, message: types.JSONRPCResponse | types.JSONRPCError) -> None:
        """Write an answer; it is lost if nobody reads any more."""
        ...


class _Known(NamedTuple):
    """Who asks, by a request that went the usual way."""

    request: Request
    said: tuple[object, ...]


class _Passage:
    """One call, from its request to its answer."""

    def __init__(self, identifier: types.RequestId, calling: Calling) -> None:
        self.id = identifier
        self.calling = calling
        self._scope: anyio.CancelScope | None = None

    def finishing(self) -> anyio.CancelScope:
        """Return the scope of what is left to do with it."""
        self._scope = anyio.CancelScope()
        return self._scope

    def give_up(self) -> None:
        """Have nothing more be done with it."""
        if self._scope is not None:
            self._scope.cancel()
        else:
            self.calling.give_up()


class Express:
    """Takes calls out of one stream."""

    def __init__(
        self,
        calls: PlainCalls,
        fleet: Fleet,
        lobby: Lobby,
        *,
        shape: Shape,
        asked: anyio.Event,
        answers: Answers,
        group: anyio.abc.TaskGroup,
    ) -> None:
        self._calls = calls
        self._fleet = fleet
        self._lobby = lobby
        self._shape = shape
        self._asked = asked
        self._answers = answers
        self._group = group
        self._known: _Known | None = None
        self._numbers = count()
        self._under_way: dict[int, _Passage] = {}
        self._latest: dict[types.RequestId, int] = {}
        """Which call a client means by an id: of several, the last."""

    def meet(self, request: Request) -> None:
        """Take note of who asks, from a request that goes the usual way."""
        self._known = _Known(request, _said(request, request.params.get("_meta")))

    def take(self, message: types.JSONRPCMessage) -> bool:
        """Send a message on if it is a call of which nothing but the answer is waited for."""
        if isinstance(message, types.JSONRPCRequest):
            if message.method == CALL:
                return self._known is not None and self._begin(message, self._known)
            if message.method == "initialize":
                self._known = None
        elif isinstance(message, types.JSONRPCNotification):
            if message.method == CANCELLED:
                self._cancel((message.params or {}).get("requestId"))
            else:
                # What comes after it is not to overtake it.
                self._known = None
        return False

    def close(self) -> None:
        """Give up what is under way, since the stream has ended."""
        for number, passage in list(self._under_way.items()):
            passage.give_up()
            self._refuse(number, CLOSED)

    def _begin(self, message: types.JSONRPCRequest, known: _Known) -> bool:
        number = next(self._numbers)
        try:
            bound = self._bound(message.params or {}, known)
            begun = bound and self._calls.begin(bound, partial(self._settled, number))
        except Exception:
            # Nothing has been sent. Whoever looks at it on the usual way says what is told.
            logger.exception("a call could not be looked at")
            return False
        if bound is None or begun is None:
            return False
        self._asked.set()
        self._keep(number, message.id, bound, begun)
        return True

    def _bound(self, params: JsonObject, known: _Known) -> Bound | None:
        """Return where a call goes, unless somebody else has to look at it."""
        meta, arguments = params.get("_meta"), params.get("arguments")
        if not isinstance(params.get("name"), str) or self._answers.is_full:
            return None
        if (
            not (_is_given(arguments) and _is_given(meta))
            or _said(known.request, meta) != known.said
        ):
            return None
        request = known.request.again(params, self._fleet.now)
        return None if self._lobby.owes(request) else self._calls.bound(request)

    def _keep(self, number: int, identifier: types.RequestId, bound: Bound, begun: Begun) -> None:
        self._under_way[number] = _Passage(identifier, self._calls.seen(bound, begun))
        self._latest[coerce_request_id(identifier)] = number

    def _settled(self, number: int, _sent: Sent) -> None:
        """Answer a call that is settled, or have it answered."""
        if (passage := self._under_way.get(number)) is None:
            return
        result = None
        try:
            result = self._calls.take_plain(passage.calling)
            if result is not None and self._calls.shows(result, passage.calling.bound):
                self._answer(number, result)
            else:
                self._group.start_soon(self._finish, number, passage, result, passage.finishing())
        except Exception:
            bug = new_number()
            logger.exception("internal error %s", bug)
            self._fail(number, passage, bug)
        if result is not None:
            self._note(passage, result)

    def _note(self, passage: _Passage, result: dict[str, Any]) -> None:
        """Have a result counted and written down; its client does not wait for that."""
        try:
            self._calls.note(passage.calling, result)
        except Exception:
            logger.exception("a call could not be taken note of")

    async def _finish(
        self,
        number: int,
        passage: _Passage,
        result: dict[str, Any] | None,
        scope: anyio.CancelScope,
    ) -> None:
        """Answer a call with what takes longer: an error, or a part of a result."""
        calling = passage.calling
        with scope:
            try:
                if result is None:
                    result = await self._calls.finish(calling)
                result = await self._calls.shortened(result, calling.bound)
                self._answer(number, result)
            except MCPError as error:
                self._refuse(number, error.error)
            except Exception:
                bug = new_number()
                logger.exception("internal error %s", bug)
                self._fail(number, passage, bug)

    def _cancel(self, identifier: object) -> None:
        """Give up a call that its client does not want any more, and say nothing of it."""
        if not isinstance(identifier, str | int):
            return
        number = self._latest.get(coerce_request_id(identifier))
        if number is not None and (passage := self._forget(number)) is not None:
            passage.give_up()

    def _answer(self, number: int, result: dict[str, Any]) -> None:
        if (passage := self._forget(number)) is None:
            return
        if passage.calling.bound.request.caller.era == "modern":
            result = self._shape(result)
        self._answers.answer(types.JSONRPCResponse(jsonrpc="2.0", id=passage.id, result=result))

    def _refuse(self, number: int, error: types.ErrorData) -> None:
        if (passage := self._forget(number)) is not None:
            self._answers.answer(types.JSONRPCError(jsonrpc="2.0", id=passage.id, error=error))

    def _fail(self, number: int, passage: _Passage, bug: str) -> None:
        """Answer a call that a bug of ours has left without an answer."""
        self._forget(number)
        error = mishap(bug).error
        self._answers.answer(types.JSONRPCError(jsonrpc="2.0", id=passage.id, error=error))

    def _forget(self, number: int) -> _Passage | None:
        """Return a call that is under way no longer, unless it was that before."""
        if (passage := self._under_way.pop(number, None)) is not None:
            identifier = coerce_request_id(passage.id)
            if self._latest.get(identifier) == number:
                del self._latest[identifier]
        return passage


class Rest:
    """What is left of a stream for the SDK."""

    def __init__(self, source: Source, express: Express) -> None:
        self._source = source
        self._express = express

    async def receive(self) -> SessionMessage | Exception:
        """Return what comes next and is not taken.

        Raises:
            EndOfStream: Nothing more will come.
        """
        while True:
            item = await self._source.receive(self._express.take)
            if not isinstance(item, SessionMessage) or not self._express.take(item.message):
                return item

    async def aclose(self) -> None:
        """Read no more."""
        await self._source.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        await self.aclose()


def _said(request: Request, meta: object) -> tuple[object, ...]:
    """Return what a request says of its client, if it says so each time."""
    if request.caller.era == "handshake":
        return ()
    given = as_object(meta)
    return tuple(given.get(key) for key in SAID_OF_ITSELF)


def _is_given(value: object) -> bool:
    """Whether a value is an object, or left out."""
    return value is None or is_object(value)
