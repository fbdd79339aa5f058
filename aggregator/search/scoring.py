"""Scoring: how well tools answer a request."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from aggregator.search.analysis import Document
from aggregator.search.concepts import Alternative, Concept, Postings, Request
from aggregator.search.naming import Called
from aggregator.search.weights import (
    BUDGET,
    ECHO_PAIRS,
    ECHO_SHARE,
    HOPELESS,
    LEEWAY,
    RELATED,
    SCARCE,
    STUFFED_PAIRS,
    WORDY,
    Weights,
)

Place = tuple[int, str, int]
"""Where a tool stands in the catalog: what decides ties."""


@dataclass(slots=True, eq=False)
class Score:
    """What one tool has of a request."""

    document: Document
    place: Place
    words: float = 0.0
    """What its words are worth one by one."""
    covered: float = 0.0
    held: int = 0
    """The concepts it has something of, as bits."""
    pairs: int = 0
    """The words of the request that stand side by side in it, too."""
    echo: bool = False
    """Whether it repeats the request nearly word for word, though its server is not named."""
    stuffed: bool = False
    """Whether a long request is in the midst of its text, and it begins with something else."""
    in_name: int = 0
    in_host: int = 0
    coverage: float = 0.0
    together: float = 0.0
    named: float = 0.0
    hosted: float = 0.0
    outdated: float = 0.0
    """What it loses for being deprecated."""
    learned: float = 0.0
    """What it gains for having been called after like requests."""
    total: float = 0.0
    """What all of that is worth together."""
    meaning: float = 0.0
    """What its meaning adds, where that counts."""
    worth: float = 0.0
    """What it is ranked by: the total, or what that and its meaning are worth."""
    called: Called = Called.NO
    """Whether the query is the name of the tool."""
    written: int = 0
    """How much of that name is in it letter by letter, where it is compared at all."""

    def __repr__(self) -> str:
        return f"<Score {self.document.entry.name}: {self.worth:.2f}>"

    def blend(self, meaning: float, share: float) -> None:
        """Rank it by its meaning, and by a share of what its words are worth."""
        self.meaning = meaning
        self.worth = share + meaning

    def lift(self, share: float) -> None:
        """Add a share of what it has for what was called after like requests."""
        self.learned = share * self.total
        self.total += self.learned
        self.worth = self.total

    def name(self, called: Called, written: int) -> None:
        """Take note of how far the request is its name, and how much of that is written out."""
        self.called, self.written = called, written

    @property
    def at_home(self) -> bool:
        """Whether the query has the whole name of its server."""
        return self.in_host >= len(self.document.host.stems)


def promising(request: Request, postings: Postings, allowed: set[int] | None) -> dict[int, float]:
    """Return the tools that may be worth a closer look, with a first guess of their score."""
    guesses: dict[int, float] = {}
    visited = 0
    for holders, gain in _entrances(request, postings, allowed):
        visited += len(holders)
        if not guesses:
            guesses = {slot: gain * impact for slot, impact in holders.items()}
        elif visited <= BUDGET:
            for slot, impact in holders.items():
                guesses[slot] = guesses.get(slot, 0.0) + gain * impact
        else:
            for slot in guesses.keys() & holders.keys():
                guesses[slot] += gain * holders[slot]
    return guesses


def _entrances(
    request: Request, postings: Postings, allowed: set[int] | None
) -> list[tuple[Mapping[int, float], float]]:
    """Return the postings to begin with, those of rare words first; numbers are values."""
    ways = [way for concept in request.concepts for way in _ways_in(concept, postings)]
    ways.sort(key=lambda each: (_has_digits(each.term), len(postings[each.term]), each.term))
    if allowed is None:
        return [(postings[each.term], each.gain) for each in ways]
    return [(_only(postings[each.term], allowed), each.gain) for each in ways]


def _has_digits(term: str) -> bool:
    return not term.isalpha() and any(map(str.isdigit, term))


def _ways_in(concept: Concept, postings: Postings) -> Sequence[Alternative]:
    first = concept.alternatives[0]
    return concept.alternatives if len(postings[first.term]) < SCARCE else (first,)


def _only(holders: Mapping[int, float], allowed: set[int]) -> Mapping[int, float]:
    return {slot: holders[slot] for slot in holders.keys() & allowed}


def best(
    guesses: Mapping[int, float], places: Mapping[int, Place], least: int, most: int
) -> list[int]:
    """Return the tools with the best first guesses, without those that have no hope."""
    if len(guesses) <= least:
        return list(guesses)
    bar = HOPELESS * max(guesses.values())
    found = [slot for slot, guess in guesses.items() if guess >= bar]
    if len(found) > most:
        found = _top({slot: guesses[slot] for slot in found}, places, most)
    elif len(found) < least:
        found = _top(guesses, places, least)
    ((server, count),) = Counter([places[slot][1] for slot in found]).most_common(1)
    return found if 2 * count <= len(found) else _shared_out(guesses, places, server, most)


def _shared_out(
    guesses: Mapping[int, float], places: Mapping[int, Place], server: str, size: int
) -> list[int]:
    """Return the best of which one server has no more than half, if others have the rest."""
    own = {slot: guess for slot, guess in guesses.items() if places[slot][1] == server}
    others = {slot: guess for slot, guess in guesses.items() if slot not in own}
    room = min(len(others), size // 2)
    return _top(others, places, room) + _top(own, places, min(len(own), size - room))


def _top(guesses: Mapping[int, float], places: Mapping[int, Place], size: int) -> list[int]:
    """Return as many of the best, in no order; of equals those that come first in the catalog."""
    bar = sorted(guesses.values())[-size] if size else inf
    found = [slot for slot, guess in guesses.items() if guess >= bar]
    if len(found) > size:
        found.sort(key=lambda slot: (-guesses[slot], places[slot]))
    return found[:size]


def complete(
    scores: Mapping[int, Score], request: Request, postings: Postings, weights: Weights
) -> None:
    """Work out what each of some tools has of a request."""
    for at, concept in enumerate(request.concepts):
        _match(scores, 1 << at, concept, postings)
    _reward_neighbours(scores.values(), request, weights.together)
    # Who repeats a request has also what no other tool has, so that the index knows all of it.
    whole, echo = request.gain or 1.0, max(ECHO_PAIRS, ECHO_SHARE * request.spoken)
    for score in scores.values():
        score.echo = score.pairs >= echo and not score.at_home
        score.stuffed = score.echo and _is_stuffed(score, request, echo)
        _add_up(score, whole, weights)


def _is_stuffed(score: Score, request: Request, echo: float) -> bool:
    """Tell whether a tool has a long request in the midst, and begins with something else."""
    pairs = len(request.pairs)
    if pairs < STUFFED_PAIRS:
        return False
    document, described = score.document, score.document.described
    opening = document.named.union(described[:LEEWAY])
    about = sum(each.gain for each in request.concepts if each.alternatives[0].term in opening)
    if about >= RELATED * request.gain:
        return False
    beginning = f" {' '.join(described[: pairs + LEEWAY])} "
    terms = [concept.alternatives[0].term for concept in request.concepts]
    told = (f" {terms[first]} {terms[second]} " in beginning for first, second in request.pairs)
    return sum(told) < echo


def _match(scores: Mapping[int, Score], bit: int, concept: Concept, postings: Postings) -> None:
    """Note what each tool has of one concept: the best alternative it holds counts."""
    left = set(scores)
    for each in concept.alternatives:
        holders, term, gain = postings[each.term], each.term, each.gain
        having = holders.keys() & left
        for slot in having:
            score = scores[slot]
            score.words += gain * holders[slot]
            score.covered += gain
            score.held |= bit
            if term in score.document.named:
                score.named += gain
                score.in_name += 1
            if term in score.document.host.stems:
                score.hosted += gain
                score.in_host += 1
        left -= having


def _reward_neighbours(scores: Iterable[Score], request: Request, weight: float) -> None:
    """Reward tools in which words stand side by side as they do in the query."""
    for first, second in request.pairs:
        one, two = (request.concepts[at].alternatives[0] for at in (first, second))
        sought = f" {one.term} {two.term} "
        worth = weight * (one.gain + two.gain) / 2
        both = 1 << first | 1 << second
        for score in scores:
            if score.held & both == both and sought in score.document.sequence:
                score.pairs += 1
                # In a long text any two words meet somewhere.
                score.together += worth * min(1.0, WORDY / len(score.document.terms))


def _add_up(score: Score, whole: float, weights: Weights) -> None:
    """Reward an answer to much of the query, and names that the query has wholly."""
    names, hosts = len(score.document.named), len(score.document.host.stems)
    score.coverage = weights.coverage * score.words * score.covered / whole
    score.named *= weights.named * min(score.in_name, names) / (1 + names)
    score.hosted *= weights.hosted * min(score.in_host, hosts) / (1 + hosts)
    brought = score.words + score.coverage + score.together + score.named + score.hosted
    score.outdated = -weights.outdated * brought * score.document.is_deprecated
    score.total = brought + score.outdated
    score.worth = score.total
