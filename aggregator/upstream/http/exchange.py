"""One request of a client, from the moment it is understood to its answer.

It is what the SDK calls a dispatch context: by it, whoever answers reaches the client meanwhile.
It is answered in the task of its own HTTP request, so nothing has to be handed from one to another.
"""

from collections.abc import Mapping
from typing import Any, Literal, Protocol

import anyio
from mcp.server.runner import ServerRunner
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.jsonrpc_dispatcher import (
    handler_exception_to_error_data,
    progress_token_from_params,
)
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types import (
    CONNECTION_CLOSED,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)
from pydantic import ValidationError
from starlette.requests import Request

from aggregator.errors import ERROR_META
from aggregator.jsonrpc.encoding import encoded
from aggregator.upstream.http.questions import Questions
from aggregator.upstream.http.reply import Reply

REQUEST_CANCELLED = -32800
"""What a request is answered that its client has taken back: in the handshake era it has to be."""

End = Literal["gone", "cancelled", "closed"]
"""Why there is no answer: the client has gone, has taken its request back, or it or we end."""

_TWO_WAYS = TransportContext(kind="streamable-http", can_send_request=True)
_ONE_WAY = TransportContext(kind="streamable-http", can_send_request=False)

_INSTEAD: Mapping[End, ErrorData] = {
    "cancelled": ErrorData(code=REQUEST_CANCELLED, message="Request cancelled"),
    "closed": ErrorData(
        code=CONNECTION_CLOSED,
        message="The session ended before the answer came. It may have taken effect: "
        "check before asking again",
        # A server can send the same code.
        data={ERROR_META: {"kind": "session-ended"}},
    ),
}


class Stoppable(Protocol):
    """What is under way, and need not come to its end."""

    def stop(self, end: End, /) -> None:
        """Go on no longer."""
        ...


class Exchange:
    """A request that is being answered."""

    def __init__(
        self,
        message: JSONRPCRequest,
        request: Request,
        reply: Reply,
        questions: Questions | None = None,
    ) -> None:
        self._message = message
        self._reply = reply
        self._questions = questions
        self._is_closed = False
        self._end: End | None = None
        self._taken_back: anyio.Event | None = None
        self.scope = anyio.CancelScope()
        self.request_id: RequestId = message.id
        self.message_metadata = ServerMessageMetadata(request_context=request)
        self.transport = _ONE_WAY if questions is None else _TWO_WAYS

    @property
    def can_send_request(self) -> bool:
        """Whether the client can be asked something meanwhile."""
        return self._questions is not None and not self._is_closed

    @property
    def has_been_stopped(self) -> bool:
        """Whether somebody has ended it before its time."""
        return self._end is not None

    @property
    def cancel_requested(self) -> anyio.Event:
        """Set when the client takes its request back."""
        # Nobody has asked for it yet, so it is made when somebody does.
        if self._taken_back is None:
            self._taken_back = anyio.Event()
            if self._end is not None:
                self._taken_back.set()
        return self._taken_back

    def stop(self, end: End) -> None:
        """Go on no longer: there is nobody to answer, or nobody to be answered."""
        self._end = self._end or end
        if self._taken_back is not None:
            self._taken_back.set()
        self.scope.cancel()

    async def run(self, runner: ServerRunner[Any]) -> JSONRPCResponse | JSONRPCError | None:
        """Have it answered; return nothing if there is nobody any more to be answered."""
        message = self._message
        error: ErrorData | None = None
        with self.scope:
            try:
                result = await runner.on_request(self, message.method, message.params)
            except (MCPError, ValidationError) as raised:
                error = handler_exception_to_error_data(raised)
            else:
                return JSONRPCResponse(jsonrpc="2.0", id=message.id, result=result)
            finally:
                self.close()
        if error is None:
            error = instead(self._end or "closed")
        return error and JSONRPCError(jsonrpc="2.0", id=message.id, error=error)

    def close(self) -> None:
        """Let nobody reach the client by it any more."""
        self._is_closed = True

    async def send_raw_request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,  # noqa: ARG002 - as the SDK has it; nobody sets any
    ) -> dict[str, Any]:
        """Ask the client on the stream of its own request.

        Raises:
            MCPError: It refuses, or cannot be asked.
        """
        if self._questions is None or self._is_closed:
            raise NoBackChannelError(method)
        return await self._questions.ask(self._reply.tell, method, params)

    async def notify(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,  # noqa: ARG002 - as the SDK has it; nobody sets any
    ) -> None:
        """Tell the client something on the stream of its request, if it is not over."""
        if not self._is_closed:
            await self._reply.tell(notification(method, params))

    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Tell the client how far its request is, if it wants to know."""
        token = progress_token_from_params(self._message.params)
        if token is not None:
            told = {"progressToken": token, "progress": progress, "total": total}
            told["message"] = message
            given = {key: value for key, value in told.items() if value is not None}
            await self.notify("notifications/progress", given)


def instead(end: End) -> ErrorData | None:
    """Return what is answered to a request that has no answer, if somebody may hear it."""
    return _INSTEAD.get(end)


def notification(method: str, params: Mapping[str, Any] | None) -> bytes:
    """Return a notification as it is sent."""
    if params is None:
        return encoded(JSONRPCNotification(jsonrpc="2.0", method=method))
    return encoded(JSONRPCNotification(jsonrpc="2.0", method=method, params=dict(params)))


class Listening:
    """A request that asks for nothing but news."""

    def __init__(self) -> None:
        self._scope = anyio.CancelScope()

    def stop(self, _end: End) -> None:
        """Wait for none any more."""
        self._scope.cancel()

    async def run(self) -> None:
        """Wait until there is nobody to be told, or nobody to tell."""
        with self._scope:
            await anyio.sleep_forever()
