"""Requests and answers on one transport, matched by number.

The SDK's dispatcher does the same, with a span, a stream and a timer for every request. Each call
of a tool passes through here, so this one does without them.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple, Protocol

import anyio
import anyio.abc
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)

from aggregator.downstream.transport import (
    NO_HEADERS,
    ConnectionClosedError,
    Headers,
    NotSentError,
    Received,
    Related,
    Transport,
    Undelivered,
    UndeliveredError,
)

logger = logging.getLogger(__name__)

Params = Mapping[str, Any] | None
Rest = Callable[[], Awaitable[None]]
"""What is left to do with a notification."""

REQUEST_FAILURES = (MCPError, UndeliveredError, ConnectionClosedError)
"""How a request can come to nothing."""

CANCEL_PATIENCE = 1.0
"""Seconds that a server has to take note that a request is no longer wanted."""

MAX_DIGITS = 20
"""Digits of a number that may be one of ours; Python refuses to read thousands of them."""


class Listener(Protocol):
    """What becomes of that which the other side says by itself."""

    async def answer(
        self, related: RequestId | None, method: str, params: Params
    ) -> dict[str, Any]:
        """Answer a request, which may be related to one of ours."""
        ...

    def hear(self, related: RequestId | None, method: str, params: Params) -> Rest | None:
        """Take a notification in the order it came; return what is left to do, if anything is."""
        ...


Outcome = dict[str, Any] | ErrorData | Undelivered | None
"""What became of a request; nothing if the connection closed."""


class Waiting(Protocol):
    """Somebody who waits for an answer."""

    @property
    def is_settled(self) -> bool:
        """Whether there was an outcome."""
        ...

    def settle(self, outcome: Outcome, /) -> None:
        """Take the outcome, of which there is one."""
        ...


@dataclass(slots=True)
class _Waiter:
    """A task that waits for an answer."""

    answered: anyio.Event = field(default_factory=anyio.Event)
    outcome: Outcome = None

    @property
    def is_settled(self) -> bool:
        return self.answered.is_set()

    def settle(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self.answered.set()


class _Side(NamedTuple):
    """Who hears what the other side says by itself, and where it is acted on."""

    listener: Listener
    group: anyio.abc.TaskGroup


class Exchange:
    """Two sides that ask and answer each other."""

    def __init__(self, transport: Transport, server: str = "") -> None:
        self.transport = transport
        self._about = {"server": server} if server else {}
        self.closed = anyio.Event()
        """Set when nobody will be answered any more."""
        self._is_closed = False
        self._numbers = count(1)
        self._waiting: dict[RequestId, Waiting] = {}
        self._serving: dict[RequestId, anyio.CancelScope] = {}
        self._side: _Side | None = None
        """Who hears what the other side says by itself, for as long as somebody does."""

    def next_number(self) -> int:
        """Return a number for a request that no other request has."""
        return next(self._numbers)

    async def request(
        self,
        number: RequestId,
        method: str,
        params: Params,
        headers: Headers = NO_HEADERS,
        *,
        cancellable: bool = True,
    ) -> dict[str, Any]:
        """Send a request and wait for its result.

        Raises:
            MCPError: The answer is an error.
            UndeliveredError: The transport could not get an answer.
            NotSentError: The connection had closed before.
            ConnectionClosedError: The connection closed before there was an answer.
        """
        if self.closed.is_set():
            raise NotSentError
        waiter = self._waiting[number] = _Waiter()
        message = _request(number, method, params)
        try:
            if not self.transport.put(message, headers, self._take):
                await self.transport.send(message, headers)
            if not waiter.answered.is_set():
                await waiter.answered.wait()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise NotSentError from None
        except anyio.get_cancelled_exc_class():
            if cancellable:
                await self._take_back(number)
            raise
        finally:
            del self._waiting[number]
        return result_of(waiter.outcome)

    def begin(
        self, number: int, method: str, params: Params, headers: Headers, waiting: Waiting
    ) -> bool:
        """Send a request whose outcome somebody is told of, until it is forgotten.

        Say whether that can be done without waiting.
        """
        if self._side is None or self._is_closed:
            return False
        try:
            is_sent = self.transport.put(_request(number, method, params), headers, self._take)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return False
        if is_sent:
            self._waiting[number] = waiting
        return is_sent

    def forget(self, number: int) -> None:
        """Tell nobody of the outcome of a request."""
        del self._waiting[number]

    def take_back(self, number: int) -> None:
        """Have the other side told, as a courtesy, that an answer is no longer wanted."""
        if self._side is not None and not self.closed.is_set():
            self._side.group.start_soon(self._take_back, number)

    async def notify(self, method: str, params: Params = None) -> None:
        """Send a notification; a connection that is gone swallows it."""
        message = JSONRPCNotification(jsonrpc="2.0", method=method)
        if params is not None:
            message = JSONRPCNotification(jsonrpc="2.0", method=method, params=dict(params))
        await self._send_if_open(message)

    async def run(self, listener: Listener, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        """Read what the other side sends until it sends no more."""
        try:
            async with anyio.create_task_group() as group:
                self._side = _Side(listener, group)
                task_status.started()
                await self._read_all()
                self.close()
                group.cancel_scope.cancel()
        finally:
            self._side = None
            self.close()

    async def _read_all(self) -> None:
        with suppress(anyio.EndOfStream):
            while True:
                self._take(await self.transport.receive(self._tap))

    def _tap(self, message: JSONRPCMessage) -> bool:
        """Take an answer; all else is taken in its turn."""
        is_answer = isinstance(message, JSONRPCResponse | JSONRPCError)
        if is_answer:
            self._take(message)
        return is_answer

    def _take(self, item: Received) -> None:
        message, related = item if isinstance(item, Related) else (item, None)
        match message:
            case JSONRPCResponse(id=number, result=result):
                self._settle(number, result)
            case JSONRPCError(id=number, error=error):
                self._settle(number, error)
            case Undelivered(request=number):
                self._settle(number, message)
            case JSONRPCRequest():
                self._admit(message, related)
            case JSONRPCNotification(method="notifications/cancelled", params=params):
                self._cancel((params or {}).get("requestId"))
            case JSONRPCNotification(method=method, params=params):
                self._hear(related, method, params)

    def _hear(self, related: RequestId | None, method: str, params: Params) -> None:
        """Take a notification; one that is odd in a way nobody foresaw costs only itself."""
        if self._side is None:
            return
        try:
            rest = self._side.listener.hear(related, method, params)
        except Exception:
            logger.exception("a notification could not be understood", extra=self._about)
            return
        if rest is not None:
            self._side.group.start_soon(self._do, rest)

    def _settle(self, number: RequestId | None, outcome: Outcome) -> None:
        waiter = self._waiting.get(number) if number is not None else None
        if waiter is None and isinstance(number, str):
            # Some servers write the numbers they are sent as text.
            is_number = len(number) <= MAX_DIGITS and number.isdecimal()
            waiter = self._waiting.get(int(number)) if is_number else None
        if waiter is None or waiter.is_settled:
            logger.debug("an answer that nobody waits for is dropped", extra=self._about)
        else:
            waiter.settle(outcome)

    def _admit(self, request: JSONRPCRequest, related: RequestId | None) -> None:
        """Begin to serve a request, unless one under its number is being served."""
        if self._side is None:
            return
        group = self._side.group
        if request.id in self._serving:
            group.start_soon(self._send_if_open, _refused_twin(request.id))
            return
        scope = self._serving[request.id] = anyio.CancelScope()
        group.start_soon(self._serve, request, related, self._side.listener, scope)

    async def _serve(
        self,
        request: JSONRPCRequest,
        related: RequestId | None,
        listener: Listener,
        scope: anyio.CancelScope,
    ) -> None:
        """Answer one request of the other side, unless it takes the request back."""
        with scope:
            try:
                result = await listener.answer(related, request.method, request.params)
                answer: JSONRPCMessage = JSONRPCResponse(
                    jsonrpc="2.0", id=request.id, result=result
                )
            except MCPError as error:
                answer = JSONRPCError(jsonrpc="2.0", id=request.id, error=error.error)
            except Exception:
                logger.exception("its request could not be answered", extra=self._about)
                failed = ErrorData(code=INTERNAL_ERROR, message="The request failed")
                answer = JSONRPCError(jsonrpc="2.0", id=request.id, error=failed)
            finally:
                del self._serving[request.id]
            await self._send_if_open(answer)

    def _cancel(self, number: object) -> None:
        scope = self._serving.get(number) if isinstance(number, str | int) else None
        if scope is not None:
            scope.cancel()

    async def _take_back(self, number: RequestId) -> None:
        """Tell the other side, as a courtesy, that an answer is no longer wanted."""
        with anyio.move_on_after(CANCEL_PATIENCE, shield=True):
            reason = {"requestId": number, "reason": "the caller does not wait any longer"}
            await self.notify("notifications/cancelled", reason)

    async def _send_if_open(self, message: JSONRPCMessage) -> None:
        if self.closed.is_set():
            return
        try:
            await self.transport.send(message)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            logger.debug("a message to a connection that is gone is dropped", extra=self._about)

    async def _do(self, rest: Rest) -> None:
        try:
            await rest()
        except Exception:
            logger.exception("a notification could not be passed on", extra=self._about)

    def __repr__(self) -> str:
        if self.closed.is_set():
            return "<Exchange closed>"
        return f"<Exchange {len(self._waiting)} waiting, {len(self._serving)} serving>"

    def close(self) -> None:
        """Tell everybody who waits that there will be no answer."""
        self._is_closed = True
        self.closed.set()
        for waiter in list(self._waiting.values()):
            if not waiter.is_settled:
                waiter.settle(None)


def _refused_twin(number: RequestId) -> JSONRPCError:
    """Refuse a request under a number that is taken: nobody could tell their answers apart."""
    error = ErrorData(code=INVALID_REQUEST, message="A request with this id is under way")
    return JSONRPCError(jsonrpc="2.0", id=number, error=error)


def _request(number: RequestId, method: str, params: Params) -> JSONRPCRequest:
    if params is None:
        return JSONRPCRequest(jsonrpc="2.0", id=number, method=method)
    return JSONRPCRequest(jsonrpc="2.0", id=number, method=method, params=dict(params))


def result_of(outcome: Outcome) -> dict[str, Any]:
    """Return the result of a request.

    Raises:
        MCPError: The answer is an error.
        UndeliveredError: The transport could not get an answer.
        ConnectionClosedError: The connection closed before there was an answer.
    """
    match outcome:
        case dict():
            return outcome
        case ErrorData():
            raise MCPError(outcome.code, outcome.message, outcome.data)
        case Undelivered():
            raise UndeliveredError(outcome)
        case None:
            raise ConnectionClosedError
