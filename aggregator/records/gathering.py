"""What waits to be written, bounded, and handed to a thread without losing any of it."""

from collections.abc import Callable
from typing import Generic, TypeVar

from anyio import to_thread

from aggregator.basics.signals import Signal

E = TypeVar("E")
R = TypeVar("R")


class Gathering(Generic[E]):
    """Events that are not written yet; only the event loop's thread touches them."""

    def __init__(
        self, most: int, weigh: Callable[[E], int] = lambda _: 0, most_weight: int = 0
    ) -> None:
        self._most = most
        self._weigh = weigh
        self._most_weight = most_weight
        self._weight = 0
        self._events: list[E] = []
        self._lost = 0
        self._news = Signal()

    def put(self, event: E) -> None:
        """Take note of an event, or only of its number if there are too many."""
        weight = self._weight + self._weigh(event)
        # One alone is kept, whatever it weighs: it would never be written otherwise.
        if self._events and (len(self._events) >= self._most or weight > self._most_weight):
            self._lost += 1
            return
        self._events.append(event)
        self._weight = weight
        if len(self._events) == 1:
            self._news.send()

    async def wait(self) -> None:
        """Wait until there is something to write."""
        while not self._events:
            await self._news.wait()

    def take(self) -> tuple[list[E], int]:
        """Return what is to be written, and how many events are missing from it."""
        taken = self._events, self._lost
        self._events, self._lost, self._weight = [], 0, 0
        return taken

    def put_back(self, events: list[E], lost: int) -> None:
        """Keep what could not be written, before what has come meanwhile."""
        later, missing = self.take()
        self._lost = lost + missing
        for event in (*events, *later):
            self.put(event)

    async def hand_over(self, write: Callable[[list[E], int], R]) -> R:
        """Have a thread write what there is; what it could not even begin with stays."""
        events, lost = self.take()
        try:
            return await to_thread.run_sync(write, events, lost)
        except BaseException:
            self.put_back(events, lost)
            raise
