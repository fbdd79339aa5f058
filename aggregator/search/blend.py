"""Words and meaning: one score of two."""

from collections.abc import Collection

from aggregator.search.nearness import Nearness
from aggregator.search.scoring import Score
from aggregator.search.weights import Blending


def blend(scores: Collection[Score], near: Nearness, weights: Blending) -> None:
    """Make what each tool is worth a sum: its words beside the best, and how near it is.

    Likeness is the same for every query, so a query that is near to nothing goes by its words.
    """
    # Who repeats the query is no measure for the others, and no nearer than they are.
    echoing = {score.document.host.name for score in scores if score.echo}
    plain = [score for score in scores if score.document.host.name not in echoing] or scores
    best = max((score.total for score in plain), default=0.0) or 1.0
    usual, most = near.usual, near.most(echoing)
    reach = (most if most > usual else near.most()) - usual
    for score in scores:
        beyond = near.of(score.document.entry) - usual
        meaning = max(0.0, min(beyond, reach)) / near.scale
        score.blend(meaning, weights.words * min(1.0, score.total / best))


def nearest(scores: Collection[Score], near: Nearness, weights: Blending) -> list[Score]:
    """Return the nearest of some tools, if it is near enough."""
    found = max(scores, key=lambda score: near.of(score.document.entry), default=None)
    if found is None or near.of(found.document.entry) < weights.distant * near.scale:
        return []
    return [found]
