"""Words and meaning: one score of two."""

from collections.abc import Collection

from aggregator.search.nearness import Nearness
from aggregator.search.scoring import Score
from aggregator.search.weights import Blending


def blend(scores: Collection[Score], near: Nearness, weights: Blending) -> None:
    """Make what each tool is worth a weighted sum of both, each as a part of its best."""
    # Who repeats the query is no measure for the others.
    echoing = {score.document.host.name for score in scores if score.echo}
    plain = [score for score in scores if score.document.host.name not in echoing] or scores
    best = max((score.total for score in plain), default=0.0)
    usual, nearest = near.usual, near.most(echoing)
    reach = (nearest if nearest > usual else near.most()) - usual or 1.0
    for score in scores:
        likeness = near.of(score.document.entry)
        meaning = weights.meaning * min(1.0, max(0.0, likeness - usual) / reach)
        score.blend(meaning, (1 - weights.meaning) * min(1.0, score.total / (best or 1.0)))


def nearest(scores: Collection[Score], near: Nearness, weights: Blending) -> list[Score]:
    """Return the nearest of some tools, if it is near enough."""
    found = max(scores, key=lambda score: near.of(score.document.entry), default=None)
    if found is None or near.of(found.document.entry) < weights.distant * near.scale:
        return []
    return [found]
