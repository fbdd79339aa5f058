"""Which requests are under way: they can be waited for, kept from silence, and ended."""

from collections.abc import Collection, Generator
from contextlib import contextmanager

import anyio

from aggregator.basics.shutdown_notice import ShutdownNotice
from aggregator.basics.signals import Signal
from aggregator.upstream.http.exchange import Stoppable
from aggregator.upstream.http.keepalive import Keepalive, KeptAlive
from aggregator.upstream.http.sessions import Owner


class UnderWay:
    """Knows what has been begun and has not ended."""

    def __init__(self) -> None:
        self._lasting: dict[Stoppable, bool] = {}
        """What is being answered, and whether that takes as long as its client likes."""
        self._owners: dict[Stoppable, Owner] = {}
        """Whose the requests are that belong to no session, with which they would end."""
        self._arriving: dict[object, Owner] = {}
        """Whose the requests are of which the body is not there yet."""
        self._until: dict[Stoppable, float] = {}
        """When whoever listens has to show anew who it is, in seconds since the epoch."""
        self._keepalive = Keepalive()
        self._is_leaving = False
        self._settled = Signal()

    @property
    def grants(self) -> frozenset[str]:
        """By whom something was begun outside of a session."""
        return frozenset(each.grant for each in (*self._owners.values(), *self._arriving.values()))

    @property
    def is_leaving(self) -> bool:
        """Whether nothing more is to be begun."""
        return self._is_leaving

    async def keep_alive(self) -> None:
        """See to it that no client waits in silence for too long."""
        await self._keepalive.run()

    def expect(self, owner: Owner) -> object:
        """Know of a request that is still being read; return what it is known by."""
        arriving = object()
        self._arriving[arriving] = owner
        return arriving

    def take(self, arriving: object) -> bool:
        """Say whether what was expected may be answered: its owner may have lost the right."""
        return self._arriving.pop(arriving, None) is not None

    @contextmanager
    def answering(
        self,
        exchange: Stoppable,
        reply: KeptAlive,
        *,
        owner: Owner | None = None,
        lasts: bool = False,
        until: float | None = None,
    ) -> Generator[None, None, None]:
        """Know of a request for the length of the block; one that lasts is not waited for."""
        self.begin(exchange, reply, lasts=lasts)
        if owner is not None:
            self._owners[exchange] = owner
        if lasts and until is not None:
            self._until[exchange] = until
        try:
            yield
        finally:
            self._owners.pop(exchange, None)
            self._until.pop(exchange, None)
            self.end(exchange, reply)

    def begin(self, exchange: Stoppable, reply: KeptAlive, *, lasts: bool = False) -> None:
        """Know of a request until it ends."""
        self._lasting[exchange] = lasts
        self._keepalive.keep(reply)

    def end(self, exchange: Stoppable, reply: KeptAlive) -> None:
        """Know of it no longer."""
        self._keepalive.release(reply)
        del self._lasting[exchange]
        if self._is_leaving:
            self._settled.send()

    async def drain(self, patience: float, shutdown_notice: ShutdownNotice) -> None:
        """Let what is under way come to its end, then hang up on the rest."""
        self._is_leaving = True
        number = sum(not lasts for lasts in self._lasting.values())
        if number and patience:
            shutdown_notice.wait_for_calls(number, patience)
        with anyio.move_on_after(patience):
            while not all(self._lasting.values()):
                await self._settled.wait()
        for each in tuple(self._lasting):
            each.stop("closed")

    def part_with(self, grants: Collection[str]) -> None:
        """End what was begun outside of a session by tokens that open nothing any more."""
        for exchange, owner in tuple(self._owners.items()):
            if owner.grant in grants:
                exchange.stop("closed")
        for arriving, owner in tuple(self._arriving.items()):
            if owner.grant in grants:
                del self._arriving[arriving]

    def part_with_overdue(self, now: float) -> None:
        """Hang up on whoever listens by the word of an issuer that counts no longer."""
        for exchange, until in tuple(self._until.items()):
            if until <= now:
                exchange.stop("closed")
