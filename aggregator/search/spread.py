"""Picking hits so that one server, or one text copied many times, does not take every place."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence

from aggregator.names import ServerName
from aggregator.search.analysis import Document
from aggregator.search.copies import alike
from aggregator.search.origins import Suspicion
from aggregator.search.scoring import Score
from aggregator.search.weights import Spreading

Suspect = Callable[[Document], Suspicion]
"""What speaks against a tool being the original."""


def spread(
    found: Sequence[Score],
    limit: int,
    rules: Spreading,
    suspicion: Suspect,
    *,
    has_several_needs: bool = False,
) -> list[Score]:
    """Pick the best one by one; what a server or a text has shown before counts less."""
    left = list(found)
    picked: list[Score] = []
    named = defaultdict[frozenset[str], list[Score]](list)
    for score in left:
        named[score.document.named].append(score)
    doubts = _Doubts(left, rules)
    needs = _Needs(rules) if has_several_needs else None
    while left and len(picked) < min(limit, rules.places):
        # Whatever else there is, a tool that the query names comes first.
        first = not picked and left[0].called
        best = left[0] if first else _freshest(left, picked, doubts, needs, rules)
        chosen = _original(best, named, rules.close, suspicion)
        left.remove(chosen)
        named[chosen.document.named].remove(chosen)
        picked.append(chosen)
        doubts.note(chosen)
        if needs is not None:
            needs.note(chosen)
    return picked + left[: max(0, limit - len(picked))]


class _Doubts:
    """The servers that have written tools for requests, as far as that is known by now."""

    def __init__(self, found: Sequence[Score], rules: Spreading) -> None:
        self.servers = {score.document.host.name for score in found if score.stuffed}
        echoing = (score.document.host.name for score in found if score.echo)
        self.echoing = frozenset(echoing if rules.forewarned else ())

    def note(self, shown: Score) -> None:
        """Note what has been shown: who repeats the request has one place."""
        if shown.echo:
            self.servers.add(shown.document.host.name)

    def concern(self, score: Score, *, is_first: bool) -> bool:
        """Tell whether a tool counts less for what its server has written."""
        server = score.document.host.name
        return server in self.servers or (server in self.echoing and not (is_first and score.echo))


class _Needs:
    """What is asked for in one request that asks for several tools, as far as it is met by now."""

    def __init__(self, rules: Spreading) -> None:
        self._rules = rules
        self._met = 0
        self._servers = set[ServerName]()

    def note(self, shown: Score) -> None:
        """Note what a tool that is shown has of the request."""
        self._met |= shown.held
        self._servers.add(shown.document.host.name)

    def left_of(self, score: Score) -> float:
        """Return what a tool counts for what is not met yet, and beside whose tools."""
        if not self._met or not score.held:
            return 1.0
        share = (score.held & self._met).bit_count() / score.held.bit_count()
        is_strange = score.document.host.name not in self._servers
        return (1 - (1 - self._rules.answered) * share) * self._rules.strange**is_strange


def _freshest(
    left: Sequence[Score],
    picked: Sequence[Score],
    doubts: _Doubts,
    needs: _Needs | None,
    rules: Spreading,
) -> Score:
    """Return what is worth most after all that has been picked."""
    chosen, most = left[0], -1.0
    for score in left:
        if score.worth <= most:
            break
        factor, is_bounded = _freshness(score, picked, doubts, rules)
        factor *= 1.0 if needs is None else needs.left_of(score)
        worth = score.worth
        if is_bounded and len(picked) < rules.top:
            worth = min(worth, _best_of_others(score, left, doubts.servers))
        if worth * factor > most:
            chosen, most = score, worth * factor
    return chosen


def _freshness(
    score: Score, picked: Sequence[Score], doubts: _Doubts, rules: Spreading
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
    factor = rules.twin**twins
    # Who calls a server by its name wants that server's tools, however many.
    if score.at_home and rules.spares_home:
        return factor, bool(twins)
    # Most often there are none, and a call for each of many tools takes time.
    is_any = doubts.servers or doubts.echoing
    is_doubted = bool(is_any) and doubts.concern(score, is_first=not beside)
    factor *= rules.crowding ** max(0, beside - rules.free) * rules.echo**is_doubted
    if beside and len(picked) < rules.top:
        factor *= rules.second
    return factor, bool(twins) or is_doubted


def _best_of_others(score: Score, left: Sequence[Score], doubted: Collection[ServerName]) -> float:
    """Return the best score of a server in good standing, without that of one tool."""
    host = score.document.host
    worths = (
        each.worth
        for each in left
        if each.document.host is not host and each.document.host.name not in doubted
    )
    return next(worths, score.worth)


def _original(
    chosen: Score,
    named: Mapping[frozenset[str], Sequence[Score]],
    close: float,
    suspicion: Suspect,
) -> Score:
    """Return what is shown for all that say the same as one tool."""
    # Who calls a server by its name wants the tool of that server.
    if chosen.at_home:
        return chosen
    # Who copies a tool leaves its name as it is, or adds to it.
    document, bar = chosen.document, close * chosen.worth
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
            or (score.worth >= bar and alike(document, score.document))
        )
    ]
    if not copies:
        return chosen
    return min(
        [chosen, *copies],
        key=lambda each: (suspicion(each.document), -each.total, each.place),
    )
