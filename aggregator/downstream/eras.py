"""The era each server spoke last time, so that a slow old one is probed only once."""

import time
from collections.abc import Callable
from hashlib import sha256

from aggregator.basics.eras import Era
from aggregator.basics.json import JsonObject, as_object
from aggregator.config import ServerConfig
from aggregator.memory import Memory, joined

ERAS = "eras"

REMEMBERED_FOR = 7 * 24 * 3600.0
"""Seconds after which a server is asked again: it may have learned the newer era."""
NEEDED_FOR = 30 * 24 * 3600.0
"""Seconds after which one that needs the older era is tried in the newer one again."""


class Eras:
    """Remembers which servers speak the older era, or need it.

    A modern server answers the first question of a probe at once: nothing is gained by
    remembering it, and one that was replaced by an older server would be lost.
    """

    def __init__(self, memory: Memory, *, clock: Callable[[], float] = time.time) -> None:
        self._memory = memory
        self._clock = clock

    def recall(self, server: ServerConfig) -> Era | None:
        """Return the era to speak, unless that is to be found out."""
        if server.era != "auto":
            return server.era
        known = as_object(self._memory.get(ERAS, _key(server)))
        at = known.get("at")
        is_shown = known.get("era") == "handshake" and known.get("guessed") is not True
        if not is_shown or not isinstance(at, int | float):
            return None
        limit = NEEDED_FOR if _is_needed(known) else REMEMBERED_FOR
        return "handshake" if 0 <= self._clock() - at < limit else None

    def note(self, server: ServerConfig, era: Era) -> None:
        """Remember the era a server speaks."""
        if era == "handshake":
            if self.recall(server) is None:
                self._memory.put(ERAS, _key(server), {"era": era, "at": self._clock()})
        elif not _is_needed(as_object(self._memory.get(ERAS, _key(server)))):
            self.forget(server)

    def suspect(self, server: ServerConfig) -> bool:
        """Take note of a server that ended when it was probed, and then answered `initialize`.

        Once says nothing, as it may have been killed: say whether it was so the last time, too,
        and is remembered from now on.
        """
        was_so = as_object(self._memory.get(ERAS, _key(server))).get("guessed") is True
        known = {"era": "handshake", "at": self._clock(), **({} if was_so else {"guessed": True})}
        self._memory.put(ERAS, _key(server), known)
        return was_so

    def note_need(self, server: ServerConfig) -> None:
        """Remember that a server speaks both eras, but is whole only in the older one."""
        need = {"era": "handshake", "at": self._clock(), "needed": True}
        self._memory.put(ERAS, _key(server), need)

    def forget(self, server: ServerConfig) -> None:
        """Find out about a server anew the next time."""
        self._memory.put(ERAS, _key(server), None)


def _is_needed(known: JsonObject) -> bool:
    return known.get("needed") is True


def _key(server: ServerConfig) -> str:
    """Tell servers apart by what is started, without writing down what may be secret."""
    started = joined(server.url or server.command or "", *server.args)
    return joined(server.name, sha256(started.encode()).hexdigest()[:16])
