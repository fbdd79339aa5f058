"""When calls have taken too long: one timer for all of a server's calls.

A timer for each call would cost each of them, and hardly any ever goes off. A process that was
stopped finds the time of its calls over and their answers there: such time does not count, so
that they are read.
"""

import math
from collections.abc import Generator
from contextlib import contextmanager
from typing import Protocol, Self

import anyio

from aggregator.basics.clock import running_clock
from aggregator.basics.signals import Signal

OVERDUE = 1.0
"""Seconds after a deadline that no event loop is late by, unless its process was stopped."""
LATE_PATIENCE = 1.0
"""Seconds for an answer that may have come while this process stood still to be read."""


class Ending(Protocol):
    """What can be ended: the scope of a task that waits, or somebody who is told."""

    @property
    def deadline(self) -> float:
        """When it ends by itself, where nobody looks."""
        ...

    @deadline.setter
    def deadline(self, value: float) -> None: ...

    def cancel(self) -> None:
        """End it now."""
        ...


class _Over:
    """What has ended: nothing ends it."""

    deadline = math.inf

    def cancel(self) -> None:
        """Do nothing."""


class Deadlines:
    """The deadlines of all calls under way."""

    def __init__(self) -> None:
        self.is_watching = False
        self.now = running_clock()
        """The time by which they are told."""
        self._held: dict[Patience, None] = {}
        self._next = math.inf
        """When somebody looks."""
        self._sooner = Signal()

    def hold(self, patience: "Patience") -> None:
        """Have a call end when its time is over, until it is let go."""
        self._held[patience] = None

    def let_go(self, patience: "Patience") -> None:
        """Look at a call no more."""
        del self._held[patience]

    def __len__(self) -> int:
        return len(self._held)

    def look_at(self, deadline: float) -> None:
        """Look at a time, if not before."""
        if deadline < self._next:
            self._next = deadline
            self._sooner.send()

    async def run(self) -> None:
        """End calls when their time is over, for as long as this task lives."""
        self.is_watching = True
        try:
            for patience in self._held:
                patience.note_watch()
            while True:
                with anyio.CancelScope(deadline=self._next):
                    await self._sooner.wait()
                self._look(self.now())
        finally:
            self.is_watching = False
            for patience in self._held:
                patience.note_watch()

    def _look(self, now: float) -> None:
        # Some leave when their time is over.
        for patience in list(self._held):
            patience.look(now)
        # Most calls end soon: when they have, it is looked once more, and for nothing.
        self._next = min((each.deadline for each in self._held), default=math.inf)


class Patience:
    """How long a call may take, not counting the time in which somebody is asked.

    It is looked at for the length of a block.
    """

    def __init__(
        self,
        scope: Ending,
        *,
        between: float,
        altogether: float,
        deadlines: Deadlines | None = None,
    ) -> None:
        self._deadlines = Deadlines() if deadlines is None else deadlines
        self.began = now = self._deadlines.now()
        """When the call was accepted."""
        self._scope: Ending = scope
        self._between = between
        self._latest = now + altogether
        self._pauses = 0
        self._was_late = False
        self.deadline = 0.0
        """When its time is over."""
        self._wait_until(min(now + between, self._latest))

    def __enter__(self) -> Self:
        self._deadlines.hold(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._deadlines.let_go(self)

    def note_progress(self) -> None:
        """Begin to wait anew, because the server has shown that it is at work."""
        if not self._pauses:
            self._wait_until(min(self._deadlines.now() + self._between, self._latest))

    @contextmanager
    def paused(self) -> Generator[None, None, None]:
        """Stop the clock for the length of the block."""
        began = self._deadlines.now()
        self._pauses += 1
        self._wait_until(math.inf)
        try:
            yield
        finally:
            self._pauses -= 1
            self._latest += self._deadlines.now() - began
            self.note_progress()

    def look(self, now: float) -> None:
        """End the call if its time is over, unless nobody can have looked meanwhile."""
        if self.deadline > now:
            return
        if now - self.deadline > OVERDUE and not self._was_late:
            self._was_late = True
            self.deadline = now + LATE_PATIENCE
        else:
            self._scope.cancel()
            self.deadline = math.inf

    def release(self) -> None:
        """Let go of what it would end, which is over: whoever is both is not to keep itself."""
        self._scope = _Over()

    def note_watch(self) -> None:
        """Go by the common timer while there is one, and by one's own while there is none."""
        self._scope.deadline = math.inf
        self._wait_until(self.deadline)

    def _wait_until(self, deadline: float) -> None:
        self.deadline = deadline
        if self._deadlines.is_watching:
            self._deadlines.look_at(deadline)
        else:
            self._scope.deadline = deadline
