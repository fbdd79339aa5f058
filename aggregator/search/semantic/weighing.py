"""What each piece of a text counts in the mean that is its vector."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from aggregator.search.weights import AFTERWARDS, COMMON_PIECE, UNTOLD_TOOLS

_END = re.compile(r"[.!?\n](?:\s|$)")


class Commonness:
    """How many of all texts of tools have each piece of a word.

    A text counts once, however many tools have it: copies make no piece common.
    """

    def __init__(self, texts: Iterable[Iterable[int]] = ()) -> None:
        self._texts = UNTOLD_TOOLS
        self._having = Counter[int]()
        for pieces in texts:
            self._texts += 1
            self._having.update(pieces)

    def worth(self, piece: int) -> float:
        """Return what a piece of a request counts: what many tools have tells none of them apart.

        This is the weight of Arora, Liang and Ma ("smooth inverse frequency").
        """
        share = self._having[piece] / self._texts
        return COMMON_PIECE / (COMMON_PIECE + share)


def told(text: str, starts: Iterable[int]) -> Sequence[float]:
    """Return what pieces of a tool's text count: its names and first sentence say what it does."""
    end = _END.search(text)
    opening = end.end() if end else len(text)
    return [1.0 if start < opening else AFTERWARDS for start in starts]
