"""From what each tool is worth to the order in which tools are shown: one way for all queries."""

from collections.abc import Iterable, Sequence

from aggregator.search.blend import blend, nearest
from aggregator.search.concepts import Request
from aggregator.search.nearness import Nearness
from aggregator.search.scoring import Score
from aggregator.search.spread import Suspect, spread
from aggregator.search.weights import SEVERAL_NEEDS, Weights


def pick(
    scores: Sequence[Score],
    limit: int,
    suspicion: Suspect,
    weights: Weights,
    *,
    request: Request,
    near: Nearness | None = None,
) -> list[Score]:
    """Return the best of some tools for a request, best first.

    Meaning is one more ingredient of what a tool is worth; what follows is the same.
    """
    by_words = _ordered(scores)
    has_several_needs = len(request.concepts) >= SEVERAL_NEEDS
    if near is None:
        return spread(
            by_words, limit, weights.by_words, suspicion, has_several_needs=has_several_needs
        )
    first = spread(by_words, 1, weights.by_words, suspicion)
    blend(scores, near, weights.blending)
    picked = spread(
        _ordered(scores),
        limit,
        weights.by_meaning,
        suspicion,
        has_several_needs=has_several_needs,
    )
    firsts = _ordered({*first, *nearest(scores, near, weights.blending)})
    return _admit(firsts, picked, weights.blending.few)


def _ordered(scores: Iterable[Score]) -> list[Score]:
    """Put the best first; equals by their words, and then in the order of the catalog."""
    found = sorted(scores, key=lambda score: (-score.worth, -score.total, score.place))
    if any(score.called for score in found):
        found.sort(key=lambda score: (-score.called, -score.written))
    return found


def _admit(firsts: Sequence[Score], picked: list[Score], few: int) -> list[Score]:
    """Let what either ranking has first be among the first few, in place of their last."""
    head = picked[:few]
    for score in firsts if len(head) == few else ():
        if score not in head:
            leaving = [each for each in head if each not in firsts][-1]
            head = [each for each in head if each is not leaving] + [score]
    return (head + [score for score in picked if score not in head])[: len(picked)]
