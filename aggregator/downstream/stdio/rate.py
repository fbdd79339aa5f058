"""Let a few things through per minute, and count the rest."""

PERIOD = 60.0
"""Seconds after which the allowance is whole again."""


class Allowance:
    """So many per minute; `now` is passed in."""

    def __init__(self, per_period: int) -> None:
        self._per_period = per_period
        self._since = float("-inf")
        self._left = 0
        self.refused = 0
        """How many were refused since one was last granted."""

    def grant(self, now: float) -> bool:
        """Say whether one more may pass now."""
        if now - self._since >= PERIOD:
            self._since, self._left = now, self._per_period
        if self._left == 0:
            self.refused += 1
            return False
        self._left -= 1
        self.refused = 0
        return True
