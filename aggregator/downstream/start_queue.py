"""Where servers are started from: a few at a time, since a start takes a processor.

Whoever starts has a place until it is ready. One that takes long is passed over after a while, as
it may hang and hang for ever: but the while is counted in what the machine has to give, so that
servers which only wait for a processor are not joined by more and more of them.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from math import inf

import anyio
import anyio.lowlevel

from aggregator.basics.signals import Signal

PLACES_EACH = 2
"""Servers that start side by side for each processor: some of a start is waiting for files."""
HOLD = 0.5
"""Seconds with a processor of its own after which one that starts is no longer waited for."""
LONGEST_HOLD = 10.0
"""Seconds after which it is not, whatever the machine has to give."""

Share = Callable[[int], float]
"""How much of a processor each of so many servers gets that start, more than 0 and at most 1."""

Urgency = Callable[[], int]
"""How soon it is to be a server's turn, the least first; may change while it waits."""


def unshared(_starting: int) -> float:
    """Give every server a processor of its own."""
    return 1.0


class Ticket:
    """One server's claim to be started; the earlier it was made, the sooner it is its turn."""

    def __init__(self, start_queue: "StartQueue", number: int, *, is_heavy: bool) -> None:
        self._start_queue = start_queue
        self.number = number
        self.is_heavy = is_heavy
        """Whether to start it takes a processor of this machine."""
        self._queued_at: float | None = None
        self._lost = 0.0

    @property
    def is_queued(self) -> bool:
        """Whether it waits for its turn."""
        return self._queued_at is not None

    @property
    def lost(self) -> float:
        """Seconds, in all, that its server was to start and could do nothing for it."""
        waiting = 0.0 if self._queued_at is None else anyio.current_time() - self._queued_at
        return self._lost + waiting

    def share(self) -> float:
        """Return how much of a processor it has while it starts."""
        return self._start_queue.share()

    def lose(self, seconds: float) -> None:
        """Take note of time in which its server had no processor."""
        self._lost += seconds

    def look(self) -> None:
        """Have it be seen that its turn may be sooner now."""
        self._start_queue.look()

    @asynccontextmanager
    async def taken(self, urgency: Urgency) -> AsyncGenerator["Start", None]:
        """Wait for its turn, and have it start for the length of the block."""
        self._queued_at = anyio.current_time()
        try:
            start = await self._start_queue.turn(self, urgency)
        finally:
            self._lost, self._queued_at = self.lost, None
            self._start_queue.look()
        try:
            yield start
        finally:
            start.end()


class Start:
    """A server that is being started."""

    def __init__(self, start_queue: "StartQueue") -> None:
        self._start_queue = start_queue
        self.since = anyio.current_time()

    def end(self) -> None:
        """Make way for the next: the server is ready, or will not be."""
        self._start_queue.leave(self)


class StartQueue:
    """The places that there are, who has one, and who waits for one."""

    def __init__(self, places: int, share: Share = unshared, *, is_open: bool = True) -> None:
        self._places = places
        self._share = share
        self._is_open = is_open
        self._tickets = 0
        self._starts: dict[Start, None] = {}
        self._queue: dict[Ticket, Urgency] = {}
        self._changed = Signal()

    def ticket(self, *, is_heavy: bool = True) -> Ticket:
        """Have one server more that may come to be started."""
        self._tickets += 1
        return Ticket(self, self._tickets, is_heavy=is_heavy)

    def open(self) -> None:
        """Start servers side by side from here on, and no longer one after the other."""
        self._is_open = True
        self.look()

    def look(self) -> None:
        """Have those who wait look again whose turn it is."""
        self._changed.send()

    def share(self) -> float:
        """Return how much of a processor each server has that starts."""
        return self._share(len(self._starts))

    async def turn(self, ticket: Ticket, urgency: Urgency) -> Start:
        """Wait until it is a server's turn to start."""
        self._queue[ticket] = urgency
        try:
            # Of those who come at the same time the first has to be told from the others.
            await anyio.lowlevel.checkpoint()
            while (until := self._until(ticket)) > anyio.current_time():
                with anyio.CancelScope(deadline=until):
                    await self._changed.wait()
        finally:
            del self._queue[ticket]
        start = Start(self)
        if ticket.is_heavy or not self._is_open:
            self._starts[start] = None
        return start

    def leave(self, start: Start) -> None:
        """Have a place be free, if it was one."""
        if self._starts.pop(start, self) is None:
            self.look()

    def _until(self, ticket: Ticket) -> float:
        """Return until when a server has to wait unless something changes; the past if not."""
        if self._is_open and not ticket.is_heavy:
            return -inf
        if min(self._queue, key=self._order) is not ticket:
            return inf
        places = self._places if self._is_open else 1
        if len(self._starts) < places:
            return -inf
        # The youngest that are as many as there are places stand in the way of the next.
        oldest = list(self._starts)[-places]
        return oldest.since + min(LONGEST_HOLD, HOLD / self.share())

    def _order(self, ticket: Ticket) -> tuple[int, int]:
        return self._queue[ticket](), ticket.number

    def __repr__(self) -> str:
        return f"<StartQueue {len(self._starts)} starting, {len(self._queue)} waiting>"
