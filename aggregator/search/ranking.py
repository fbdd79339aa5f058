"""Scoring: from what a query asks for to tools in order."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest

from aggregator.search.analysis import Document
from aggregator.search.concepts import Concept, Postings
from aggregator.search.weights import Weights

Place = tuple[int, str, int]


@dataclass(frozen=True, slots=True)
class Candidate:
    """One tool in the running."""

    slot: int
    score: float
    document: Document


def gather(
    concepts: Sequence[Concept], postings: Postings, allowed: set[int] | None
) -> dict[int, float]:
    """Add up what each tool has of each concept."""
    scores: dict[int, float] = {}
    for concept in concepts:
        for slot, gain in _holders(concept, postings, allowed).items():
            scores[slot] = scores.get(slot, 0.0) + gain
    return scores


def _holders(concept: Concept, postings: Postings, allowed: set[int] | None) -> dict[int, float]:
    """Return what each tool has of one concept: the best alternative it holds counts."""
    found: dict[int, float] = {}
    for each in concept.alternatives:
        holders, gain = postings[each.term], each.gain
        if allowed is not None:
            found.update(
                (slot, gain * holders[slot])
                for slot in allowed & holders.keys()
                if slot not in found
            )
        elif found:
            found.update(
                (slot, gain * impact) for slot, impact in holders.items() if slot not in found
            )
        else:
            found = {slot: gain * impact for slot, impact in holders.items()}
    return found


def shortlist(
    scores: dict[int, float],
    places: Mapping[int, Place],
    size: int,
    accepts: Callable[[int], bool] | None,
) -> dict[int, float]:
    """Keep the best, all that tie with the last of them included, of those that are accepted."""
    if accepts is not None:
        scores = {slot: score for slot, score in scores.items() if accepts(slot)}
    if len(scores) <= size:
        return scores
    least = nlargest(size, scores.values())[-1]
    best = [slot for slot, score in scores.items() if score >= least]
    if len(best) > 2 * size:
        best = sorted(best, key=lambda slot: (-scores[slot], places[slot]))[:size]
    return {slot: scores[slot] for slot in best}


def rerank(
    scores: dict[int, float],
    concepts: Sequence[Concept],
    postings: Postings,
    documents: Mapping[int, Document],
    weights: Weights,
) -> dict[int, float]:
    """Reward tools that answer more of the query, and that keep its words together."""
    total = sum(concept.gain for concept in concepts)
    pairs = [
        (f" {first.alternatives[0].term} {second.alternatives[0].term} ", first.gain + second.gain)
        for first, second in zip(concepts, concepts[1:], strict=False)
    ]
    found: dict[int, float] = {}
    for slot, score in scores.items():
        covered = sum(
            concept.gain
            for concept in concepts
            if any(slot in postings[each.term] for each in concept.alternatives)
        )
        sequence = documents[slot].sequence
        together = sum(gain for pair, gain in pairs if pair in sequence)
        found[slot] = (
            score * (1 + weights.coverage * covered / total) + weights.adjacent * together / 2
        )
    return found


def spread(candidates: Sequence[Candidate], limit: int, weights: Weights) -> list[Candidate]:
    """Pick the best one by one, each further pick of a server or of a text counting less."""
    left = list(candidates)
    servers: dict[str, int] = {}
    seen: dict[str, int] = {}
    picked: list[Candidate] = []
    while left and len(picked) < limit:
        best = max(left, key=lambda each: _fresh(each, servers, seen, weights))
        left.remove(best)
        picked.append(best)
        server = best.document.entry.server
        servers[server] = servers.get(server, 0) + 1
        seen[best.document.sequence] = seen.get(best.document.sequence, 0) + 1
    return picked


def _fresh(
    each: Candidate, servers: Mapping[str, int], seen: Mapping[str, int], weights: Weights
) -> float:
    crowd = max(0, servers.get(each.document.entry.server, 0) - 2)
    twins = seen.get(each.document.sequence, 0)
    return each.score * weights.crowding**crowd * weights.twin**twins
