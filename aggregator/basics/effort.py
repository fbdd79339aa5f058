"""How much work one answer may cost, counted and not clocked.

Whatever is worked out on the event loop from what a server or a client has sent spends of one
effort: what it looks at, and what it copies. Nothing is refused because an effort is spent. It is
told in the short form, and that it is.
"""

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")

STEPS = 8_000
"""Steps that one answer may cost: some tens of milliseconds."""
CHARACTERS = 256
"""Characters that are copied in the time of one step."""
CLEANED = 16
"""Characters that are looked at one by one in the time of one step."""
KEYS = 16
"""Keys of an object, or items of an array, that are copied in the time of one step."""

TURN = 2_000
"""Steps that are taken before others have their turn: some milliseconds."""


class Turn:
    """The steps that work of any length takes before others on the event loop have their turn."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = TURN

    def is_over(self, steps: int = 0, *, cleaned: int = 0) -> bool:
        """Take some steps, and say whether it is now the turn of others."""
        self._left -= steps + -(-cleaned // CLEANED)
        if self._left > 0:
            return False
        self._left = TURN
        return True


def finished(steps: Generator[None, None, T]) -> T:
    """Do all of some work in one turn, and return what comes of it."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


class Effort:
    """The steps that may still be taken; one is as much as to look at a value and what it is."""

    __slots__ = ("_left", "_whole", "fell_short")

    def __init__(self, steps: int = STEPS, whole: "Effort | None" = None) -> None:
        self._left = steps
        self._whole = whole
        self.fell_short = False
        """Whether something was left undone for want of steps, here or in a part."""

    @property
    def left(self) -> int:
        """The steps that may still be taken."""
        return max(self._left, 0)

    @property
    def is_spent(self) -> bool:
        """Whether more was to be done than there were steps for, once and for all."""
        return self._left < 0

    def spend(self, steps: int = 1) -> bool:
        """Take some steps, and say whether there were as many left."""
        left = self._left
        if steps:
            self._left = left - steps
            if left < steps:
                self.fall_short()
            if left > 0 and self._whole is not None:
                self._whole.spend(min(left, steps))
        return left >= steps

    def copy(self, characters: int) -> bool:
        """Take as many steps as it costs to copy a text."""
        return self.spend(characters // CHARACTERS)

    def gather(self, keys: int) -> bool:
        """Take as many steps as it costs to copy what an object or an array holds."""
        return self.spend(keys // KEYS)

    def part(self, number: int) -> "Effort":
        """Return one in so many of the steps that are left: whoever spends it spends no more."""
        return Effort(max(self._left, 0) // max(number, 1), self)

    def fall_short(self) -> None:
        """Take note that something is left undone."""
        self.fell_short = True
        if self._whole is not None and not self._whole.fell_short:
            self._whole.fall_short()
