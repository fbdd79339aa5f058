"""A link: an open connection to one server that has introduced itself.

It does without the SDK's `ClientSession`: a session validates and re-models every result, and
what a server answers must reach the client unchanged.
"""

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager, suppress
from secrets import token_hex
from typing import Any

import anyio
from mcp.shared.exceptions import MCPError

from aggregator.basics.eras import Era
from aggregator.basics.json import JsonObject
from aggregator.downstream.envelope import NOTHING_MIRRORED, Envelope, Mirrored, Params
from aggregator.downstream.exchange import Exchange, Waiting
from aggregator.downstream.incoming import KINDS, Answer, Incoming, LinkEvents
from aggregator.downstream.inflight import ClientCall
from aggregator.downstream.introduction import LinkLostError, Ourselves, introduce
from aggregator.downstream.peer import Peer
from aggregator.downstream.questions import without_questions
from aggregator.downstream.transport import ConnectionClosedError, Transport, UndeliveredError

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""The levels of log messages, the least first."""

RUN_BYTES = 4

NOTICE_PATIENCE = 1.0
"""Seconds that a server has to take a notice which it may as well miss."""
END_PATIENCE = 0.1
"""Seconds that a connection which seems to be over has to be really over."""


class Link:
    """An open connection to one server."""

    def __init__(
        self, exchange: Exchange, peer: Peer, incoming: Incoming, identity: JsonObject
    ) -> None:
        self._exchange = exchange
        self._in_flight = incoming.in_flight
        self._listening = incoming.listening
        self._envelope = Envelope(peer.protocol_version, identity)
        self._level: str | None = None
        self.peer = peer
        self.run = token_hex(RUN_BYTES)
        """What tells this connection from those before and after it."""
        self.fault = ""
        """Why the link is to be given up, if its owner or its caller decided so."""

    @property
    def transport(self) -> Transport:
        """What carries its messages."""
        return self._exchange.transport

    @property
    def ended(self) -> anyio.Event:
        """Set as soon as the connection is over, or is given up."""
        return self._exchange.closed

    def give_up(self, fault: str) -> None:
        """Have the link's owner close it, because it is of no use any more."""
        self.fault = fault
        self._exchange.close()

    async def request(
        self,
        method: str,
        params: Params = None,
        *,
        call: ClientCall | None = None,
        mirrored: Mirrored = NOTHING_MIRRORED,
    ) -> dict[str, Any]:
        """Send a request and return its result as it came.

        Raises:
            MCPError: The server answered with an error.
            UndeliveredError: The transport could not get an answer.
            NotSentError: The connection had closed before.
            ConnectionClosedError: The connection closed.
        """
        number = self._exchange.next_number()
        wrapped = self._envelope.wrap(params, number, call)
        headers = self._envelope.headers(method, wrapped, mirrored)
        if call is None:
            return await self._exchange.request(number, method, wrapped, headers)
        with self._in_flight.entered(number, call):
            try:
                result = await self._exchange.request(number, method, wrapped, headers)
            finally:
                call.end()
                if call.has_heard:
                    await call.deliver()
                await call.until_withdrawn()
        return result if self.peer.era == "modern" else without_questions(result)

    def next_number(self) -> int:
        """Return a number for a request that no other request has."""
        return self._exchange.next_number()

    def begin(
        self,
        number: int,
        method: str,
        params: Params,
        *,
        call: ClientCall,
        mirrored: Mirrored,
        waiting: Waiting,
    ) -> bool:
        """Send a request for a client, whose outcome somebody is told of and has it leave then.

        Say whether that can be done without waiting.
        """
        wrapped = self._envelope.wrap(params, number, call)
        headers = self._envelope.headers(method, wrapped, mirrored)
        is_sent = self._exchange.begin(number, method, wrapped, headers, waiting)
        if is_sent:
            self._in_flight.enter(number, call)
        return is_sent

    def leave(self, number: int, *, is_given_up: bool = False) -> None:
        """Have a request that was begun be over; one that is given up is taken back."""
        self._exchange.forget(number)
        self._in_flight.leave(number, is_given_up=is_given_up)
        if is_given_up:
            self._exchange.take_back(number)

    def lowers(self, level: str) -> bool:
        """Whether a server of the handshake era has to be asked to log from this level on."""
        if self.peer.era == "modern" or "logging" not in self.peer.capabilities:
            return False
        return self._level is None or LEVELS.index(level) < LEVELS.index(self._level)

    async def lower_level(self, level: str) -> None:
        """Have a server of the handshake era log at least from this level on."""
        if self.lowers(level):
            self._level = level
            # Whoever asks for more hears by itself that the connection has closed.
            with suppress(MCPError, UndeliveredError, ConnectionClosedError):
                await self.request("logging/setLevel", {"level": level})

    async def tell_roots_changed(self) -> None:
        """Tell a server of the handshake era, which alone can ask for them, of changed roots."""
        if self.peer.era == "handshake":
            with anyio.move_on_after(NOTICE_PATIENCE):
                await self._exchange.notify("notifications/roots/list_changed")

    async def listen(self) -> None:
        """Hold a modern server's stream of changes open for as long as the link lives."""

        async def open_stream(number: str, params: JsonObject) -> dict[str, Any]:
            method = "subscriptions/listen"
            wrapped = self._envelope.wrap(params, 0)
            headers = self._envelope.headers(method, wrapped)
            return await self._exchange.request(number, method, wrapped, headers)

        kinds = [kind for kind in KINDS if self.peer.announces(kind)]
        await self._listening.run(kinds, open_stream)

    async def want(self, uris: Iterable[str]) -> None:
        """Have a modern server tell also when these resources change, and no others."""
        await self._listening.want(uris)

    async def until_heard(self) -> None:
        """Wait, within bounds, until a modern server tells of its changes."""
        await self._listening.until_settled()

    async def until_ended(self) -> None:
        """Wait, within bounds, for the end that callers may hear of before the link does."""
        with anyio.move_on_after(END_PATIENCE):
            await self.ended.wait()

    def __repr__(self) -> str:
        state = "ended" if self.ended.is_set() else f"{len(self._in_flight)} in flight"
        return f"<Link {self.peer.name or 'unnamed'} {self.peer.era} {state}>"


@asynccontextmanager
async def open_link(
    transport: Transport,
    *,
    ours: Ourselves,
    era: Era | None,
    events: LinkEvents,
    answer: Answer,
    server: str = "",
) -> AsyncGenerator[Link, None]:
    """Open a link to the server behind a transport and keep it for the length of the block.

    `server` is what log lines call it.

    Raises:
        LinkLostError: The connection ended while something was asked in the block.
        MCPError: The server answered with an error.
        UndeliveredError: The transport could not get an answer.
    """
    exchange, incoming = Exchange(transport, server), Incoming(events, answer)
    async with anyio.create_task_group() as group:
        await group.start(exchange.run, incoming)
        try:
            peer = await introduce(exchange, ours, era)
            link = Link(exchange, peer, incoming, ours.identity)
            if peer.era == "modern":
                group.start_soon(link.listen)
                await link.until_heard()
            yield link
        except ConnectionClosedError as error:
            with anyio.move_on_after(END_PATIENCE):
                await exchange.closed.wait()
            raise LinkLostError(transport.describe_end()) from error
        finally:
            group.cancel_scope.cancel()
