"""Streamable HTTP towards a server: each message a request of its own, each answer its response.

One failed request costs one call. A session that has expired is renewed in place, since the
server says so before it has done anything; other calls in flight do not notice.
"""

import math
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from functools import partial

import anyio
import anyio.abc
from anyio.streams.memory import MemoryObjectReceiveStream
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp_types import JSONRPCMessage, JSONRPCNotification, JSONRPCRequest
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from aggregator.downstream.http.endpoint import Endpoint
from aggregator.downstream.http.exchange import EVENTS, JSON, Exchange
from aggregator.downstream.http.fault import SessionExpiredError, UndoneError, turned_away
from aggregator.downstream.http.session import Session
from aggregator.downstream.http.traffic import Traffic
from aggregator.downstream.link import Wire

Outbox = MemoryObjectReceiveStream[SessionMessage]


class Streamable:
    """Carries messages to one server and back."""

    def __init__(self, endpoint: Endpoint, traffic: Traffic, group: anyio.abc.TaskGroup) -> None:
        self._endpoint = endpoint
        self._traffic = traffic
        self._group = group
        self._is_modern = False
        self.session = Session(endpoint, traffic, group)

    async def run(self, outbox: Outbox) -> None:
        """Send what is to be sent until there is no more."""
        async for item in outbox:
            match item.message:
                case JSONRPCRequest() as request:
                    stamp = _stamp(item)
                    self._is_modern = _is_modern(stamp)
                    scope = self._traffic.begin(request)
                    self._group.start_soon(self._ask, request, stamp, scope)
                case JSONRPCNotification(method="notifications/cancelled") as message:
                    self._group.start_soon(self._withdraw, message)
                case JSONRPCNotification(method="notifications/initialized") as message:
                    # A server may refuse whatever overtakes this.
                    await self.session.tell(message)
                    self.session.listen()
                case message:
                    self._group.start_soon(self.session.tell, message)

    async def _ask(
        self, request: JSONRPCRequest, stamp: Mapping[str, str], scope: anyio.CancelScope
    ) -> None:
        with self._traffic.under_way(request, scope):
            try:
                await self._exchange(request, stamp)
                self._traffic.worked()
            except UndoneError as error:
                await self._traffic.fail(request, error)
                self._traffic.failed(error)

    async def _exchange(self, request: JSONRPCRequest, stamp: Mapping[str, str]) -> None:
        """Send a request; if only its session was too old, renew that and send it again."""
        generation = self.session.generation
        try:
            await self._send(request, stamp)
        except SessionExpiredError:
            await self.session.renew(generation)
            try:
                await self._send(request, stamp)
            except SessionExpiredError:
                raise turned_away("it ended a session that it had just begun") from None

    async def _send(self, request: JSONRPCRequest, stamp: Mapping[str, str]) -> None:
        sink = partial(self._traffic.deliver, related=request.id)
        exchange = Exchange(self._endpoint, request, sink)
        plain = {"accept": f"{JSON}, {EVENTS}", "content-type": JSON}
        if request.method == "initialize":
            await self._open_session(request, plain)
        elif _is_modern(stamp):
            await exchange.run({**plain, **stamp}, is_resumable=False)
        else:
            await exchange.run({**self.session.headers(), **stamp})

    async def _open_session(self, request: JSONRPCRequest, headers: Mapping[str, str]) -> None:
        async def note_first(message: JSONRPCMessage) -> None:
            # Whoever hears the answer goes on at once, in the session that it opens.
            self.session.note(exchange)
            await self._traffic.deliver(message)

        exchange = Exchange(self._endpoint, request, note_first)
        await exchange.run(headers)

    async def _withdraw(self, message: JSONRPCNotification) -> None:
        """Cancel a request in the way of its era: by saying so, or by hanging up."""
        if not self._is_modern:
            await self.session.tell(message)
        self._traffic.abandon((message.params or {}).get("requestId", ""))


@asynccontextmanager
async def open_streamable(endpoint: Endpoint) -> AsyncGenerator[Wire, None]:
    """Carry messages to and from an endpoint for the length of the block."""
    inbox, inward = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    # What is sent is taken at once. To wait for that on a busy day could cost a cancellation.
    outward, outbox = anyio.create_memory_object_stream[SessionMessage](math.inf)
    traffic = Traffic(inbox)
    with inbox, inward, outward, outbox:
        async with anyio.create_task_group() as group:
            streamable = Streamable(endpoint, traffic, group)
            group.start_soon(streamable.run, outbox)
            try:
                yield Wire(
                    (inward, outward),
                    describe_end=traffic.describe_end,
                    is_barred=traffic.is_barred,
                )
            finally:
                group.cancel_scope.cancel()
                await streamable.session.part()


def _stamp(item: SessionMessage) -> Mapping[str, str]:
    """Return the headers that a message was given on its way here."""
    metadata = item.metadata
    return (metadata.headers or {}) if isinstance(metadata, ClientMessageMetadata) else {}


def _is_modern(stamp: Mapping[str, str]) -> bool:
    return stamp.get("mcp-protocol-version") in MODERN_PROTOCOL_VERSIONS
