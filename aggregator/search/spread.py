"""Picking hits so that one server, or one text copied many times, does not take every place."""

from collections.abc import Sequence

from aggregator.search.analysis import Document, numberless
from aggregator.search.scoring import Score
from aggregator.search.weights import Weights

FREE = 1
"""Further tools of one server that are shown before the next ones count less."""
PLACES = 10
"""Places that are filled one by one; each costs more than the one before."""
ALIKE = 0.8
"""The share of words from which two tools of one server count as the same."""


def spread(ordered: Sequence[Score], limit: int, weights: Weights) -> list[Score]:
    """Pick the best one by one; what a server or a text has shown before counts less."""
    left = list(ordered)
    picked: list[Score] = []
    while left and len(picked) < min(limit, PLACES):
        # Whatever else there is, a tool that the query names comes first.
        first = not picked and left[0].called
        picked.append(left.pop(0 if first else _freshest(left, picked, weights)))
    return picked + left[: max(0, limit - len(picked))]


def _freshest(left: Sequence[Score], picked: Sequence[Score], weights: Weights) -> int:
    """Return the position of what is worth most after all that has been picked."""
    chosen, most = 0, -1.0
    for at, score in enumerate(left):
        if score.total <= most:
            break
        worth = score.total * _freshness(score, picked, weights)
        if worth > most:
            chosen, most = at, worth
    return chosen


def _freshness(score: Score, picked: Sequence[Score], weights: Weights) -> float:
    """Return what is left of a score after what its server and its text have shown."""
    document = score.document
    beside = [each for each in picked if each.document.host is document.host]
    twins = sum(each.document.signature == document.signature for each in picked)
    twins = twins or any(_alike(document, other.document) for other in beside)
    return weights.twin**twins * _room(score, beside, weights)


def _room(score: Score, beside: Sequence[Score], weights: Weights) -> float:
    """Return what is left of a score after other tools of its server."""
    # Who calls a server by its name wants that server's tools, however many.
    if not beside or score.at_home:
        return 1.0
    echoed = any(each.echo for each in beside)
    return weights.crowding ** max(0, len(beside) - FREE) * weights.echo**echoed


def _alike(one: Document, other: Document) -> bool:
    """Tell whether two tools have nearly all their words in common, or all of their names."""
    if numberless(one.named) == numberless(other.named):
        return True
    shorter, longer = sorted((len(one.terms), len(other.terms)))
    if shorter < ALIKE * longer:
        return False
    common = len(set(one.terms).intersection(other.terms))
    return common >= ALIKE * (shorter + longer - common)
