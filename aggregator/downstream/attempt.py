"""One connection to a server, or the attempt at one, as far as it came."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

import anyio

from aggregator.basics.signals import Signal
from aggregator.downstream.deadlines import OVERDUE
from aggregator.downstream.failure import Failure
from aggregator.downstream.start_queue import Ticket
from aggregator.downstream.transport import Remedy, Transport

LOOK = 1.0
"""Seconds between two looks at the clock: whoever misses one by much was stopped meanwhile."""
LONGEST = 4
"""Times as long as a server may take it is waited for at the most, where it has to share."""


class Attempt:
    """What is known of a connection until it is over."""

    def __init__(self, seconds: float, ticket: Ticket) -> None:
        self._began = anyio.current_time()
        self._seconds = seconds
        self._ticket = ticket
        self._shared = 0.0
        """Seconds of those that have gone by in which others had the processor."""
        self._changed = Signal()
        self._patience: anyio.CancelScope | None = None
        self._transport: Transport | None = None
        self._ready_at: float | None = None

    def limit(self, patience: anyio.CancelScope) -> None:
        """Take note of what ends it unless the server becomes ready."""
        self._patience = patience

    def allow(self, seconds: float) -> None:
        """Give the server so long in all to become ready."""
        self._seconds = seconds
        self._changed.send()

    @property
    def _due(self) -> float:
        return self._began + self._seconds + self._shared

    async def expire(self) -> None:
        """End it when its time is over: that in which it could start, and we could see that.

        What does not count is time in which our own process was stopped, or others had the
        processor.
        """
        while self._ready_at is None and (now := anyio.current_time()) < self._due:
            until = min(self._due, now + LOOK)
            with anyio.CancelScope(deadline=until):
                await self._changed.wait()
            missed = anyio.current_time() - until
            if missed > OVERDUE:
                self._began += missed
            else:
                self._share(anyio.current_time() - now)
        if self._patience is not None and self._ready_at is None:
            self._patience.deadline = anyio.current_time()

    def _share(self, seconds: float) -> None:
        """Take note of how much of some seconds was not the server's."""
        most = (LONGEST - 1) * self._seconds - self._shared
        others = max(0.0, min(most, seconds * (1 - self._ticket.share())))
        self._shared += others
        self._ticket.lose(others)

    def connected(self, transport: Transport) -> None:
        """Take note of what carries the messages: its last words are known only at its end."""
        self._transport = transport

    def became_ready(self) -> None:
        """Take note that the server is of use."""
        self._ready_at = anyio.current_time()
        self._changed.send()

    def complete(self, failure: Failure) -> Failure:
        """Add to what went wrong what is known only when all is over."""
        if self._ready_at is not None and failure.ready_for is None:
            failure = replace(failure, ready_for=anyio.current_time() - self._ready_at)
        if self._transport is None:
            return failure
        if self._transport.is_barred():
            failure = replace(failure, is_hopeless=True, remedy=self._transport.remedy())
        return failure.with_words(self._transport.last_words())


async def until_remedied(remedy: Remedy | None, until_woken: Callable[[], Awaitable[None]]) -> None:
    """Wait until another attempt may do better, or somebody wants one all the same."""
    if remedy is None:
        await until_woken()
        return
    async with anyio.create_task_group() as group:
        group.start_soon(_wait, remedy, group.cancel_scope)
        await until_woken()
        group.cancel_scope.cancel()


async def _wait(remedy: Remedy, scope: anyio.CancelScope) -> None:
    await remedy.until_done()
    scope.cancel()
