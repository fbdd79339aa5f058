"""Connections of those who were let in: each identity has its share, and takes none from others."""

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager

from aggregator.upstream.http.presence import Presence

SHARE = 4
"""The part of all connections that one identity may have is one in so many."""


class Authenticated:
    """Knows who has how many connections; whoever runs us may have all there are."""

    def __init__(self, share: int) -> None:
        self.share = share
        """How many one identity may have."""
        self._busy = Counter[str]()
        """On how many of them something is under way."""
        self._idle: dict[str, dict[Presence, None]] = {}
        """Those on which nothing is, from the one that has been idle longest on."""
        self._holders: dict[Presence, str] = {}
        """Whose the idle ones are."""

    @classmethod
    def among(cls, connections: int) -> "Authenticated":
        """Return who may have how many of so many connections."""
        return cls(max(1, connections // SHARE))

    @contextmanager
    def taken(self, holder: str, connection: Presence | None) -> Generator[bool, None, None]:
        """Count a request for the length of the block, and say whether there is room for it.

        Its connection stays the one of whoever asked last; without one it is a gateway's, and
        counts for nobody when the request is over. Of too many, those are closed that are idle.
        """
        if connection is not None:
            self._forget(connection)
        if not holder:
            yield True
            return
        if self._busy[holder] >= self.share:
            yield False
            return
        self._busy[holder] += 1
        idle = self._idle.get(holder, {})
        while idle and self._busy[holder] + len(idle) > self.share:
            oldest = next(iter(idle))
            self._forget(oldest)
            oldest.leave()
        try:
            yield True
        finally:
            self._busy[holder] -= 1
            if not self._busy[holder]:
                del self._busy[holder]
            if connection is not None and not connection.has_gone:
                self._keep(holder, connection)

    def _keep(self, holder: str, connection: Presence) -> None:
        self._holders[connection] = holder
        self._idle.setdefault(holder, {})[connection] = None
        connection.note(self._forget)

    def _forget(self, connection: Presence) -> None:
        holder = self._holders.pop(connection, None)
        if holder is not None:
            idle = self._idle[holder]
            del idle[connection]
            if not idle:
                del self._idle[holder]
