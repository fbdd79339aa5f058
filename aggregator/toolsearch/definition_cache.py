"""What was worked out of definitions lately, since it is likely to be told again soon.

A search tells its tools twice where they join the list of its client, and what one model looks for
another does, too.
"""

from collections.abc import Hashable
from typing import Generic, NamedTuple, TypeVar

from aggregator.basics.effort import Effort

T = TypeVar("T")

MOST = 256
"""Texts that are kept, the last ones."""


class _Kept(NamedTuple, Generic[T]):
    of: object
    """Kept as well, so that no other can be taken for it."""
    text: T
    length: int
    steps: int
    """What it took to work it out."""


class DefinitionCache(Generic[T]):
    """Keeps texts by the very object that they are about, which is never changed, and their form.

    What was told in part, for want of room or effort, is to be worked out anew.
    """

    def __init__(self) -> None:
        self._kept: dict[tuple[int, Hashable], _Kept[T]] = {}

    def find(self, of: object, form: Hashable, room: int, effort: Effort) -> T | None:
        """Return a text that has room, and spend on it what it took to work it out."""
        kept = self._kept.get((id(of), form))
        if kept is None or kept.length > room or kept.steps > effort.left:
            return None
        effort.spend(kept.steps)
        return kept.text

    def keep(self, of: object, form: Hashable, text: T, *, length: int, steps: int) -> T:
        """Keep a text, and return it."""
        while len(self._kept) >= MOST:
            del self._kept[next(iter(self._kept))]
        self._kept[id(of), form] = _Kept(of, text, length, steps)
        return text
