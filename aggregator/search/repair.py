"""The words an index knows, and the nearest of them to one it does not know."""

from collections.abc import Iterable, Iterator

SHORTEST = 4
"""Letters below which a word is too short to guess what was meant."""
LONG = 8
"""Letters from which two slips are forgiven instead of one."""


class Vocabulary:
    """The words of names as they are written, counted."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._shelves: dict[tuple[int, str, bool], dict[str, None]] = {}
        """Words by length and first or last letter: a slip rarely hits both ends."""

    def add(self, words: Iterable[str]) -> None:
        """Count words in."""
        for word in words:
            count = self._counts.get(word, 0)
            self._counts[word] = count + 1
            if not count:
                for shelf in _shelves(word):
                    self._shelves.setdefault(shelf, {})[word] = None

    def discard(self, words: Iterable[str]) -> None:
        """Count words out; the last of its kind is forgotten."""
        for word in words:
            self._counts[word] -= 1
            if not self._counts[word]:
                del self._counts[word]
                for shelf in _shelves(word):
                    del self._shelves[shelf][word]

    def containing(self, part: str, limit: int) -> list[str]:
        """Return the words a part of a word may stand for, those it begins first."""
        if len(part) < SHORTEST - 1:
            return []
        found = [word for word in self._counts if part in word]
        found.sort(key=lambda word: (not word.startswith(part), len(word), word))
        return found[:limit]

    def nearest(self, word: str) -> str | None:
        """Return the word most likely meant by a misspelt one."""
        slips = 2 if len(word) >= LONG else 1
        if len(word) < SHORTEST:
            return None
        from rapidfuzz.distance import OSA  # noqa: PLC0415 - only a misspelt word needs it

        best: tuple[int, bool, int, str] | None = None
        for other in self._near(word, slips):
            distance = OSA.distance(word, other, score_cutoff=slips)
            if distance <= slips:
                rank = (distance, other[0] != word[0], -self._counts[other], other)
                best = rank if best is None else min(best, rank)
        return best[3] if best else None

    def _near(self, word: str, slips: int) -> Iterator[str]:
        """Yield words of about the same length with the same beginning or end."""
        for length in range(len(word) - slips, len(word) + slips + 1):
            first = self._shelves.get((length, word[0], True), {})
            yield from first
            last = self._shelves.get((length, word[-1], False), {})
            yield from (other for other in last if other not in first)


def nearest(name: str, names: Iterable[str], limit: int = 3) -> list[str]:
    """Return the names most like one that does not exist, best first."""
    from rapidfuzz import fuzz, process, utils  # noqa: PLC0415 - only a wrong name needs it

    choices = sorted(set(names))
    found = process.extract(
        name[:256],
        choices,
        scorer=fuzz.WRatio,
        processor=utils.default_process,
        limit=limit,
        score_cutoff=60,
    )
    return [choice for choice, _, _ in found]


def _shelves(word: str) -> Iterator[tuple[int, str, bool]]:
    if word:
        yield len(word), word[0], True
        yield len(word), word[-1], False
