"""What each piece of a text counts in the mean that is its vector."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain

from aggregator.search.weights import AFTERWARDS, COMMON_PIECE, SMALL_SERVER, UNTOLD_TOOLS

_END = re.compile(r"[.!?\n](?:\s|$)")


class Commonness:
    """In how many tools each piece of a word is, a large server's counting less, as for words."""

    def __init__(self, servers: Iterable[Iterable[Iterable[int]]] = ()) -> None:
        self._having = defaultdict[int, float](float)
        self._tools = float(UNTOLD_TOOLS)
        for tools in servers:
            listed = list(tools)
            self._tools += _counted(len(listed))
            for piece, count in Counter(chain.from_iterable(listed)).items():
                self._having[piece] += _counted(count)

    def worth(self, piece: int) -> float:
        """Return what a piece of a request counts: what many tools have tells none of them apart.

        This is the weight of Arora, Liang and Ma ("smooth inverse frequency").
        """
        share = self._having.get(piece, 0.0) / self._tools
        return COMMON_PIECE / (COMMON_PIECE + share)


def _counted(tools: int) -> float:
    """Return what some tools of one server count as."""
    return tools if tools <= SMALL_SERVER else SMALL_SERVER + (tools - SMALL_SERVER) / 10


def told(text: str, starts: Iterable[int]) -> Sequence[float]:
    """Return what pieces of a tool's text count: its names and first sentence say what it does."""
    end = _END.search(text)
    opening = end.end() if end else len(text)
    return [1.0 if start < opening else AFTERWARDS for start in starts]
