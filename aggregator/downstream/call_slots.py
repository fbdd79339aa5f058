"""The calls that a server works on at a time: a share for each client, and turns for who waits.

However many calls one client has under way, or hung, it leaves places for others: each session may
have three quarters of what the others leave, and all sessions of one client together seven eighths
of what other clients leave. The last place is the last all the same. Of those who wait, it is the
turn of the client that has the least, and of its sessions of the one that has.
"""

from collections import deque
from collections.abc import Hashable
from typing import NamedTuple

import anyio

SHARE, SHARE_TOGETHER = 3, 7
"""Places that one session, and all sessions of one client, may have for each that is left free."""

Party = Hashable
"""Whose share a call counts on; `None` is a client beside whom there can be no other."""


class Session(NamedTuple):
    """A party that may be one of several of the same client."""

    client: Hashable
    session: Hashable


def client_of(party: Party) -> Hashable:
    """Return the client behind a party, which most often is the party itself."""
    return party.client if isinstance(party, Session) else party


class Taken:
    """How much of something each party has, and each client."""

    def __init__(self) -> None:
        self._sessions: dict[Party, int] = {}
        self._clients: dict[Hashable, int] = {}
        self.total = 0
        """What all have together."""

    def of(self, party: Party) -> tuple[int, int]:
        """Return what the client of a party has, and the party itself."""
        return self._clients.get(client_of(party), 0), self._sessions.get(party, 0)

    def change(self, party: Party, by: int) -> None:
        """Have a party have more, or less."""
        self.total += by
        if party is None:
            # Nobody is beside it: its share is all there is.
            return
        for counts, key in ((self._sessions, party), (self._clients, client_of(party))):
            number = counts.get(key, 0) + by
            if number:
                counts[key] = number
            else:
                del counts[key]

    def fits_one_more(self, party: Party, limit: int) -> bool:
        """Say whether a party may have one more of so many."""
        free = limit - self.total - 1
        if free < 0 or party is None:
            return free >= 0
        together, own = self.of(party)
        # The first is everybody's: a server with few places is for whoever comes first.
        return not together or (together < SHARE_TOGETHER * free and own < SHARE * free)


class CallSlots:
    """The places of one server, and those who wait for one."""

    def __init__(self, limit: int, queue: int) -> None:
        self._limit = limit
        self._queue = queue
        self._held = Taken()
        self._queued = Taken()
        self._waiting: dict[Party, deque[anyio.Event]] = {}

    def resize(self, limit: int, queue: int) -> None:
        """Have another number of places; calls under way keep those that they have."""
        self._limit, self._queue = limit, queue
        self._fill()

    def turns_away(self, party: Party) -> bool:
        """Whether a client can neither have a place now nor wait for one."""
        return not (self.is_free(party) or self._queued.fits_one_more(party, self._queue))

    def is_free(self, party: Party) -> bool:
        """Whether there is a place for this client now."""
        return self._held.fits_one_more(party, self._limit)

    def take_free(self, party: Party) -> bool:
        """Have a place until it is given back, if one is free for this client."""
        is_free = self.is_free(party)
        if is_free:
            self._held.change(party, 1)
        return is_free

    async def take(self, party: Party) -> None:
        """Have a place as soon as it is this client's turn, until it is given back."""
        if not self.take_free(party):
            await self._turn(party)

    def give_back(self, party: Party) -> None:
        """Leave a place to whoever is next."""
        self._held.change(party, -1)
        if self._waiting:
            self._fill()

    async def _turn(self, party: Party) -> None:
        given = anyio.Event()
        self._waiting.setdefault(party, deque()).append(given)
        self._queued.change(party, 1)
        try:
            await given.wait()
        except anyio.get_cancelled_exc_class():
            if given.is_set():
                self.give_back(party)
            else:
                self._waiting[party].remove(given)
                self._queued.change(party, -1)
                self._forget_idle(party)
            raise

    def _fill(self) -> None:
        """Give free places to those whose turn it is."""
        while able := [party for party in self._waiting if self.is_free(party)]:
            # Of several with as little, whoever has waited the longest since the last turn.
            party = min(able, key=self._held.of)
            queue = self._waiting.pop(party)
            queue.popleft().set()
            self._queued.change(party, -1)
            self._held.change(party, 1)
            self._waiting[party] = queue
            self._forget_idle(party)

    def _forget_idle(self, party: Party) -> None:
        if not self._waiting[party]:
            del self._waiting[party]

    def __repr__(self) -> str:
        return (
            f"<CallSlots {self._held.total} of {self._limit} taken, {self._queued.total} waiting>"
        )
