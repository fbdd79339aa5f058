"""Connections that have not shown a token yet: few, and the oldest of them go first."""

from collections.abc import Callable

MAX_STRANGERS = 512
"""Connections without a token at a time: twice as many as are accepted at once, so that nobody
goes before there was a chance to be heard."""
SHARE = 4
"""The part of all open files that connections without a token may take."""

Address = tuple[str, int]


class Unauthenticated:
    """Those who have come in and shown nothing, in the order they came."""

    def __init__(self, most: int) -> None:
        self.most = most
        """How many there may be."""
        self._leave: dict[Address, Callable[[], None]] = {}

    @classmethod
    def among(cls, files: int) -> "Unauthenticated":
        """Return a place for as many as there may be where so many files can be open."""
        return cls(max(1, min(MAX_STRANGERS, files // SHARE)))

    def admit(self, address: Address, leave: Callable[[], None]) -> None:
        """Take one in; where there are too many, the one who has been here longest has to leave."""
        self._leave[address] = leave
        if len(self._leave) > self.most:
            self._leave.pop(next(iter(self._leave)))()

    def release(self, address: Address) -> None:
        """Count one no longer, who has shown the token or gone."""
        self._leave.pop(address, None)
