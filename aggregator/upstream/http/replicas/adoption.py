"""Sessions that another replica has opened, or will go on with."""

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

import anyio

from aggregator.upstream.http.replicas.mail import Mail, Recalled
from aggregator.upstream.http.replicas.passes import LIFETIME, read_pass, write_pass
from aggregator.upstream.http.session import Introduction, Place
from aggregator.upstream.http.sessions import Owner
from aggregator.upstream.replica import Replica
from aggregator.upstream.seal import Cipher

MAX_ENDED = 10_000
"""Sessions that are remembered to have been ended."""


class Adopted(NamedTuple):
    """What a session is opened here by."""

    introduction: Introduction
    place: Place


class Adoption:
    """Knows by the id of a session what it was opened with, and which were ended here."""

    def __init__(
        self,
        replica: Replica,
        cipher: Cipher,
        mail: Mail | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._mail = mail
        self._replica = replica
        self._cipher = cipher
        self._clock = clock
        self._ended: dict[str, float] = {}
        self._turns: dict[str, anyio.Event] = {}

    @property
    def place(self) -> Place:
        """Where a session is that is opened here first."""
        return Place(self._replica.name, self._replica.name, self._mail)

    def key(self, introduction: Introduction, owner: Owner) -> str:
        """Return the id of a new session."""
        return write_pass(introduction, owner, self._replica, self._cipher, self._clock)

    async def find(self, key: str, owner: Owner) -> Adopted | None:
        """Return what a session of this owner is opened by, if it can be."""
        found = None if key in self._ended else read_pass(key, self._cipher, self._clock)
        if found is None or found.owner != Owner(owner.profile, owner.grant):
            return None
        recalled = Recalled()
        if self._mail is not None:
            (recalled,) = await self._mail.recall(key)
        # It may have been ended while we asked.
        if recalled.has_ended or key in self._ended:
            return None
        place = Place(self._replica.name, found.home, self._mail, recalled.loaded)
        return Adopted(found.introduction, place)

    def end(self, key: str) -> None:
        """Remember that a session was ended, for as long as its id would open it again."""
        while len(self._ended) >= MAX_ENDED or self._has_stale():
            del self._ended[next(iter(self._ended))]
        self._ended[key] = self._clock() + LIFETIME

    def is_under_way(self, key: str) -> bool:
        """Whether somebody opens this session now."""
        return key in self._turns

    @asynccontextmanager
    async def turn(self, key: str) -> AsyncGenerator[None, None]:
        """Have nobody else open this session for the length of the block."""
        while (other := self._turns.get(key)) is not None:
            await other.wait()
        done = self._turns[key] = anyio.Event()
        try:
            yield
        finally:
            del self._turns[key]
            done.set()

    def _has_stale(self) -> bool:
        return bool(self._ended) and next(iter(self._ended.values())) < self._clock()
