"""When lines that are no messages become a flood, as arithmetic on times that are passed in.

Chatter costs next to nothing and is read as it comes. What comes faster than can be afforded is
read more slowly, so that its writer has to wait and nobody else; only one that goes on all the
same is a flood.
"""

from math import inf

AFFORDED = 4 * 1024 * 1024
"""Bytes without a message that are read in a second."""
AT_ONCE = 16 * AFFORDED
"""Bytes without a message that are read as fast as they come."""
LASTING = 15.0
"""Seconds of more than that which make a flood."""
LINE_COST = 256
"""Bytes that a line stands for at the least: to look at it takes as long."""
BLANK_COST = 16
"""The same for a line with nothing on it."""
BROKEN_COST = 8
"""Times that a line which looks like a message costs more than others: it is read to its end."""


class Flood:
    """How much that is no message has come of late."""

    def __init__(self) -> None:
        self._level = 0.0
        self._at = -inf
        self._high_since = inf

    def pause(self, cost: int, now: float) -> float:
        """Count what was no message; return how many seconds to wait before more is read."""
        left = max(0.0, self._level - AFFORDED * (now - self._at))
        self._level, self._at = left + cost, now
        if left < AT_ONCE / 2:
            self._high_since = inf
        if self._level > AT_ONCE:
            self._high_since = min(self._high_since, now)
        return max(0.0, self._level - AT_ONCE) / AFFORDED

    @property
    def is_lasting(self) -> bool:
        """Whether it has gone on for so long that it will not end by itself."""
        return self._at - self._high_since >= LASTING
