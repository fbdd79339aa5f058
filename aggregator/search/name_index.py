"""The names of all tools, to find the one that a query is but for a slip."""

from collections.abc import Iterable, Iterator, Sequence

from aggregator.search.weights import LONGEST_NAME, SHORTEST_SLIP


class NameIndex:
    """Names as sets of words, found by all of their words but one."""

    def __init__(self) -> None:
        self._names: dict[int, tuple[int, ...]] = {}
        """The tools of each name; names and what is left of them are kept as hashes."""
        self._gaps: dict[int, tuple[str, ...]] = {}
        """The words that make names of what is left of names without one of their words."""

    def add(self, tool: int, name: Iterable[str]) -> None:
        """Note the name of a tool."""
        words = frozenset(name)
        tools = self._names.get(hash(words), ())
        self._names[hash(words)] = (*tools, tool)
        if not tools:
            for word in words:
                rest = hash(words - {word})
                self._gaps[rest] = (*self._gaps.get(rest, ()), word)

    def discard(self, tool: int, name: Iterable[str]) -> None:
        """Forget the name of a tool."""
        words = frozenset(name)
        tools = tuple(each for each in self._names.pop(hash(words)) if each != tool)
        if tools:
            self._names[hash(words)] = tools
            return
        for word in words:
            rest = hash(words - {word})
            left = tuple(each for each in self._gaps.pop(rest) if each != word)
            if left:
                self._gaps[rest] = left

    def slipped(self, asked: Sequence[str], slips: Iterable[str]) -> Iterator[int]:
        """Yield the tools whose name a query is if one of some words in it is misspelt."""
        words = frozenset(asked)
        if len(words) > LONGEST_NAME:
            return
        for typed in slips:
            rest = words - {typed}
            for meant in self._gaps.get(hash(rest), ()):
                if recognised(typed, meant, beside=len(rest)):
                    yield from self._names[hash(rest | {meant})]


def recognised(typed: str, meant: str, *, beside: int) -> bool:
    """Tell whether a misspelt word is recognised beside so many that are right."""
    return (len(meant) >= SHORTEST_SLIP or beside > 1) and one_slip(typed, meant)


def one_slip(typed: str, meant: str) -> bool:
    """Tell whether one letter too few, too many, wrong or swapped makes one word of another."""
    shorter = min(len(typed), len(meant))
    if abs(len(typed) - len(meant)) > 1 or not shorter:
        return False
    start = 0
    while start < shorter and typed[start] == meant[start]:
        start += 1
    end = 0
    while end < shorter - start and typed[-1 - end] == meant[-1 - end]:
        end += 1
    one, other = typed[start : len(typed) - end], meant[start : len(meant) - end]
    swapped = len(one) == len("ab") and one == other[::-1]
    return swapped or max(len(one), len(other)) <= 1
