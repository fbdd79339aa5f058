"""The requests to one server that are on their way without a task that waits for them."""

from collections.abc import Callable
from typing import NamedTuple

import anyio
import anyio.abc
from mcp_types import JSONRPCRequest

from aggregator.basics.clock import running_clock
from aggregator.downstream.http.answer_ids import AnswerIds
from aggregator.downstream.http.endpoint import Asked, Endpoint
from aggregator.downstream.http.post import READING_OUT, encode
from aggregator.downstream.http.round_trip import Answer, KnownHead, RoundTrip
from aggregator.downstream.http.traffic import Traffic
from aggregator.downstream.transport import Headers, Related, Take, UndeliveredError


class Sending(NamedTuple):
    """A request, and who takes what comes back."""

    request: JSONRPCRequest
    headers: Headers
    take: Take
    generation: int
    """Of the session that it is sent in."""


GoOn = Callable[[Sending, Asked], None]
"""Waits for the answer to what was written to a connection."""


class RoundTrips:
    """Sends requests on connections that are kept, and hands on their answers."""

    def __init__(
        self,
        endpoint: Endpoint,
        traffic: Traffic,
        group: anyio.abc.TaskGroup,
        *,
        answer_ids: AnswerIds,
        go_on: GoOn,
    ) -> None:
        self._endpoint = endpoint
        self._traffic = traffic
        self._group = group
        self._answer_ids = answer_ids
        self._go_on = go_on
        self._under_way: dict[RoundTrip, Sending] = {}
        self._lasting: dict[RoundTrip, float] = {}
        """Those that are answered, and when the rest of their response is not waited for."""
        self._is_watched = False
        self._known_head = KnownHead()
        self._clock = running_clock()

    def begin(self, sending: Sending, headers: Headers) -> bool:
        """Send a request, if nothing has to be waited for before its answer."""
        try:
            content = encode(sending.request)
        except UndeliveredError:
            # Who sends it in the usual way says so.
            return False
        asked = self._endpoint.put(headers, content)
        if asked is None:
            return False
        trip = RoundTrip(asked, self._endpoint.max_message_bytes, self, self._known_head)
        self._under_way[trip] = sending
        self._traffic.enter(sending.request, trip)
        trip.begin()
        return True

    def wants(self, trip: RoundTrip, answer: Answer) -> bool:
        """Whether an answer is to what was asked; if not, whoever reads it next says so."""
        return not self._answer_ids.is_anothers(answer.id, self._under_way[trip].request.id)

    def arrived(self, trip: RoundTrip, answer: Answer) -> None:
        """Hand on an answer; a response that is not over has a moment to end."""
        request, _, take, _ = self._under_way.pop(trip)
        # A response answers the request that it is a response to, whatever it says.
        if answer.id != request.id:
            answer.id = request.id
        self._traffic.note_answer()
        self._traffic.leave(request)
        try:
            take(Related(answer, request.id))
        finally:
            self._read_out(trip)

    def _read_out(self, trip: RoundTrip) -> None:
        """Be done with a connection at the end of a response, which has a moment to come."""
        if trip.is_over:
            self.ended(trip)
            return
        self._lasting[trip] = self._clock() + READING_OUT
        if not self._is_watched:
            self._is_watched = True
            self._group.start_soon(self._end_lasting)

    def stranded(self, trip: RoundTrip) -> None:
        """Leave a response to a task that waits for all of it."""
        self._go_on(self._under_way.pop(trip), trip.asked)

    def ended(self, trip: RoundTrip) -> None:
        """Be done with a connection of which nothing more is wanted."""
        self._lasting.pop(trip, None)
        if (sending := self._under_way.pop(trip, None)) is not None:
            self._traffic.leave(sending.request)
        if not self._endpoint.keep(trip.asked.connection):
            trip.stop()
            self._group.start_soon(self._endpoint.let_go, trip.asked.connection)

    def close(self) -> None:
        """Hear of none of them any more."""
        for trip in (*self._under_way, *self._lasting):
            trip.stop()

    async def _end_lasting(self) -> None:
        """Hang up on those that do not end.

        Nearly all do at once, so it is looked after a while: whatever comes meanwhile needs no
        other task.
        """
        while self._is_watched:
            await anyio.sleep(READING_OUT)
            now = self._clock()
            for trip in [each for each, until in self._lasting.items() if until <= now]:
                trip.cancel()
            self._is_watched = bool(self._lasting)
