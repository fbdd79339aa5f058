"""When a server that is not there is tried again, as arithmetic on times that are passed in."""

from collections.abc import Callable

from aggregator.basics.frozen import frozen

FIRST_DELAY = 0.5
"""Seconds before the first retry of a server that failed to become ready."""
LONGEST_DELAY = 60.0
"""Seconds between retries at the most; also the rhythm of a server that is cooling down."""
HEALTHY_AFTER = 60.0
"""Seconds of being ready after which earlier failures are forgotten."""
FORGIVEN_AFTER = 12.0
"""Seconds of being ready that make up for one failure."""
PATIENCE = 5
"""Failures in a row after which a server is left to cool down."""


@frozen
class Retry:
    """What to do after a failure."""

    delay: float
    cooling: bool
    """Whether the server has failed so often that only its rhythm of last resort is left."""


class Supervision:
    """How often one server has failed, and what that means for the next attempt."""

    def __init__(self, jitter: Callable[[], float]) -> None:
        self._jitter = jitter
        self._failures = 0
        self.vain = 0
        """Attempts in a row, the last of them the latest, that did not make the server ready."""

    def failed(self, *, ready_for: float | None) -> Retry:
        """Count a failure and say when to try again.

        Args:
            ready_for: Seconds the server had been ready, `None` if it never was.
        """
        self._failures = self._unforgiven(ready_for or 0.0) + 1
        self.vain = self.vain + 1 if ready_for is None else 0
        if ready_for is not None and self._failures == 1:
            return Retry(0.0, cooling=False)
        if self._failures > PATIENCE:
            return Retry(LONGEST_DELAY * self._spread(), cooling=True)
        ceiling = min(LONGEST_DELAY, FIRST_DELAY * 2 ** (self._failures - 1))
        return Retry(ceiling * self._spread(), cooling=False)

    def _unforgiven(self, ready_for: float) -> int:
        if ready_for >= HEALTHY_AFTER:
            return 0
        return max(0, self._failures - int(ready_for / FORGIVEN_AFTER))

    def _spread(self) -> float:
        """Spread retries over half their delay, so that servers do not retry in step."""
        return 0.5 + self._jitter() / 2
