"""What a query asks for, in the words the index knows."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import log

from aggregator.search.equivalents import EQUIVALENTS, STOP_WORDS
from aggregator.search.query import MAX_TERMS, Keywords
from aggregator.search.repair import Vocabulary
from aggregator.search.weights import Weights
from aggregator.search.words import stem, tokens

MAX_REPAIRS = 8
"""Unknown words of one query that are looked up by likeness; the rest match nothing."""
MAX_CONTAINING = 8
"""Words that one part of a word may stand for."""

Postings = Mapping[str, Mapping[int, float]]


@dataclass(frozen=True, slots=True)
class Alternative:
    """One word of the index that may stand for a word of the query."""

    term: str
    gain: float
    """What a full match of it is worth."""


@dataclass(frozen=True, slots=True)
class Concept:
    """One word of the query, and all that may stand for it, best first."""

    word: str
    alternatives: tuple[Alternative, ...]

    @property
    def gain(self) -> float:
        """What the concept is worth at most."""
        return max((each.gain for each in self.alternatives), default=0.0)


@dataclass(frozen=True, slots=True)
class Word:
    """One word of the query before the index is asked."""

    text: str
    factor: float = 1.0
    joined: tuple[str, ...] = ()
    """What it makes together with its neighbours."""


class Reader:
    """Reads queries against one state of the index."""

    def __init__(
        self, postings: Postings, total: int, vocabulary: Vocabulary, weights: Weights
    ) -> None:
        self._postings = postings
        self._total = total
        self._vocabulary = vocabulary
        self._weights = weights
        self._repairs = 0

    def concepts(self, query: Keywords) -> list[Concept]:
        """Return what the words of a query stand for, in the order of the query."""
        return [self._concept(word) for word in self._words(query)]

    def _words(self, query: Keywords) -> list[Word]:
        """Return the distinct words of a query that mean something."""
        parts = [parts for term in query.terms for parts in tokens(term)][:MAX_TERMS]
        every = self._separate(parts)
        telling = [word for word in every if word.text not in STOP_WORDS] or every
        linked = [
            replace(word, joined=tuple(before.text + word.text for before in telling[at - 1 : at])
                    + tuple(word.text + after.text for after in telling[at + 1 : at + 2]))
            for at, word in enumerate(telling)
        ]  # fmt: skip
        return list({stem(word.text): word for word in reversed(linked)}.values())[::-1]

    def _separate(self, parts: list[tuple[str, ...]]) -> list[Word]:
        """Take words of humps apart; if the whole is known, it counts more than its parts."""
        found: list[Word] = []
        for humps in parts:
            whole = "".join(humps)
            known = len(humps) > 1 and stem(whole) in self._postings
            factor = self._weights.part if known else 1.0
            found += [Word(whole)] * known
            found += [Word(hump, factor) for hump in humps]
        return found

    def _concept(self, word: Word) -> Concept:
        term = stem(word.text)
        found: dict[str, float] = {}
        if term in self._postings:
            found[term] = self._rarity(term) * word.factor
        ceiling = found.get(term, log(1 + self._total) * word.factor)
        joined = [stem(each) for each in word.joined]
        for other in (each for each in joined if each in self._postings):
            found.setdefault(other, 0.9 * min(ceiling, self._rarity(other)))
        equal = self._weights.equivalent * word.factor
        for other in EQUIVALENTS.get(term, ()):
            if other in self._postings:
                found.setdefault(other, equal * min(ceiling, self._rarity(other)))
        if not found:
            found = self._guessed(word)
        ordered = sorted(found.items(), key=lambda each: (-each[1], each[0]))
        return Concept(word.text, tuple(Alternative(other, gain) for other, gain in ordered))

    def _guessed(self, word: Word) -> dict[str, float]:
        """Return words of names that an unknown word is a part of, or a misspelling of."""
        if self._repairs >= MAX_REPAIRS:
            return {}
        self._repairs += 1
        near = self._vocabulary.nearest(word.text)
        likely = [near] if near else self._vocabulary.containing(word.text, MAX_CONTAINING)
        terms = [stem(each) for each in likely]
        factor = word.factor * (0.9 if near else 0.5)
        return {each: factor * self._rarity(each) for each in terms if each in self._postings}

    def _rarity(self, term: str) -> float:
        """Return how much it says that a tool has this word."""
        having = len(self._postings[term])
        return log(1 + (self._total - having + 0.5) / (having + 0.5))
