"""Which tools say the same, or nearly so."""

from aggregator.search.analysis import Document

ALIKE = 0.8
"""The share of words from which two tools of one server count as the same."""
TELLING = 4
TAKEN = 0.85
SHARED = 0.33
"""How many words tools of two servers have in common that count as the same: at least so many,
and so much of those of the shorter one, and of those of both."""


def alike(one: Document, two: Document) -> bool:
    """Tell whether two tools have nearly all their words in common."""
    if one.host.name == two.host.name:
        return one.bare == two.bare or _share(one, two) >= ALIKE
    # Who copies a tool adds to its name and to its text, or leaves something out.
    if not (one.named <= two.named or two.named <= one.named):
        return False
    mine, theirs = _own(one), _own(two)
    common = len(mine & theirs)
    return common >= max(TELLING, TAKEN * min(len(mine), len(theirs)), SHARED * len(mine | theirs))


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
