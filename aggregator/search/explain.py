"""Why a tool was found: which words, in which fields, for how much."""

from collections.abc import Iterator

from aggregator.search.analysis import content, strengths
from aggregator.search.concepts import Concept, Request
from aggregator.search.hits import Contribution
from aggregator.search.scoring import Score
from aggregator.search.weights import Field, Weights


def contributions(request: Request, score: Score, weights: Weights) -> tuple[Contribution, ...]:
    """Return the parts of which the score of a tool is the sum."""
    found = strengths(content(score.document.entry, score.document.host), weights)
    words = [
        part
        for concept in request.concepts
        for part in _of_word(concept, found, weights.saturation)
    ]
    return (*words, *_of_all(score), *_of_name(request, score))


def _of_word(
    concept: Concept, found: dict[str, dict[Field, float]], saturation: float
) -> Iterator[Contribution]:
    """Yield what the best alternative of one word brought, field by field."""
    for each in concept.alternatives:
        if by_field := found.get(each.term):
            scale = each.gain / (sum(by_field.values()) + saturation)
            for field, strength in by_field.items():
                yield Contribution(concept.word, each.term, field.value, strength * scale)
            return


def _of_all(score: Score) -> Iterator[Contribution]:
    """Yield what the words brought together."""
    parts = {
        "coverage": score.coverage,
        "together": score.together,
        "named": score.named,
        "hosted": score.hosted,
        "outdated": score.outdated,
        "learned": score.learned,
    }
    return (Contribution("", "", name, worth) for name, worth in parts.items() if worth)


def _of_name(request: Request, score: Score) -> Iterator[Contribution]:
    """Yield that the query is the name of the tool, if it is."""
    if score.called:
        yield Contribution(" ".join(request.words), " ".join(score.document.parts), "called", 0.0)
