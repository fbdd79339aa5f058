"""What a query asks for, in the words the index knows."""

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import pairwise
from math import log
from typing import NamedTuple

from aggregator.basics.frozen import frozen
from aggregator.search.analysis import stop_free
from aggregator.search.chinese import meanings
from aggregator.search.lexicon import equivalents, faint, topics
from aggregator.search.query import Keywords
from aggregator.search.rarity import Rarity
from aggregator.search.repair import Vocabulary
from aggregator.search.weights import (
    LONG_REQUEST,
    LONG_WINDED,
    MAX_CONCEPTS,
    MAX_CONTAINING,
    MAX_GUESSES,
    MAX_TERMS,
    NEGLIGIBLE,
    OPENING,
    SHORTEST_GUESS,
    Weights,
)
from aggregator.search.words import stem, tokens, words

Postings = Mapping[str, Mapping[int, float]]

_QUOTED = re.compile(r"""(?<!\w)(?:'[^']{2,80}'|"[^"]{2,80}"|\u201c[^\u201d]{2,80}\u201d)(?!\w)""")
"""What stands in quotes."""
_PATH = re.compile(
    r"(?<![\w.:/~-])[\w.:/~-]*[\w-]\.(?:csv|docx?|gif|html?|jpe?g|json|log|md|mp[34]|pdf|png|pptx?"
    r"|py|svg|txt|wav|xlsx?|xml|ya?ml|zip)\b(?!://)",
    re.IGNORECASE,
)
"""Where a file is, or what it is called."""
_QUESTION = frozenset({"what", "when", "where", "which", "who", "whose"})
"""Words at the beginning of a request that wants to be told something."""
_TELLING = stem("get")
"""What the names of tools say that tell something."""
_FILE = stem("file")
"""What tools say that take a path."""


class Alternative(NamedTuple):
    """One word of the index that may stand for a word of the query."""

    term: str
    gain: float
    """What a full match of it is worth."""


@frozen
class Concept:
    """One word of the query, and all that may stand for it, best first."""

    word: str
    alternatives: tuple[Alternative, ...]

    @property
    def gain(self) -> float:
        """What the concept is worth at most."""
        return self.alternatives[0].gain


@frozen
class Request:
    """What a query asks for."""

    words: tuple[str, ...]
    """Every word as written, once each."""
    concepts: tuple[Concept, ...]
    """Those the index knows something of, in the order of the query."""
    pairs: tuple[tuple[int, int], ...]
    """Concepts whose words stand side by side in the query, by position."""
    spoken: int
    """How many words stand side by side in the query, also those the index knows nothing of."""

    @property
    def gain(self) -> float:
        """What a tool that answers everything fully would be worth."""
        return sum(concept.gain for concept in self.concepts)


class Word(NamedTuple):
    """One word of the query before the index is asked."""

    text: str
    factor: float = 1.0


class Reader:
    """Reads one query against one state of the index."""

    def __init__(
        self, postings: Postings, rarity: Rarity, vocabulary: Vocabulary, weights: Weights
    ) -> None:
        self._postings = postings
        self._rarity = rarity
        self._vocabulary = vocabulary
        self._weights = weights
        self._guesses = 0
        self._repaired = weights.repaired
        self._same, self._about = weights.equivalent, weights.topic

    def read(self, query: Keywords) -> Request:
        """Return what the words of a query stand for."""
        spoken = tokens(" ".join(query.terms))[:MAX_TERMS]
        if len(spoken) > LONG_REQUEST:
            self._repaired = self._weights.doubted
        if len(spoken) > LONG_WINDED:
            self._same = self._about = 0.0
        every = dict.fromkeys(part for parts in spoken for part in parts)
        telling = frozenset(stop_free(every))
        said = [word for parts in spoken for word in self._told(parts, telling)]
        paths = _values(query.text, _PATH) if "." in query.text else None
        quoted = _values(query.text, _QUOTED) if len(spoken) > LONG_REQUEST else None
        if values := (paths or frozenset()) | (quoted or frozenset()):
            less = self._weights.quoted
            said = [Word(text, part * less if text in values else part) for text, part in said]
        implied: dict[str, Word] = {}
        if paths is not None:
            implied[_FILE] = Word("file")
        if asking := next((word for word in list(every)[:OPENING] if word in _QUESTION), None):
            implied[_TELLING] = Word(asking, self._weights.asked)
        return self._request(tuple(every), said, implied)

    def _told(self, humps: tuple[str, ...], telling: Container[str]) -> Iterator[Word]:
        """Take a word of humps apart; if the whole is known, it counts more than its parts."""
        whole = "".join(humps)
        known = len(humps) > 1 and stem(whole) in self._postings
        if known:
            yield Word(whole)
        for hump in humps:
            if hump in telling:
                yield Word(hump, self._weights.humps if known else 1.0)

    def _request(
        self, words: tuple[str, ...], said: Sequence[Word], implied: Mapping[str, Word]
    ) -> Request:
        """Bring together what is said more than once, and look each word up."""
        stems = [stem(word.text) for word in said]
        counting = self._rarest(stems)
        joined = _run_together(said, stems, counting)
        concepts: dict[str, Concept] = {}
        for term, word in zip(stems, said, strict=True):
            if term in concepts or term not in counting:
                continue
            if alternatives := self._alternatives(term, word, joined.get(term, ())):
                concepts[term] = Concept(word.text, alternatives)
        for term, word in implied.items() if concepts else ():
            if term in self._postings and term not in concepts:
                concepts[term] = Concept(word.text, self._alternatives(term, word, ()))
        places = {term: at for at, term in enumerate(concepts)}
        spoken = {pair: None for pair in pairwise(stems) if counting.issuperset(pair)}
        pairs = [pair for pair in spoken if pair[0] in places and pair[1] in places]
        return Request(
            words,
            tuple(concepts.values()),
            tuple((places[first], places[second]) for first, second in pairs),
            len(spoken),
        )

    def _rarest(self, stems: Sequence[str]) -> frozenset[str]:
        """Return the words that say most; in all but very long queries these are all."""
        distinct = frozenset(stems)
        if len(distinct) <= MAX_CONCEPTS:
            return distinct
        having = {term: len(self._postings.get(term, ())) for term in distinct}
        # What no tool has would have to be guessed at: that comes last.
        ordered = sorted(distinct, key=lambda term: (not having[term], having[term], term))
        return frozenset(ordered[:MAX_CONCEPTS])

    def _alternatives(
        self, term: str, word: Word, joined: Sequence[str]
    ) -> tuple[Alternative, ...]:
        """Return everything in the index that may stand for a word, best first."""
        weights = self._weights
        having = len(self._postings.get(term, ()))
        ceiling = self._rarity.of(term) if having else log(1 + self._rarity.total)
        found = {term: 1.0} if having else {}
        self._offer(found, joined, weights.joined)
        if not term.isascii():
            self._offer(found, meanings().get(term, ()), weights.translated)
        self._offer(found, equivalents().get(term, ()), self._same)
        about = self._about * weights.familiar / (weights.familiar + having)
        self._offer(found, topics().get(term, ()), about)
        found = found or self._guessed(word.text)
        factor = word.factor * (weights.faint if term in faint() else 1.0)
        alternatives = [
            Alternative(each, factor * part * min(ceiling, self._rarity.of(each)))
            for each, part in found.items()
        ]
        alternatives.sort(key=lambda each: (-each.gain, each.term))
        return tuple(alternatives)

    def _offer(self, found: dict[str, float], terms: Sequence[str], part: float) -> None:
        """Add the terms the index has, unless they are there already or hardly count."""
        if part >= NEGLIGIBLE:
            for term in terms:
                if term in self._postings:
                    found.setdefault(term, part)

    def _guessed(self, text: str) -> dict[str, float]:
        """Return words that an unknown one is a misspelling of, or is made of, or is a part of."""
        self._guesses += 1
        if self._guesses > MAX_GUESSES:
            return {}
        if near := self._vocabulary.nearest(text):
            likely, part = [near], self._repaired
        else:
            likely = self._halves(text) or self._vocabulary.containing(text, MAX_CONTAINING)
            part = self._weights.contained
        stems = (stem(each) for each in likely)
        return {term: part for term in stems if term in self._postings}

    def _halves(self, text: str) -> Sequence[str]:
        """Return the two words that one is written together of, if there are such: `houseplant`."""
        for cut in range(len(text) - SHORTEST_GUESS, SHORTEST_GUESS - 1, -1):
            halves = text[:cut], text[cut:]
            if all(stem(half) in self._postings for half in halves):
                return halves
        return ()


def _values(text: str, form: re.Pattern[str]) -> frozenset[str] | None:
    """Return the words that only stand in what has this form, if a text is mostly about others."""
    if not (found := form.findall(text)):
        return None
    inside = frozenset(words(" ".join(found)))
    outside = frozenset(words(form.sub(" ", text)))
    return inside - outside if len(inside) < len(outside) else frozenset()


def _run_together(
    said: Sequence[Word], stems: Sequence[str], counting: Container[str]
) -> dict[str, list[str]]:
    """Return what each word that counts makes together with its neighbours."""
    found: dict[str, list[str]] = {}
    for at, (first, second) in enumerate(pairwise(said)):
        if stems[at] not in counting and stems[at + 1] not in counting:
            continue
        whole = stem(first.text + second.text)
        found.setdefault(stems[at], []).append(whole)
        found.setdefault(stems[at + 1], []).append(whole)
    return found
