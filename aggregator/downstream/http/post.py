"""One request to a server and what comes back: a body, a stream, or a refusal."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from http import HTTPStatus

import anyio
from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCRequest, JSONRPCResponse

from aggregator.basics.turns import in_turns
from aggregator.downstream.http.answer_ids import AnswerIds
from aggregator.downstream.http.endpoint import Asked, Endpoint, Response
from aggregator.downstream.http.fault import (
    SessionExpiredError,
    StrayError,
    broken,
    turned_away,
)
from aggregator.downstream.http.sse import Event
from aggregator.downstream.transport import Undelivered, UndeliveredError
from aggregator.jsonrpc.decoding import Noise, decoding
from aggregator.jsonrpc.encoding import encoded

JSON = "application/json"
EVENTS = "text/event-stream"

RECONNECT_FLOOR = 1.0
"""Seconds before a stream is opened again at the least, whatever the server says."""
RECONNECT_CEILING = 60.0
"""Seconds between two attempts at the most."""
READING_OUT = 0.25
"""Seconds that a stream has to end after its answer."""
RESUMPTIONS = 5
"""Times in a row that an interrupted answer is asked for again without getting any further."""

MAX_PLACE_CHARACTERS = 1024
"""Characters of the name of a place that are sent back."""

Sink = Callable[[JSONRPCMessage], None]
"""Takes the messages that come back."""


@dataclass(slots=True)
class Place:
    """How far a stream has been read, so that it can be taken up again."""

    id: str = ""
    retry: float = 0.0

    def note(self, event: Event) -> None:
        """Move on to an event; where its name cannot be sent back, there is no way back to it."""
        if event.id:
            self.id = event.id if _can_be_sent(event.id) else ""
        if event.retry is not None:
            self.retry = event.retry / 1000

    @property
    def pause(self) -> float:
        """Seconds to wait before the stream is taken up again."""
        return min(max(self.retry, RECONNECT_FLOOR), RECONNECT_CEILING)


class Post:
    """A request that is sent once, and read to its answer."""

    def __init__(
        self,
        endpoint: Endpoint,
        request: JSONRPCRequest,
        sink: Sink,
        answer_ids: AnswerIds | None = None,
    ) -> None:
        self.request = request
        self._answer_ids = answer_ids or AnswerIds()
        self.result: Mapping[str, object] | None = None
        """What the server answered, unless that was an error."""
        self.session_id: str | None = None
        """What the server says it will know us by."""
        self._endpoint = endpoint
        self._sink = sink
        self._place = Place()

    async def run(
        self,
        headers: Mapping[str, str],
        *,
        is_resumable: bool = True,
        asked: Asked | None = None,
    ) -> None:
        """Send the request, if it is not, and hand on what comes back, up to the answer.

        Raises:
            SessionExpiredError: The server does not know our session.
            UndeliveredError: There was no answer.
        """
        content = encode(self.request)
        async with self._endpoint.send("POST", headers, content, asked=asked) as response:
            self.session_id = response.headers.get("mcp-session-id")
            if response.status_code == HTTPStatus.ACCEPTED:
                raise broken("it took the request but promised no answer (202)")
            if not response.is_success:
                self._sink(await self._refusal(response, headers))
                return
            if kind(response) != EVENTS:
                await self._read_whole(response)
                return
            ended = await self._read_stream(response)
        if ended is not None:
            await self._resume(headers, ended, is_resumable=is_resumable)

    async def _refusal(self, response: Response, headers: Mapping[str, str]) -> JSONRPCError:
        """Return the server's own error, from a response that is not success."""
        error = await self._error_in(response)
        if "mcp-session-id" in headers and _means_expired(response.status_code, error):
            raise SessionExpiredError
        fault = self._endpoint.refusal(response)
        if error is None or fault.undelivered.is_barred or fault.undelivered.retry_after:
            raise fault
        return JSONRPCError(jsonrpc="2.0", id=self.request.id, error=error.error)

    async def _error_in(self, response: Response) -> JSONRPCError | None:
        if kind(response) != JSON or "content-encoding" in response.headers:
            return None
        body = await self._endpoint.read(response)
        found = await in_turns(decoding(body, self._endpoint.max_message_bytes))
        return next((each for each in found if isinstance(each, JSONRPCError)), None)

    async def _read_whole(self, response: Response) -> None:
        if not await self._take(await self._endpoint.read(response)):
            raise broken("what it sent is no answer to the request")

    async def _take(self, data: bytes) -> bool:
        """Hand on what some data says; return whether the answer was among it."""
        answered = False
        for message in await in_turns(decoding(data, self._endpoint.max_message_bytes)):
            if isinstance(message, JSONRPCResponse | JSONRPCError):
                if self._answer_ids.is_anothers(message.id, self.request.id):
                    raise StrayError(Undelivered("it answered another request than it was sent"))
                # A response answers the request that it is a response to, whatever it says.
                message.id = self.request.id
                self.result = message.result if isinstance(message, JSONRPCResponse) else None
                answered = True
            if not isinstance(message, Noise):
                self._sink(message)
        return answered

    async def _read_stream(self, response: Response) -> UndeliveredError | None:
        """Read events up to the answer; return why it did not come."""
        try:
            async with aclosing(self._endpoint.events(response)) as events:
                async for event in events:
                    self._place.note(event)
                    if event.data and await self._take(event.data):
                        await _read_out(events)
                        return None
        except StrayError:
            raise
        except UndeliveredError as error:
            return error
        return broken("it ended the connection without an answer")

    async def _resume(
        self, headers: Mapping[str, str], ended: UndeliveredError, *, is_resumable: bool
    ) -> None:
        """Take up an interrupted stream where it was left, if the server keeps such places."""
        fruitless = 0
        reason: UndeliveredError | None = ended
        while reason is not None:
            before = self._place.id
            if not (before and is_resumable) or fruitless >= RESUMPTIONS:
                raise reason
            await anyio.sleep(self._place.pause)
            reason = await self._resume_once(headers, reason)
            fruitless = fruitless + 1 if self._place.id == before else 0

    async def _resume_once(
        self, headers: Mapping[str, str], reason: UndeliveredError
    ) -> UndeliveredError | None:
        again = {**headers, "accept": EVENTS, "last-event-id": self._place.id}
        try:
            async with self._endpoint.send("GET", again) as response:
                if response.is_success and kind(response) == EVENTS:
                    return await self._read_stream(response)
                self._place.id = ""
                return reason
        except UndeliveredError as error:
            # Of the request itself that says nothing: it was taken before its stream broke.
            return UndeliveredError(error.undelivered._replace(may_have_run=True))


def _can_be_sent(place: str) -> bool:
    return len(place) <= MAX_PLACE_CHARACTERS and place.isascii() and place.isprintable()


async def _read_out(events: AsyncIterator[Event]) -> None:
    """Wait a moment for the end of a stream that has said all: only then its connection is kept."""
    # What breaks behind an answer takes nothing back.
    with anyio.move_on_after(READING_OUT), suppress(UndeliveredError):
        async for _ in events:
            pass


def encode(message: JSONRPCMessage) -> bytes:
    """Return a message as it is sent.

    Raises:
        UndeliveredError: It holds what JSON cannot.
    """
    try:
        return encoded(message)
    except ValueError as error:
        raise turned_away("the request cannot be written as JSON") from error


def kind(response: Response) -> str:
    """Return the media type of a response."""
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


def _means_expired(status: int, error: JSONRPCError | None) -> bool:
    """Whether a refusal is about the session; some servers answer 400 where 404 is meant."""
    if status == HTTPStatus.BAD_REQUEST:
        return error is not None and "session" in error.error.message.lower()
    return status == HTTPStatus.NOT_FOUND
