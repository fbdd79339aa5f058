"""Streamable HTTP towards a server: each message a request of its own, each answer its response.

One failed request costs one call. A session that has expired is renewed in place, since the
server says so before it has done anything; other calls in flight do not notice.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial

import anyio
import anyio.abc
from mcp_types import JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, RequestId

from aggregator.basics.eras import is_modern
from aggregator.downstream.http.answer_ids import AnswerIds
from aggregator.downstream.http.background import Background
from aggregator.downstream.http.endpoint import Asked, Endpoint
from aggregator.downstream.http.fault import SessionExpiredError, turned_away
from aggregator.downstream.http.post import EVENTS, JSON, Post, Sink
from aggregator.downstream.http.round_trips import RoundTrips, Sending
from aggregator.downstream.http.session import Session
from aggregator.downstream.http.traffic import Traffic
from aggregator.downstream.transport import (
    NO_HEADERS,
    Headers,
    Related,
    Take,
    Transport,
    UndeliveredError,
)

CALL = "tools/call"
"""What is asked most."""

PLAIN: Headers = {"accept": f"{JSON}, {EVENTS}", "content-type": JSON}
"""What every message is sent with."""


class Streamable(Traffic):
    """Carries messages to one server and back."""

    def __init__(self, endpoint: Endpoint, group: anyio.abc.TaskGroup) -> None:
        super().__init__()
        self._endpoint = endpoint
        self._group = group
        self._is_modern = False
        self._background = Background(group)
        self._session = Session(endpoint, self, group)
        self._answer_ids = AnswerIds()
        self._round_trips = RoundTrips(
            endpoint, self, group, answer_ids=self._answer_ids, go_on=self._go_on
        )

    async def send(self, message: JSONRPCMessage, _headers: Headers = NO_HEADERS) -> None:
        """Send what has no answer; only what the next one must not overtake is waited for."""
        match message:
            case JSONRPCNotification(method="notifications/cancelled"):
                self.withdraw((message.params or {}).get("requestId", ""))
                self._group.start_soon(self._withdraw, message)
            case JSONRPCNotification(method="notifications/initialized"):
                # A server may refuse whatever overtakes this.
                await self._session.tell(message)
                self._session.listen()
            case _:
                self._background.run(partial(self._session.tell, message))

    async def part(self) -> None:
        """Tell the server that its session is over."""
        await self._session.part()

    def stop(self) -> None:
        """Hear of no answer any more."""
        self._round_trips.close()

    def put(self, request: JSONRPCRequest, headers: Headers, take: Take) -> bool:
        """Begin to send a request; what comes back on its own connection is taken at once."""
        self.check_open()
        self._is_modern = _is_modern(headers)
        sending = Sending(request, headers, take, self._session.generation)
        if request.method != CALL or not self._round_trips.begin(sending, self._headers(headers)):
            self._group.start_soon(self._ask, sending, self.begin(request))
        return True

    def _go_on(self, sending: Sending, asked: Asked) -> None:
        """Wait for the answer to what was written to a connection already."""
        self._group.start_soon(
            self._ask, sending, self.begin(sending.request, is_counted=True), asked
        )

    async def _ask(
        self, sending: Sending, scope: anyio.CancelScope, asked: Asked | None = None
    ) -> None:
        request = sending.request
        with self.under_way(request, scope):
            try:
                await self._send_in_session(sending, asked)
                self.note_answer()
            except UndeliveredError as error:
                if not self.is_withdrawn(request):
                    sending.take(error.undelivered._replace(request=request.id))
                    self.note_failure(error)

    async def _send_in_session(self, sending: Sending, asked: Asked | None) -> None:
        """Send a request; if only its session was too old, renew that and send it again."""
        generation = self._session.generation if asked is None else sending.generation
        try:
            await self._send(sending, asked)
        except SessionExpiredError:
            await self._session.renew(generation)
            try:
                await self._send(sending)
            except SessionExpiredError:
                raise turned_away("it ended a session that it had just begun") from None

    async def _send(self, sending: Sending, asked: Asked | None = None) -> None:
        request, headers, take = sending.request, sending.headers, sending.take
        if request.method == "initialize":
            await self._open_session(request, take)
            return
        post = Post(self._endpoint, request, _relating(take, request.id), self._answer_ids)
        resumes = not self._is_modern
        await post.run(self._headers(headers), is_resumable=resumes, asked=asked)

    def _headers(self, headers: Headers) -> Headers:
        """Return all that a message is sent with."""
        return {**(PLAIN if self._is_modern else self._session.headers()), **headers}

    async def _open_session(self, request: JSONRPCRequest, take: Take) -> None:
        def note_first(message: JSONRPCMessage) -> None:
            # Whoever hears the answer goes on at once, in the session that it opens.
            self._session.note(post)
            take(message)

        post = Post(self._endpoint, request, note_first)
        await post.run(PLAIN)

    async def _withdraw(self, message: JSONRPCNotification) -> None:
        """Cancel a request in the way of its era: by saying so, or by hanging up."""
        if not self._is_modern:
            await self._session.tell(message)
        self.abandon((message.params or {}).get("requestId", ""))


@asynccontextmanager
async def open_streamable(endpoint: Endpoint) -> AsyncGenerator[Transport, None]:
    """Carry messages to and from an endpoint for the length of the block."""
    async with anyio.create_task_group() as group:
        group.start_soon(endpoint.tend)
        with Streamable(endpoint, group) as streamable:
            try:
                yield streamable
            finally:
                group.cancel_scope.cancel()
                streamable.stop()
                await streamable.part()


def _relating(take: Take, number: RequestId) -> Sink:
    """Return what hands on messages as those that came on the connection of a request."""
    return lambda message: take(Related(message, number))


def _is_modern(headers: Headers) -> bool:
    return is_modern(headers.get("mcp-protocol-version"))
