"""Which tools say the same, or nearly so."""

from aggregator.search.analysis import Document
from aggregator.search.weights import ALIKE, ALIKE_SHARED, ALIKE_TAKEN, ALIKE_WORDS


def alike(one: Document, two: Document) -> bool:
    """Tell whether two tools have nearly all their words in common."""
    if one.host.name == two.host.name:
        return one.bare == two.bare or _share(one, two) >= ALIKE
    # Who copies a tool adds to its name and to its text, or leaves something out.
    if not (one.named <= two.named or two.named <= one.named):
        return False
    mine, theirs = _own(one), _own(two)
    common = len(mine & theirs)
    return common >= max(
        ALIKE_WORDS, ALIKE_TAKEN * min(len(mine), len(theirs)), ALIKE_SHARED * len(mine | theirs)
    )


def _share(one: Document, other: Document) -> float:
    """Return which part of the words of two tools of one server both have."""
    shorter, longer = sorted((len(one.terms), len(other.terms)))
    if shorter < ALIKE * longer:
        return 0.0
    common = len(set(one.terms).intersection(other.terms))
    return common / (shorter + longer - common)


def _own(document: Document) -> set[str]:
    """Return the words that a tool does not have from its server."""
    return set(document.terms).difference(document.host.terms)
