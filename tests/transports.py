"""Transports in memory, for peers that speak on a pair of the SDK's streams."""

import math
from collections.abc import Iterable, Sequence
from contextvars import copy_context
from typing import Any, Self

import anyio
from mcp.shared.message import ClientMessageMetadata, ServerMessageMetadata, SessionMessage
from mcp_types import (
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCRequest,
    JSONRPCResponse,
)

from aggregator.basics.json import JsonObject
from aggregator.downstream.transport import (
    NO_HEADERS,
    Headers,
    Line,
    Received,
    Related,
    Remedy,
    Take,
    Tap,
    Transport,
)
from tests.patience import patience


class OneWay:
    """A transport on which everything comes one after another, and requests are waited for."""

    def put(self, _request: JSONRPCRequest, _headers: Headers, _take: Take, /) -> bool:
        return False


class StreamTransport:
    """A pair of the SDK's streams, `(read, write)`."""

    def __init__(
        self, streams: Any, end: str = "the connection closed", last_words: Sequence[Line] = ()
    ) -> None:
        self._streams = streams
        self._end = end
        self._last_words = last_words

    async def receive(self, _tap: Tap | None = None, /) -> Received:
        while True:
            try:
                item = await self._streams[0].receive()
            except anyio.ClosedResourceError:
                raise anyio.EndOfStream from None
            if isinstance(item, SessionMessage):
                return _received(item)

    def put(self, request: JSONRPCRequest, headers: Headers, _take: Take, /) -> bool:
        # The SDK's stream can only be awaited, the one inside of it cannot.
        inner = getattr(self._streams[1], "_inner", None)
        if inner is None:
            return False
        try:
            inner.send_nowait((copy_context(), _sent(request, headers)))
        except anyio.WouldBlock:
            return False
        return True

    async def send(self, message: JSONRPCMessage, headers: Headers = NO_HEADERS, /) -> None:
        await self._streams[1].send(_sent(message, headers))

    def describe_end(self) -> str:
        return self._end

    def is_stuck(self) -> bool:
        return False

    def is_barred(self) -> bool:
        return False

    def remedy(self) -> Remedy | None:
        return None

    def last_words(self) -> Sequence[Line]:
        return self._last_words

    noise_count = 0


class Severable(OneWay):
    """A transport that can be cut off."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._is_cut = False
        self._receiving = anyio.CancelScope()

    def cut(self) -> None:
        self._is_cut = True
        self._receiving.cancel()

    async def receive(self, _tap: Tap | None = None, /) -> Received:
        self._receiving = anyio.CancelScope()
        if not self._is_cut:
            with self._receiving:
                return await self._transport.receive(_tap)
        raise anyio.EndOfStream

    async def send(self, message: JSONRPCMessage, headers: Headers = NO_HEADERS, /) -> None:
        await self._transport.send(message, headers)

    def describe_end(self) -> str:
        return "it was cut off"

    def is_stuck(self) -> bool:
        return self._transport.is_stuck()

    def is_barred(self) -> bool:
        return self._transport.is_barred()

    def remedy(self) -> Remedy | None:
        return self._transport.remedy()

    def last_words(self) -> Sequence[Line]:
        return self._transport.last_words()

    @property
    def noise_count(self) -> int:
        return self._transport.noise_count


class Script(OneWay):
    """A transport on which a test says what comes, and sees what was sent."""

    def __init__(self) -> None:
        self._feed, self._inbox = anyio.create_memory_object_stream[Received](math.inf)
        self._outward, self._outbox = anyio.create_memory_object_stream[JSONRPCMessage](math.inf)
        self.headers: list[Headers] = []

    def come(self, *items: Received) -> None:
        """Have these come, one after another."""
        for item in items:
            self._feed.send_nowait(item)

    def end(self) -> None:
        """Have nothing more come."""
        self._feed.close()

    async def sent(self) -> JSONRPCMessage:
        """Return the next message that was sent."""
        with anyio.fail_after(patience()):
            return await self._outbox.receive()

    async def asked(self) -> JSONRPCRequest:
        """Return the next message that was sent, which must be a request."""
        message = await self.sent()
        assert isinstance(message, JSONRPCRequest)
        return message

    async def answer(self, result: dict[str, Any]) -> JSONRPCRequest:
        """Answer the next request that was sent, and return it."""
        request = await self.asked()
        self.come(JSONRPCResponse(jsonrpc="2.0", id=request.id, result=result))
        return request

    async def refuse(self, code: int, message: str, data: object = None) -> JSONRPCRequest:
        """Answer the next request with an error, and return it."""
        request = await self.asked()
        error = ErrorData(code=code, message=message, data=data)
        self.come(JSONRPCError(jsonrpc="2.0", id=request.id, error=error))
        return request

    async def receive(self, _tap: Tap | None = None, /) -> Received:
        return await self._inbox.receive()

    async def send(self, message: JSONRPCMessage, headers: Headers = NO_HEADERS, /) -> None:
        self.headers.append(headers)
        await self._outward.send(message)

    def describe_end(self) -> str:
        return "it said all it had to say"

    def is_stuck(self) -> bool:
        return False

    def is_barred(self) -> bool:
        return False

    def remedy(self) -> Remedy | None:
        return None

    def last_words(self) -> Sequence[Line]:
        return ()

    noise_count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        for stream in (self._feed, self._inbox, self._outward, self._outbox):
            stream.close()


class NoNews:
    """Nobody who listens to what a link tells."""

    def updated(self, uri: str) -> None: ...

    def logged(self, params: JsonObject) -> None: ...

    def completed(self, params: JsonObject) -> None: ...

    def changed(self, kinds: Iterable[str]) -> None: ...


def _sent(message: JSONRPCMessage, headers: Headers) -> SessionMessage:
    metadata = ClientMessageMetadata(headers=dict(headers)) if headers else None
    return SessionMessage(message, metadata=metadata)


def _received(item: SessionMessage) -> Received:
    metadata = item.metadata
    if isinstance(metadata, ServerMessageMetadata) and metadata.related_request_id is not None:
        return Related(item.message, metadata.related_request_id)
    return item.message
