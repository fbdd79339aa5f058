"""Holds the keys of one issuer: fetched when they are needed, once for all who wait.

Whoever knocks can make us fetch them once a minute at the most. An issuer that cannot be reached
takes nothing from those whose keys are known, for an hour; after that nobody is let in.
"""

import logging
from collections.abc import Awaitable, Callable

import anyio

from aggregator.basics.signals import Signal
from aggregator.upstream.http.issuer.keyset import KeysError, KeySet
from aggregator.upstream.http.issuer.reading import Claim

logger = logging.getLogger(__name__)

FRESH = 600.0
"""Seconds after which keys are fetched again, so that one that is withdrawn opens nothing."""
LONGEST = 3600.0
"""Seconds that keys count if no others can be had."""
APART = 60.0
"""Seconds between two fetches because of a key that is not known."""
PAUSE = 10.0
"""Seconds after a fetch that failed before the next."""
PATIENCE = 5.0
"""Seconds that a request waits for keys."""

Fetch = Callable[[], Awaitable[KeySet]]


class Keeper:
    """The keys of an issuer, as far as they are known."""

    def __init__(self, issuer: str, fetch: Fetch) -> None:
        self._issuer = issuer
        self._fetch = fetch
        self._keys: KeySet | None = None
        self._fetched = self._tried = float("-inf")
        self._has_failed = False
        self._flight: anyio.Event | None = None
        self._wanted = Signal()
        self._is_retired = False

    @property
    def current(self) -> KeySet | None:
        """The keys that count now; ask for others beside, where it is time."""
        now = anyio.current_time()
        if self._keys is None or now - self._fetched >= LONGEST:
            return None
        if now - self._fetched >= FRESH and now - self._tried >= PAUSE:
            self._ask()
        return self._keys

    async def keys_for(self, claim: Claim) -> KeySet | None:
        """Return the keys, with one that a token is said to be signed with if there is one.

        Nothing is returned if that cannot be known.
        """
        keys = self.current
        if keys is not None and keys.find(claim) is not None:
            return keys
        pause = PAUSE if keys is None else APART
        if self._flight is not None or anyio.current_time() - self._tried >= pause:
            with anyio.move_on_after(PATIENCE) as waiting:
                await self._ask().wait()
            if waiting.cancelled_caught:
                return None
        # A key that was not found may be one that we could not hear of.
        return None if self._has_failed else self.current

    async def run(self) -> None:
        """Fetch keys whenever somebody wants them."""
        while not self._is_retired:
            if self._flight is None:
                await self._wanted.wait()
                continue
            try:
                self._keys = await self._fetch()
            except KeysError as error:
                self._tell(str(error))
                self._has_failed = True
            else:
                self._has_failed = False
                self._fetched = anyio.current_time()
            self._tried = anyio.current_time()
            flight, self._flight = self._flight, None
            flight.set()

    def retire(self) -> None:
        """Fetch nothing any more."""
        self._is_retired = True
        self._wanted.send()

    def _ask(self) -> anyio.Event:
        """Have keys fetched, unless they are being fetched; return what tells that they have."""
        if self._flight is None:
            self._flight = anyio.Event()
            self._wanted.send()
        return self._flight

    def _tell(self, problem: str) -> None:
        """Log that there are no keys, once until there are again."""
        if not self._has_failed:
            logger.warning(
                "no keys of the issuer `%s`: %s; whoever shows a token of it is answered 503",
                self._issuer,
                problem,
            )
