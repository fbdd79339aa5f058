"""Results that were shortened, kept whole for whoever was given them, and for nobody else.

They are kept in memory alone: nothing is left of them when their client leaves, or we do.
"""

import re
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Hashable
from hashlib import sha256

import anyio

from aggregator.basics.frozen import frozen
from aggregator.basics.signals import Signal
from aggregator.catalog import CHARACTERS_PER_TOKEN
from aggregator.config import Config
from aggregator.names import ServerName
from aggregator.upstream.results.parts import Whole

KEPT_FOR = 1_800.0
"""Seconds that a result is kept after it was last read."""
MAX_RESULTS = 32
"""Results that are kept for one client."""
MAX_BYTES = 64 << 20
"""Bytes of them."""
MAX_BYTES_OF_ALL = 256 << 20
"""Bytes that are kept for all clients together."""
NAME_BYTES = 12
"""Bytes of chance in a name: nobody guesses one, who could not read it by its name alone."""

_UNFIT = re.compile(r"[^A-Za-z0-9.-]")


@frozen
class Kept:
    """One result."""

    name: str
    tool: str
    """What was called."""
    server: ServerName
    """Whose it is; nothing if it is ours."""
    whole: Whole
    structured: Whole | None = None
    """Its structured content, where that is not in the whole already."""
    config: Config | None = None
    """What was configured for its client when it came."""
    ratio: float = CHARACTERS_PER_TOKEN
    """Characters of it that cost a model about one token."""

    @property
    def weight(self) -> int:
        """Bytes of memory that it takes, about."""
        return self.whole.weight + (self.structured.weight if self.structured else 0)


class KeptResults:
    """Keeps results, within bounds of number, size and time."""

    def __init__(self, replica: str = "") -> None:
        self._place = _UNFIT.sub("-", replica)
        """Where it is among several replicas: nobody else has what is kept here."""
        self._of = dict[Hashable, dict[str, Kept]]()
        """The results of each client, the longest unread first."""
        self._read = dict[str, tuple[float, Hashable]]()
        """When each was last read, the longest unread first."""
        self._weights = dict[Hashable, int]()
        self.changed = Signal()
        """Sent when a result is kept, or no longer is."""

    @property
    def weight(self) -> int:
        """Bytes that are kept for all clients together."""
        return sum(self._weights.values())

    def __len__(self) -> int:
        return len(self._read)

    def new_name(self, of: str = "") -> str:
        """Return a name for a result that nobody can guess, the same one for the same secret."""
        chance = secrets.token_urlsafe(NAME_BYTES)
        if of:
            digest = sha256(of.encode()).digest()[:NAME_BYTES]
            chance = urlsafe_b64encode(digest).decode()
        return f"{chance}~{self._place}" if self._place else chance

    def elsewhere(self, name: str) -> str | None:
        """Return which other replica keeps what has this name, if one does."""
        place = name.partition("~")[2]
        return place if place and place != self._place else None

    def keep(self, owner: Hashable, kept: Kept) -> bool:
        """Keep a result for one client, unless it is too large to be kept at all."""
        if kept.weight > MAX_BYTES:
            return False
        if kept.name in self._of.get(owner, ()):
            self._drop(owner, kept.name)
        own = self._of.setdefault(owner, {})
        own[kept.name] = kept
        self._read[kept.name] = anyio.current_time(), owner
        self._weights[owner] = self._weights.get(owner, 0) + kept.weight
        while len(own) > MAX_RESULTS or self._weights[owner] > MAX_BYTES:
            self._drop(owner, next(iter(own)))
        while self.weight > MAX_BYTES_OF_ALL:
            # Whoever has most makes room: nobody loses theirs because another floods.
            most = max(self._weights, key=self._weights.__getitem__)
            self._drop(most, next(iter(self._of[most])))
        self.changed.send()
        return kept.name in self._read

    def find(self, owner: Hashable, name: str) -> Kept | None:
        """Return a result of one client, and keep it longer."""
        own = self._of.get(owner, {})
        if (kept := own.pop(name, None)) is None:
            return None
        own[name] = kept
        del self._read[name]
        self._read[name] = anyio.current_time(), owner
        return kept

    def forget(self, owner: Hashable) -> None:
        """Keep nothing more of a client that has left."""
        for name in [*self._of.get(owner, ())]:
            self._drop(owner, name)

    async def run(self) -> None:
        """Drop what nobody has read for long, until cancelled."""
        while True:
            while not self._read:
                await self.changed.wait()
            name, (at, owner) = next(iter(self._read.items()))
            if (left := at + KEPT_FOR - anyio.current_time()) > 0:
                await anyio.sleep(left)
            else:
                self._drop(owner, name)

    def _drop(self, owner: Hashable, name: str) -> None:
        own = self._of[owner]
        del self._read[name]
        self._weights[owner] -= own.pop(name).weight
        self.changed.send()
        if not own:
            del self._of[owner], self._weights[owner]
