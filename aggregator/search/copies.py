"""Which tools say the same, or nearly so."""

from aggregator.search.analysis import Document, spoken
from aggregator.search.weights import ALIKE_SHARED, ALIKE_TAKEN, ALIKE_WORDS


def alike(one: Document, two: Document) -> bool:
    """Tell whether two tools have nearly all their words in common.

    Those of one server differ on purpose, if only by the order of two words.
    """
    if one.host.name == two.host.name:
        return spoken(one.parts) == spoken(two.parts) and (
            spoken(one.described) == spoken(two.described)
        )
    # Who copies a tool adds to its name and to its text, or leaves something out.
    if not (one.named <= two.named or two.named <= one.named):
        return False
    mine, theirs = _own(one), _own(two)
    common = len(mine & theirs)
    return common >= max(
        ALIKE_WORDS, ALIKE_TAKEN * min(len(mine), len(theirs)), ALIKE_SHARED * len(mine | theirs)
    )


def _own(document: Document) -> set[str]:
    """Return the words that a tool does not have from its server."""
    return set(document.terms).difference(document.host.terms)
