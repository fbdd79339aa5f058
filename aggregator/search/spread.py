"""Picking hits so that one server, or one text copied many times, does not take every place."""

from collections import Counter
from collections.abc import Mapping, Sequence

from aggregator.search.scoring import Score
from aggregator.search.weights import Weights

FREE = 2
"""Tools of one server that are shown before the next ones count less."""


def spread(ordered: Sequence[Score], limit: int, weights: Weights) -> list[Score]:
    """Pick the best one by one; what a server or a text has shown before counts less."""
    left = list(ordered)
    shown: Counter[object] = Counter()
    picked: list[Score] = []
    while left and len(picked) < limit:
        # Whatever else there is, a tool that the query names comes first.
        first = not picked and left[0].called
        chosen = left.pop(0 if first else _freshest(left, shown, weights))
        picked.append(chosen)
        shown.update((chosen.document.host.name, chosen.document.signature))
    return picked


def _freshest(left: Sequence[Score], shown: Mapping[object, int], weights: Weights) -> int:
    """Return the position of what is worth most after all that has been shown."""
    chosen, most = 0, -1.0
    for at, score in enumerate(left):
        if score.total <= most:
            break
        worth = score.total * _freshness(score, shown, weights)
        if worth > most:
            chosen, most = at, worth
    return chosen


def _freshness(score: Score, shown: Mapping[object, int], weights: Weights) -> float:
    """Return what is left of a score after what its server and its text have shown."""
    document = score.document
    twins = shown[document.signature]
    # Who calls a server by its name wants that server's tools, however many.
    crowd = 0 if score.at_home else max(0, shown[document.host.name] - FREE)
    return weights.twin**twins * weights.crowding**crowd
