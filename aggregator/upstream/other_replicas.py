"""What other replicas have let through for one identity, as far as they have told."""

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

MINUTE = 60.0
HEARD = 3.0
"""Seconds after which calls of a replica that says nothing more of them are not under way: it tells
of them each second."""


class Report(NamedTuple):
    """What one replica has let through."""

    in_flight: int
    """Calls that are under way there now."""
    passed: tuple[tuple[float, int], ...]
    """How many seconds ago so many were let through."""
    is_whole: bool = False
    """Whether it is all of the last minute, and not only what came since the last report."""


class _Other:
    """What is known of one replica."""

    def __init__(self) -> None:
        self.passed = deque[tuple[float, int]]()
        self.in_flight = 0
        self._heard = float("-inf")

    def hear(self, report: Report, now: float) -> None:
        if report.is_whole:
            self.passed.clear()
        self.passed.extend((now - max(0.0, age), max(0, number)) for age, number in report.passed)
        self.in_flight = max(0, report.in_flight)
        self._heard = now

    def expire(self, now: float) -> None:
        while self.passed and now - self.passed[0][0] >= MINUTE:
            self.passed.popleft()
        if now - self._heard >= HEARD:
            self.in_flight = 0


class OtherReplicas:
    """All of them."""

    def __init__(self) -> None:
        self._known: dict[str, _Other] = {}

    def hear(self, replica: str, report: Report, now: float) -> None:
        """Take note of what a replica tells."""
        self._known.setdefault(replica, _Other()).hear(report, now)

    def passed(self, now: float) -> Iterator[tuple[float, int]]:
        """Yield when calls were let through in the last minute, and how many."""
        self._expire(now)
        for other in self._known.values():
            yield from other.passed

    def in_flight(self, now: float) -> int:
        """Return how many calls are under way elsewhere."""
        self._expire(now)
        return sum(other.in_flight for other in self._known.values())

    def are_busy(self, now: float) -> bool:
        """Whether there is anything that counts still."""
        self._expire(now)
        return bool(self._known)

    def _expire(self, now: float) -> None:
        for other in self._known.values():
            other.expire(now)
        gone = [name for name, each in self._known.items() if not (each.passed or each.in_flight)]
        for name in gone:
            del self._known[name]
