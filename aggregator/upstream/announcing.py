"""Tell one client, or all that listen, that a list changed: one loop, in either era."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field

import anyio
import anyio.lowlevel

from aggregator.basics.frozen import frozen

Wait = Callable[[], Awaitable[None]]
"""Returns the next time that there may be something to tell."""

GATHERING = 0.1
"""Seconds to wait for more changes before one is announced: servers start in bursts."""
RESTING = 0.3
"""Seconds between two announcements to the same client at the least."""


class Shown:
    """A list as a client knows it: the one it has fetched, or was last told of."""

    def __init__(self) -> None:
        self._value: object = ()
        self.is_known = False
        """Whether the client has fetched one, or was told of one."""

    def show(self, value: object) -> None:
        """Take note that the client knows this list now."""
        self._value = value
        self.is_known = True

    def is_stale(self, value: object) -> bool:
        """Say whether a list is another than the client knows of."""
        return value is not self._value and value != self._value


@frozen
class Subject:
    """One list of which a client is kept told."""

    look: Callable[[], object]
    """Returns what the client would be given now."""
    tell: Callable[[], Awaitable[None]]
    shown: Shown = field(default_factory=Shown)

    def note(self) -> None:
        """Take the list as it is now for known."""
        self.shown.show(self.look())

    def is_stale(self) -> bool:
        """Say whether the client would be given another list than it knows of."""
        return self.shown.is_stale(self.look())


class Queue:
    """Has clients looked after one by one: a change that a thousand of them hear of is no pause."""

    def __init__(self) -> None:
        self._turn = anyio.Lock()

    async def turn(self) -> None:
        """Return when it is one's turn; whatever else there is to do comes in between."""
        async with self._turn:
            await anyio.lowlevel.checkpoint()


async def announce(until_change: Wait, subjects: Sequence[Subject], queue: Queue) -> None:
    """Tell a client whenever a list it would get is not the one it knows of.

    A level, not an edge: what is compared is the list itself, so a change that was taken back
    is not announced, and the last state always is.
    """
    for subject in subjects:
        # Who has fetched a list before is told if it is another by now.
        if not subject.shown.is_known:
            subject.note()
    while True:
        stale = [subject for subject in subjects if subject.is_stale()]
        for subject in stale:
            subject.note()
            await subject.tell()
        if stale:
            await anyio.sleep(RESTING)
        else:
            await until_change()
            await anyio.sleep(GATHERING)
        await queue.turn()
