"""So many in so long, and no more."""

from collections import deque


class Rate:
    """Lets so many pass in any stretch of time; `now` is passed in."""

    def __init__(self, limit: int, *, within: float) -> None:
        self._passed = deque[float](maxlen=limit)
        self._within = within
        self.refused = 0
        """How many were refused since one last passed."""

    def admits(self, now: float) -> bool:
        """Say whether one more may pass now, and count it."""
        passed = self._passed
        if len(passed) == passed.maxlen and now - passed[0] < self._within:
            self.refused += 1
            return False
        passed.append(now)
        self.refused = 0
        return True
