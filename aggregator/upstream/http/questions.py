"""What a client of the handshake era is asked, and what it answers with a request of its own."""

import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp_types import (
    CONNECTION_CLOSED,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)

from aggregator.jsonrpc.encoding import encoded

FAREWELL_PATIENCE = 1.0
"""Seconds for a client to be told that a question is taken back."""

Tell = Callable[[bytes], Awaitable[bool]]
"""Sends a message, and says whether it was not too late for it."""

_CLOSED = ErrorData(code=CONNECTION_CLOSED, message="Connection closed")


class _Question:
    def __init__(self) -> None:
        self.answered = anyio.Event()
        self.outcome: dict[str, Any] | ErrorData = _CLOSED

    def answer(self, message: JSONRPCResponse | JSONRPCError) -> None:
        if not self.answered.is_set():
            is_answer = isinstance(message, JSONRPCResponse)
            self.outcome = message.result if is_answer else message.error
            self.answered.set()


class Questions:
    """The questions to one client that it has not answered yet."""

    def __init__(self, replica: str = "") -> None:
        self._replica = replica
        """Where there are several, who asks: the answer may come to another."""
        self._mark = secrets.token_hex(4)
        """Tells its questions from those that it asked before it was started again, whose answers
        may be on their way, or told once more by whoever has the store."""
        self._last = 0
        self._open: dict[RequestId, _Question] = {}

    async def ask(
        self, tell: Tell, method: str, params: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """Send a question, and return the answer as it came.

        Raises:
            MCPError: The client refuses, or will not answer any more.
        """
        self._last += 1
        number: RequestId = self._last
        if self._replica:
            number = f"{self._last}-{self._mark}@{self._replica}"
        question = self._open[number] = _Question()
        is_asked = False
        try:
            is_asked = await tell(_asked(number, method, params))
            if not is_asked:
                raise NoBackChannelError(method)
            await question.answered.wait()
        except anyio.get_cancelled_exc_class():
            if is_asked:
                with anyio.move_on_after(FAREWELL_PATIENCE, shield=True):
                    await tell(_taken_back(number))
            raise
        finally:
            del self._open[number]
        if isinstance(question.outcome, ErrorData):
            raise MCPError.from_error_data(question.outcome)
        return question.outcome

    def asker(self, message: JSONRPCResponse | JSONRPCError) -> str | None:
        """Return which other replica has asked what a message answers, if one has."""
        if not self._replica or not isinstance(message.id, str):
            return None
        asker = message.id.partition("@")[2]
        return asker if asker and asker != self._replica else None

    def answer(self, message: JSONRPCResponse | JSONRPCError) -> None:
        """Take the client's answer to one of them; what answers none is nobody's business."""
        number = None if message.id is None else coerce_request_id(message.id)
        question = None if number is None else self._open.get(number)
        if question is not None:
            question.answer(message)

    def close(self) -> None:
        """Let nobody wait for an answer any more."""
        for question in self._open.values():
            question.answered.set()


def _asked(number: RequestId, method: str, params: Mapping[str, Any] | None) -> bytes:
    if params is None:
        return encoded(JSONRPCRequest(jsonrpc="2.0", id=number, method=method))
    return encoded(JSONRPCRequest(jsonrpc="2.0", id=number, method=method, params=dict(params)))


def _taken_back(number: RequestId) -> bytes:
    params = {"requestId": number, "reason": "caller cancelled"}
    return encoded(
        JSONRPCNotification(jsonrpc="2.0", method="notifications/cancelled", params=params)
    )
