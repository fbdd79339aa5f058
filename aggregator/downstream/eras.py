"""The era each server spoke last time, so that a slow old one is probed only once."""

import time
from collections.abc import Callable
from hashlib import sha256

from aggregator.config import ServerConfig
from aggregator.eras import Era
from aggregator.json import as_object
from aggregator.memory import Memory, joined

ERAS = "eras"

REMEMBERED_FOR = 7 * 24 * 3600.0
"""Seconds after which a server is asked again: it may have learned the newer era."""


class Eras:
    """Remembers which servers speak the older era.

    A modern server answers the first question of a probe at once: nothing is gained by
    remembering it, and one that was replaced by an older server would be lost.
    """

    def __init__(self, memory: Memory, *, clock: Callable[[], float] = time.time) -> None:
        self._memory = memory
        self._clock = clock

    def recall(self, server: ServerConfig) -> Era | None:
        """Return the era a server spoke last time, if it was the older one."""
        known = as_object(self._memory.get(ERAS, _key(server)))
        at = known.get("at")
        if known.get("era") != "handshake" or not isinstance(at, int | float):
            return None
        return "handshake" if 0 <= self._clock() - at < REMEMBERED_FOR else None

    def note(self, server: ServerConfig, era: Era) -> None:
        """Remember the era a server speaks."""
        if era == "modern":
            self._memory.put(ERAS, _key(server), None)
        elif self.recall(server) is None:
            self._memory.put(ERAS, _key(server), {"era": era, "at": self._clock()})


def _key(server: ServerConfig) -> str:
    """Tell servers apart by what is started, without writing down what may be secret."""
    started = joined(server.url or server.command or "", *server.args)
    return joined(server.name, sha256(started.encode()).hexdigest()[:16])
