"""The words an index knows, and the nearest of them to one it does not know."""

from collections.abc import Iterable, Iterator
from itertools import islice

from aggregator.search.weights import LIKE, LONGEST_LIKENED, SHORTEST_GUESS, TWO_SLIPS

AMONG = 8
"""Likely names of which those with a slip come first. Sense."""
CLOSELY = 400
"""Names that one which does not exist is held against word by word."""
LIKENED_FREE, LIKENED_IN_A_STEP = 16, 64
"""What it costs to compare two names, in characters, beside those of the one; and how many
characters are compared in the time of one step."""

MOST_CONTAINING = 1_000
"""Words that are looked at for one part of a word: what more of them have tells none apart."""


class Vocabulary:
    """The words of names as they are written, counted."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._buckets: dict[tuple[int, str, bool], dict[str, None]] = {}
        """Words by length and first or last letter: a slip rarely hits both ends."""
        self._lines: str | None = None
        """Every word on a line of its own, to look for parts of words; made when needed."""

    def __contains__(self, word: object) -> bool:
        return word in self._counts

    def add(self, words: Iterable[str]) -> None:
        """Count words in."""
        for word in words:
            count = self._counts.get(word, 0)
            self._counts[word] = count + 1
            if not count:
                self._lines = None
                for bucket in _buckets(word):
                    self._buckets.setdefault(bucket, {})[word] = None

    def discard(self, words: Iterable[str]) -> None:
        """Count words out; the last of its kind is forgotten."""
        for word in words:
            self._counts[word] -= 1
            if not self._counts[word]:
                del self._counts[word]
                self._lines = None
                for bucket in _buckets(word):
                    del self._buckets[bucket][word]

    def containing(self, part: str, limit: int) -> list[str]:
        """Return the words a part of a word may stand for, those it begins first."""
        if len(part) < SHORTEST_GUESS - 1:
            return []
        if self._lines is None:
            self._lines = "\n".join(("", *self._counts, ""))
        # Three letters are inside of too many words to mean one of them.
        sought = part if len(part) >= SHORTEST_GUESS else f"\n{part}"
        found = sorted(
            islice(_lines_with(sought, self._lines), MOST_CONTAINING),
            key=lambda word: (not word.startswith(part), len(word), word),
        )
        return found[:limit]

    def nearest(self, word: str) -> str | None:
        """Return the word most likely meant by a misspelt one."""
        if len(word) < SHORTEST_GUESS:
            return None
        # Only a misspelt word needs the library; to load it takes longer than to start.
        from rapidfuzz import process  # noqa: PLC0415
        from rapidfuzz.distance import OSA  # noqa: PLC0415

        slips = 2 if len(word) >= TWO_SLIPS else 1
        near = list(self._near(word, slips))
        found = process.extract(word, near, scorer=OSA.distance, score_cutoff=slips, limit=None)
        ranked = (
            (distance, other[0] != word[0], -self._counts[other], other)
            for other, distance, _ in found
        )
        likeliest = min(ranked, default=None)
        return likeliest[-1] if likeliest else None

    def _near(self, word: str, slips: int) -> Iterator[str]:
        """Yield words of about the same length with the same beginning or end."""
        for length in range(len(word) - slips, len(word) + slips + 1):
            first = self._buckets.get((length, word[0], True), {})
            yield from first
            last = self._buckets.get((length, word[-1], False), {})
            yield from (other for other in last if other not in first)


def nearest(name: str, names: Iterable[str], limit: int = 3) -> list[str]:
    """Return the names most like one that does not exist, best first."""
    # Only a wrong name needs the library; to load it takes longer than to start.
    from rapidfuzz import fuzz, process, utils  # noqa: PLC0415
    from rapidfuzz.distance import OSA  # noqa: PLC0415

    text, likely = name[:LONGEST_LIKENED], list(dict.fromkeys(names))
    if len(likely) > CLOSELY:
        # Of many, only those are looked at closely that are spelled like it at all.
        spelled = process.extract(text.lower(), likely, scorer=fuzz.ratio, limit=CLOSELY)
        likely = [choice for choice, _, _ in spelled]
    found = process.extract(
        text,
        sorted(likely),
        scorer=fuzz.WRatio,
        processor=utils.default_process,
        limit=max(limit, AMONG),
        score_cutoff=LIKE,
    )
    # A part of a longer name is like it, too, but a slip is likelier.
    wanted = utils.default_process(text)
    read = {each: utils.default_process(each) for each, _, _ in found}
    slips = {each: min(OSA.distance(wanted, its), 2) for each, its in read.items()}
    # Many that have a word in common are equally like it.
    whole = {each: fuzz.ratio(wanted, its) for each, its in read.items()}
    ordered = sorted(found, key=lambda each: (slips[each[0]], -each[1], -whole[each[0]]))
    return [choice for choice, _, _ in ordered[:limit]]


def likening(name: str, number: int) -> int:
    """Return the steps of an effort that it costs to find the nearest of so many names."""
    return number * (LIKENED_FREE + min(len(name), LONGEST_LIKENED)) // LIKENED_IN_A_STEP


def _buckets(word: str) -> Iterator[tuple[int, str, bool]]:
    if word:
        yield len(word), word[0], True
        yield len(word), word[-1], False


def _lines_with(part: str, lines: str) -> Iterator[str]:
    """Yield each line that has a part."""
    at = lines.find(part)
    while at >= 0:
        # A part may begin with the break before its line.
        begin = at + 1 if part[0] == "\n" else lines.rfind("\n", 0, at) + 1
        end = lines.find("\n", begin)
        yield lines[begin:end]
        at = lines.find(part, end)
