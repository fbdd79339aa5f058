"""How much it says that a tool has a word: the fewer have it, the more."""

from collections import Counter
from collections.abc import Mapping
from math import log

from aggregator.search.analysis import Document
from aggregator.search.lexicon import shares
from aggregator.search.weights import SMALL_SERVER

TENTHS = 10
"""Counts are kept in tenths: whole numbers do not depend on the order of adding."""


class Tally:
    """In how many tools of one server each word is.

    Tools that say the same of themselves are one: a hundred copies make no word common.
    """

    def __init__(self) -> None:
        self.having = Counter[str]()
        self.tools = 0
        self._signatures = set[int]()

    def count(self, document: Document) -> None:
        """Count a tool in, unless it is a copy of one that was."""
        if document.signature in self._signatures:
            return
        self._signatures.add(document.signature)
        self.having.update(document.terms)
        self.tools += 1


class Rarity:
    """In how many tools each word is, a large server's counting less.

    Beyond the first few, tools that share a word tell what their server is about and not how
    common the word is: no server can make a word worthless by repeating it in a hundred tools.
    """

    def __init__(self, prior: float) -> None:
        self._prior = prior
        self._having: dict[str, int] = {}
        self._total = 0
        self._worth: dict[str, float] = {}
        """What was asked for since the last change."""

    @property
    def total(self) -> float:
        """How many tools there are."""
        return self._total / TENTHS

    def add(self, having: Mapping[str, int], tools: int) -> None:
        """Count one server in: in how many of its tools each word is, and how many it has."""
        self._total += _tenths(tools)
        self._worth.clear()
        for word, count in having.items():
            self._having[word] = self._having.get(word, 0) + _tenths(count)

    def discard(self, having: Mapping[str, int], tools: int) -> None:
        """Count out what was counted in."""
        self._total -= _tenths(tools)
        self._worth.clear()
        for word, count in having.items():
            self._having[word] -= _tenths(count)
            if not self._having[word]:
                del self._having[word]

    def of(self, word: str) -> float:
        """Return what a word is worth that some tool has."""
        worth = self._worth.get(word)
        if worth is None:
            worth = self._worth[word] = self._computed(word)
        return worth

    def _computed(self, word: str) -> float:
        """Count in an average catalog: a small one says little of which words are common."""
        # A word that is only in tools that are just coming or going counts as a new one.
        having = self._having.get(word, 0) / TENTHS + self._prior * shares().get(word, 0.0)
        return log(1 + (self.total + self._prior - having + 0.5) / (having + 0.5))


def _tenths(count: int) -> int:
    return TENTHS * count if count <= SMALL_SERVER else TENTHS * SMALL_SERVER + count - SMALL_SERVER
