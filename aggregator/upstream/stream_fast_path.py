"""The calls of a client on a stream that need no more than to be sent on, taken out of it.

All else of the stream goes to the SDK, the first request among it: who asks is known from that.
"""

from typing import Any, Protocol

import anyio
import anyio.abc
import mcp_types as types
from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.message import SessionMessage

from aggregator.jsonrpc.pipes import Tap
from aggregator.jsonrpc.sdk_streams import Readable
from aggregator.upstream.fast_path import CALL, FastCall, FastPath, Known
from aggregator.upstream.request import Request

CANCELLED = "notifications/cancelled"

CLOSED = types.ErrorData(code=types.CONNECTION_CLOSED, message="Connection closed")
"""What is answered to calls that are under way when a stream ends."""


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


class StreamFastPath:
    """Takes calls out of one stream."""

    def __init__(
        self, fast_path: FastPath, *, answers: Answers, group: anyio.abc.TaskGroup
    ) -> None:
        self._fast_path = fast_path
        self._answers = answers
        self._group = group
        self._known: Known | None = None
        self._under_way: dict[_OnStream, None] = {}
        self._latest: dict[types.RequestId, _OnStream] = {}
        """Which call a client means by an id: of several, the last."""

    def meet(self, request: Request) -> None:
        """Take note of who asks, from a request that goes the usual way."""
        self._known = Known.by(request)

    def take(self, message: types.JSONRPCMessage) -> bool:
        """Send a message on if it is a call of which nothing but the answer is waited for."""
        if not isinstance(message, types.JSONRPCRequest) or message.method != CALL:
            self._heed(message)
            return False
        if self._known is None or self._answers.is_full:
            return False
        fast_call = _OnStream(self, message.id, self._fast_path, self._group)
        if not self._fast_path.begin(fast_call, message.params or {}, self._known):
            return False
        self._under_way[fast_call] = None
        self._latest[coerce_request_id(message.id)] = fast_call
        return True

    def close(self) -> None:
        """Give up what is under way, since the stream has ended."""
        for fast_call in tuple(self._under_way):
            fast_call.give_up()
            fast_call.refused(CLOSED)

    def answer(
        self, fast_call: "_OnStream", message: types.JSONRPCResponse | types.JSONRPCError
    ) -> None:
        """Answer a call, which is over with that."""
        self._forget(fast_call)
        self._answers.answer(message)

    def _heed(self, message: types.JSONRPCMessage) -> None:
        """See what a message that is no call means for those that are."""
        if isinstance(message, types.JSONRPCRequest):
            if message.method == "initialize":
                self._known = None
        elif isinstance(message, types.JSONRPCNotification):
            if message.method == CANCELLED:
                self._cancel((message.params or {}).get("requestId"))
            else:
                # What comes after it is not to overtake it.
                self._known = None

    def _cancel(self, identifier: object) -> None:
        """Give up a call that its client does not want any more, and say nothing of it."""
        if not isinstance(identifier, str | int):
            return
        if (fast_call := self._latest.get(coerce_request_id(identifier))) is not None:
            self._forget(fast_call)
            fast_call.give_up()

    def _forget(self, fast_call: "_OnStream") -> None:
        self._under_way.pop(fast_call, None)
        identifier = coerce_request_id(fast_call.id)
        if self._latest.get(identifier) is fast_call:
            del self._latest[identifier]


class _OnStream(FastCall):
    """A call that is answered on a stream."""

    def __init__(
        self,
        stream: StreamFastPath,
        identifier: types.RequestId,
        fast_path: FastPath,
        group: anyio.abc.TaskGroup,
    ) -> None:
        super().__init__(fast_path, group)
        self.id = identifier
        self._stream = stream

    def answered(self, result: dict[str, Any]) -> None:
        """Give its client the result."""
        message = types.JSONRPCResponse(jsonrpc="2.0", id=self.id, result=result)
        self._stream.answer(self, message)

    def refused(self, error: types.ErrorData) -> None:
        """Tell its client what became of it instead."""
        message = types.JSONRPCError(jsonrpc="2.0", id=self.id, error=error)
        self._stream.answer(self, message)


class Rest(Readable):
    """What is left of a stream for the SDK."""

    def __init__(self, source: Source, stream: StreamFastPath) -> None:
        self._source = source
        self._stream = stream

    async def receive(self) -> SessionMessage | Exception:
        """Return what comes next and is not taken.

        Raises:
            EndOfStream: Nothing more will come.
        """
        while True:
            item = await self._source.receive(self._stream.take)
            if not isinstance(item, SessionMessage) or not self._stream.take(item.message):
                return item

    async def aclose(self) -> None:
        """Read no more."""
        await self._source.aclose()
