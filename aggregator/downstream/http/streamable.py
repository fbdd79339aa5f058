"""Streamable HTTP towards a server: each message a request of its own, each answer its response.

One failed request costs one call. A session that has expired is renewed in place, since the
server says so before it has done anything; other calls in flight do not notice.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial

import anyio
import anyio.abc
from mcp_types import JSONRPCMessage, JSONRPCNotification, JSONRPCRequest

from aggregator.basics.eras import is_modern
from aggregator.downstream.http.endpoint import Endpoint
from aggregator.downstream.http.errands import Errands
from aggregator.downstream.http.fault import SessionExpiredError, turned_away
from aggregator.downstream.http.post import EVENTS, JSON, Post
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

PLAIN: Headers = {"accept": f"{JSON}, {EVENTS}", "content-type": JSON}
"""What every message is sent with."""


class Streamable(Traffic):
    """Carries messages to one server and back."""

    def __init__(self, endpoint: Endpoint, group: anyio.abc.TaskGroup) -> None:
        super().__init__()
        self._endpoint = endpoint
        self._group = group
        self._is_modern = False
        self._errands = Errands(group)
        self._session = Session(endpoint, self, group)

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
                self._errands.run(partial(self._session.tell, message))

    async def part(self) -> None:
        """Tell the server that its session is over."""
        await self._session.part()

    def put(self, request: JSONRPCRequest, headers: Headers, take: Take) -> bool:
        """Begin to send a request; what comes back on its own connection is taken at once."""
        self._is_modern = _is_modern(headers)
        self._group.start_soon(self._ask, request, headers, take, self.begin(request))
        return True

    async def _ask(
        self, request: JSONRPCRequest, headers: Headers, take: Take, scope: anyio.CancelScope
    ) -> None:
        with self.under_way(request, scope):
            try:
                await self._send_in_session(request, headers, take)
                self.note_answer()
            except UndeliveredError as error:
                if not self.is_withdrawn(request):
                    take(error.undelivered._replace(request=request.id))
                    self.note_failure(error)

    async def _send_in_session(self, request: JSONRPCRequest, headers: Headers, take: Take) -> None:
        """Send a request; if only its session was too old, renew that and send it again."""
        generation = self._session.generation
        try:
            await self._send(request, headers, take)
        except SessionExpiredError:
            await self._session.renew(generation)
            try:
                await self._send(request, headers, take)
            except SessionExpiredError:
                raise turned_away("it ended a session that it had just begun") from None

    async def _send(self, request: JSONRPCRequest, headers: Headers, take: Take) -> None:
        if request.method == "initialize":
            await self._open_session(request, take)
            return
        number = request.id
        post = Post(self._endpoint, request, lambda message: take(Related(message, number)))
        if self._is_modern:
            await post.run({**PLAIN, **headers}, is_resumable=False)
        else:
            await post.run({**self._session.headers(), **headers})

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
        with Streamable(endpoint, group) as streamable:
            try:
                yield streamable
            finally:
                group.cancel_scope.cancel()
                await streamable.part()


def _is_modern(headers: Headers) -> bool:
    return is_modern(headers.get("mcp-protocol-version"))
