"""Picking hits so that one server, or one text copied many times, does not take every place."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence

from aggregator.names import ServerName
from aggregator.search.analysis import Document
from aggregator.search.copies import alike
from aggregator.search.origins import Suspicion
from aggregator.search.scoring import Score
from aggregator.search.weights import Weights

FREE = 1
"""Further tools of one server that are shown before the next ones count less."""
FIRST = 3
"""Places for which what speaks against a tool outweighs all that its text has of the request."""
PLACES = 10
"""Places that are filled one by one; each costs more than the one before."""
CLOSE = 0.8
"""The part of a score that a copy has at least."""

Suspect = Callable[[Document], Suspicion]


def spread(
    ordered: Sequence[Score], limit: int, weights: Weights, suspicion: Suspect
) -> list[Score]:
    """Pick the best one by one; what a server or a text has shown before counts less."""
    left = list(ordered)
    picked: list[Score] = []
    named = defaultdict[frozenset[str], list[Score]](list)
    for score in left:
        named[score.document.named].append(score)
    doubted = {score.document.host.name for score in left if score.stuffed}
    while left and len(picked) < min(limit, PLACES):
        # Whatever else there is, a tool that the query names comes first.
        first = not picked and left[0].called
        best = left[0] if first else _freshest(left, picked, doubted, weights)
        chosen = _original(best, named, suspicion)
        left.remove(chosen)
        named[chosen.document.named].remove(chosen)
        picked.append(chosen)
        if chosen.echo:
            doubted.add(chosen.document.host.name)
    return picked + left[: max(0, limit - len(picked))]


def _freshest(
    left: Sequence[Score],
    picked: Sequence[Score],
    doubted: Collection[ServerName],
    weights: Weights,
) -> Score:
    """Return what is worth most after all that has been picked."""
    chosen, most = left[0], -1.0
    for score in left:
        if score.total <= most:
            break
        factor, is_bounded = _freshness(score, picked, doubted, weights)
        total = score.total
        if is_bounded and len(picked) < FIRST:
            total = min(total, _best_of_others(score, left, doubted))
        if total * factor > most:
            chosen, most = score, total * factor
    return chosen


def _freshness(
    score: Score, picked: Sequence[Score], doubted: Collection[ServerName], weights: Weights
) -> tuple[float, bool]:
    """Return what is left of a score, and whether it is bounded by what others have."""
    beside, twins, is_alike = 0, 0, False
    document = score.document
    host, signature = document.host, document.signature
    for each in picked:
        other = each.document
        beside += other.host is host
        if other.signature == signature:
            twins += 1
        elif not is_alike:
            is_alike = alike(document, other)
    twins = twins or is_alike
    factor = weights.twin**twins
    # Who calls a server by its name wants that server's tools, however many.
    if score.at_home:
        return factor, bool(twins)
    is_doubted = host.name in doubted
    factor *= weights.crowding ** max(0, beside - FREE) * weights.echo**is_doubted
    return factor, bool(twins) or is_doubted


def _best_of_others(score: Score, left: Sequence[Score], doubted: Collection[ServerName]) -> float:
    """Return the best score of a server in good standing, without that of one tool."""
    host = score.document.host
    totals = (
        each.total
        for each in left
        if each.document.host is not host and each.document.host.name not in doubted
    )
    return next(totals, score.total)


def _original(
    chosen: Score, named: Mapping[frozenset[str], Sequence[Score]], suspicion: Suspect
) -> Score:
    """Return what is shown for all that say the same as one tool."""
    # Who calls a server by its name wants the tool of that server.
    if chosen.at_home:
        return chosen
    # Who copies a tool leaves its name as it is, or adds to it.
    document, bar = chosen.document, CLOSE * chosen.total
    name, same = document.named, document.signature
    names = [name, *[name - {word} for word in name]] if len(name) > 1 else [name]
    near = [score for meant in names for score in named.get(meant, ())]
    copies = [
        score
        for score in near
        if score.document.host is not document.host
        and score.called >= chosen.called
        and (
            score.document.signature == same
            or (score.total >= bar and alike(document, score.document))
        )
    ]
    if not copies:
        return chosen
    return min(
        [chosen, *copies],
        key=lambda each: (suspicion(each.document), -each.total, each.place),
    )
