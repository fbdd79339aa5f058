"""A session with a server of the handshake era: begun, renewed where it stands, and listened to."""

import random
from collections.abc import Callable, Mapping
from contextlib import aclosing
from http import HTTPStatus
from typing import Self

import anyio
import anyio.abc
from mcp_types import JSONRPCMessage, JSONRPCNotification, JSONRPCRequest

from aggregator.basics.frozen import frozen
from aggregator.basics.turns import in_turns
from aggregator.downstream.http.endpoint import Endpoint, Response
from aggregator.downstream.http.fault import turned_away
from aggregator.downstream.http.post import (
    EVENTS,
    JSON,
    RECONNECT_CEILING,
    RECONNECT_FLOOR,
    Place,
    Post,
    encode,
    kind,
)
from aggregator.downstream.http.traffic import Traffic
from aggregator.downstream.transport import UndeliveredError
from aggregator.jsonrpc.decoding import Noise, decoding

PARTING = 1.0
"""Seconds that ending a session may take when the link is closed."""
TELLING = 10.0
"""Seconds that a message without an answer may take to be accepted."""

INITIALIZED = JSONRPCNotification(jsonrpc="2.0", method="notifications/initialized")
CHANGED = JSONRPCNotification(jsonrpc="2.0", method="notifications/tools/list_changed")
"""What may have been said while nobody listened."""


@frozen
class Terms:
    """What a server wants to hear with each message of a session."""

    id: str | None = None
    version: str | None = None

    @classmethod
    def of(cls, post: Post) -> Self:
        """Return what the answer to `initialize` says of the session that it opens."""
        version = (post.result or {}).get("protocolVersion")
        return cls(post.session_id, version if isinstance(version, str) else None)

    def headers(self, *, accept: str = f"{JSON}, {EVENTS}") -> dict[str, str]:
        """Return what a message is sent with."""
        known = {"mcp-session-id": self.id, "mcp-protocol-version": self.version}
        return {
            "accept": accept,
            "content-type": JSON,
            **{name: value for name, value in known.items() if value is not None},
        }


class Session:
    """What a server knows us by, and the stream of what it announces."""

    def __init__(
        self,
        endpoint: Endpoint,
        traffic: Traffic,
        group: anyio.abc.TaskGroup,
        *,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.generation = 0
        """How often it was renewed."""
        self._endpoint = endpoint
        self._traffic = traffic
        self._group = group
        self._jitter = jitter
        self._terms = Terms()
        self._headers = self._terms.headers()
        self._opening: JSONRPCRequest | None = None
        self._renewing = anyio.Lock()
        self._listener = anyio.CancelScope()

    def headers(self) -> Mapping[str, str]:
        """Return what a message of this session is sent with."""
        return self._headers

    def _go_by(self, terms: Terms) -> None:
        self._terms, self._headers = terms, terms.headers()

    def note(self, post: Post) -> None:
        """Take over what the answer to `initialize` says of the session."""
        if post.result is not None:
            self._opening = post.request
            self._go_by(Terms.of(post))

    async def tell(self, message: JSONRPCMessage) -> None:
        """Send what has no answer; if that fails twice, there is nobody to tell."""
        await self._tell(message, self._terms)

    async def _tell(self, message: JSONRPCMessage, terms: Terms) -> None:
        with anyio.move_on_after(TELLING):
            # A connection that was kept may be closed by the time it is used.
            if not await self._try_to_tell(message, terms):
                await self._try_to_tell(message, terms)

    async def _try_to_tell(self, message: JSONRPCMessage, terms: Terms) -> bool:
        try:
            async with self._endpoint.send("POST", terms.headers(), encode(message)):
                return True
        except UndeliveredError:
            return False

    async def renew(self, generation: int) -> None:
        """Begin a session in place of an expired one, unless somebody just has.

        Raises:
            UndeliveredError: The server does not want to.
        """
        async with self._renewing:
            if self.generation == generation:
                await self._begin_anew()

    async def part(self) -> None:
        """End the session, if there is one and the server is there to hear of it."""
        if self._terms.id is None or self._traffic.is_lost:
            return
        with anyio.move_on_after(PARTING, shield=True):
            try:
                async with self._endpoint.send("DELETE", self.headers()):
                    return
            except UndeliveredError:
                return

    def listen(self) -> None:
        """Hold the stream of announcements open, instead of an earlier session's."""
        self._listener.cancel()
        self._listener = anyio.CancelScope()
        self._group.start_soon(self._listen, self._listener)

    async def _begin_anew(self) -> None:
        if self._opening is None:
            raise turned_away("it does not know its own session")
        terms = await self._reopen(self._opening)
        if terms.version != self._terms.version:
            error = turned_away("it came back with another version of the protocol")
            self._traffic.lose(error.undelivered)
            raise error
        await self._tell(INITIALIZED, terms)
        # Not before: in the old session the server says what is wrong, so that whoever calls
        # meanwhile waits for this, and whoever calls after this has failed tries it again.
        self._go_by(terms)
        self.generation += 1
        self.listen()
        await self._traffic.deliver(CHANGED)

    async def _reopen(self, opening: JSONRPCRequest) -> Terms:
        post = Post(self._endpoint, opening, _ignore)
        try:
            await post.run(Terms().headers())
        except UndeliveredError as error:
            reason = f"its session ended and no other could be had: {error}"
            unopened = error.undelivered._replace(reason=reason, may_have_run=False)
            raise UndeliveredError(unopened) from error
        if post.result is None:
            raise turned_away("its session ended and it refused another")
        return Terms.of(post)

    async def _listen(self, scope: anyio.CancelScope) -> None:
        with scope:
            place, pause, is_first = Place(), RECONNECT_FLOOR, True
            while True:
                began = anyio.current_time()
                if not await self._hear(place, is_first=is_first):
                    return
                if anyio.current_time() - began > RECONNECT_CEILING:
                    pause = RECONNECT_FLOOR
                await anyio.sleep(max(pause, place.pause) * (1 + self._jitter() / 4))
                pause, is_first = min(pause * 2, RECONNECT_CEILING), False

    async def _hear(self, place: Place, *, is_first: bool) -> bool:
        """Hand on announcements until their stream ends; return whether to open it again."""
        generation = self.generation
        headers = self._terms.headers(accept=EVENTS)
        if place.id:
            headers["last-event-id"] = place.id
        try:
            async with self._endpoint.send("GET", headers) as response:
                if not response.is_success or kind(response) != EVENTS:
                    return self._heed_refusal(response, generation)
                if not is_first:
                    await self._traffic.deliver(CHANGED)
                await self._hand_on(response, place)
        except UndeliveredError as error:
            if error.undelivered.is_unreachable:
                self._traffic.note_failure(error)
        return not self._traffic.is_lost

    async def _hand_on(self, response: Response, place: Place) -> None:
        async with aclosing(self._endpoint.events(response)) as events:
            async for event in events:
                place.note(event)
                steps = decoding(event.data, self._endpoint.max_message_bytes)
                for message in await in_turns(steps):
                    if not isinstance(message, Noise):
                        await self._traffic.deliver(message)

    def _heed_refusal(self, response: Response, generation: int) -> bool:
        """Act on a stream of announcements that was not given; return whether to ask again."""
        status = response.status_code
        if status == HTTPStatus.NOT_FOUND and self._terms.id is not None:
            self._group.start_soon(self._renew_unasked, generation)
            return False
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            self._traffic.note_failure(self._endpoint.refusal(response))
            return False
        # Most servers have none, and say so with 405.
        return status >= HTTPStatus.INTERNAL_SERVER_ERROR

    async def _renew_unasked(self, generation: int) -> None:
        try:
            await self.renew(generation)
        except UndeliveredError as error:
            self._traffic.lose(error.undelivered)


def _ignore(_message: Mapping[str, object] | JSONRPCMessage) -> None:
    """Drop what comes with an answer that is read by itself."""
