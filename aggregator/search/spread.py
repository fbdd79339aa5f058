"""Picking hits so that one server, or one text copied many times, does not take every place."""

from collections.abc import Callable, Collection, Sequence

from aggregator.names import ServerName
from aggregator.search.analysis import Document, Host, numberless
from aggregator.search.origins import Suspicion
from aggregator.search.scoring import Score
from aggregator.search.weights import Weights

FREE = 1
"""Further tools of one server that are shown before the next ones count less."""
FIRST = 3
"""Places for which what speaks against a tool outweighs all that its text has of the request."""
PLACES = 10
"""Places that are filled one by one; each costs more than the one before."""
ALIKE = 0.8
"""The share of words from which two tools of one server count as the same."""

Suspect = Callable[[Document], Suspicion]


def spread(
    ordered: Sequence[Score], limit: int, weights: Weights, suspicion: Suspect
) -> list[Score]:
    """Pick the best one by one; what a server or a text has shown before counts less."""
    left = list(ordered)
    picked: list[Score] = []
    doubted = {score.document.host.name for score in left if score.stuffed}
    while left and len(picked) < min(limit, PLACES):
        # Whatever else there is, a tool that the query names comes first.
        first = not picked and left[0].called
        at = 0 if first else _freshest(left, picked, doubted, weights)
        picked.append(left.pop(_original(at, left, suspicion)))
        if picked[-1].echo:
            doubted.add(picked[-1].document.host.name)
    return picked + left[: max(0, limit - len(picked))]


def _freshest(
    left: Sequence[Score],
    picked: Sequence[Score],
    doubted: Collection[ServerName],
    weights: Weights,
) -> int:
    """Return the position of what is worth most after all that has been picked."""
    chosen, most = 0, -1.0
    rivals = _rivals(left, doubted) if len(picked) < FIRST else ()
    for at, score in enumerate(left):
        if score.total <= most:
            break
        worth = _worth(score, picked, doubted, rivals, weights)
        if worth > most:
            chosen, most = at, worth
    return chosen


def _rivals(left: Sequence[Score], doubted: Collection[ServerName]) -> Sequence[Score]:
    """Return the best tool of a server in good standing, and the best one of another."""
    best = next((each for each in left if each.document.host.name not in doubted), None)
    if best is None:
        return ()
    others = (each for each in left if each.document.host is not best.document.host)
    return (best, *[each for each in others if each.document.host.name not in doubted][:1])


def _worth(
    score: Score,
    picked: Sequence[Score],
    doubted: Collection[ServerName],
    rivals: Sequence[Score],
    weights: Weights,
) -> float:
    """Return what is left of a score after what its server and its text have shown."""
    document = score.document
    beside = [each for each in picked if each.document.host is document.host]
    twins = sum(each.document.signature == document.signature for each in picked)
    twins = twins or any(_alike(document, other.document) for other in beside)
    total, factor = score.total, weights.twin**twins
    # Who calls a server by its name wants that server's tools, however many.
    is_doubted = document.host.name in doubted and not score.at_home
    if not score.at_home:
        factor *= weights.crowding ** max(0, len(beside) - FREE) * weights.echo**is_doubted
    if twins or is_doubted:
        total = min(total, _best_of_others(document.host, rivals, total))
    return total * factor


def _best_of_others(host: Host, rivals: Sequence[Score], default: float) -> float:
    return next((each.total for each in rivals if each.document.host is not host), default)


def _original(at: int, left: Sequence[Score], suspicion: Suspect) -> int:
    """Return the position of what is shown for all that say the same as the tool at another."""
    chosen = left[at]
    others = [
        other
        for other, score in enumerate(left)
        if score.document.signature == chosen.document.signature
        and score.document.host is not chosen.document.host
        and score.called >= chosen.called
    ]
    # Who calls a server by its name wants the tool of that server.
    if chosen.at_home or not others:
        return at
    return min(
        [at, *others], key=lambda other: (suspicion(left[other].document), left[other].place)
    )


def _alike(one: Document, other: Document) -> bool:
    """Tell whether two tools have nearly all their words in common, or all of their names."""
    if numberless(one.named) == numberless(other.named):
        return True
    shorter, longer = sorted((len(one.terms), len(other.terms)))
    if shorter < ALIKE * longer:
        return False
    common = len(set(one.terms).intersection(other.terms))
    return common >= ALIKE * (shorter + longer - common)
