"""Whether a query is the name of a tool: in any order, in any case, with one slip at most."""

from collections.abc import Container, Iterable, Mapping, Sequence
from enum import IntEnum

from aggregator.search.analysis import ANY_SERVER, Document
from aggregator.search.concepts import Postings
from aggregator.search.lexicon import STOP_WORDS
from aggregator.search.words import stem

UNTELLING = STOP_WORDS | ANY_SERVER
"""Words of a query that need not be in a name."""
SHORTEST = 3
"""Letters below which a word of a name is too short to be recognised with a slip."""


class Called(IntEnum):
    """How surely a query is the name of a tool."""

    NO = 0
    MISSPELT = 1
    """But for one slip in one word, which no name has."""
    INFLECTED = 2
    """In other forms of its words."""
    EXACTLY = 3


def called(words: Sequence[str], document: Document, known: Container[str]) -> Called:
    """Tell whether words are those of a tool's name, those of its server's included or not."""
    if "".join(words) == "".join(document.parts):
        return Called.EXACTLY
    left = _strangers(words, document)
    stems = {stem(word) for word in words}
    missing = [
        part for part in document.parts if stem(part) not in stems and part not in STOP_WORDS
    ]
    if not left and not missing:
        return Called.EXACTLY if {*document.parts} <= {*words} else Called.INFLECTED
    if len(left) == 1 and len(missing) <= 1 and left[0] not in known:
        meant = missing or (*document.parts, *document.host.spelled, *ANY_SERVER)
        return Called(any(one_slip(left[0], each) for each in meant))
    return Called.NO


def namesakes(
    words: Iterable[str], postings: Postings, documents: Mapping[int, Document]
) -> list[int]:
    """Return the tools whose names have no words but these, and which have all of them."""
    stems = {stem(word) for word in words}
    telling = {stem(word) for word in words if word not in UNTELLING}
    holders = sorted((postings.get(each, {}).keys() for each in telling), key=len)
    having = set(holders[0]) if holders else set[int]()
    for more in holders[1:]:
        having &= more
    return [slot for slot in having if documents[slot].named <= stems]


def as_written(words: Iterable[str], document: Document) -> int:
    """Return how many words of a name are in the query letter by letter, less those that are not.

    This tells `get_users` from `get_user`, and `get_all_notes` from `get_notes`.
    """
    parts = {*document.parts}
    return 2 * len(parts.intersection(words)) - len(parts)


def _strangers(words: Iterable[str], document: Document) -> list[str]:
    """Return the words of a query that neither the tool nor its server is named by."""
    own = document.named | document.host.stems
    return [word for word in words if stem(word) not in own and word not in UNTELLING]


def one_slip(typed: str, meant: str) -> bool:
    """Tell whether one letter too few, too many, wrong or swapped makes one word of another."""
    if len(meant) < SHORTEST or abs(len(typed) - len(meant)) > 1:
        return False
    shorter = min(len(typed), len(meant))
    start = 0
    while start < shorter and typed[start] == meant[start]:
        start += 1
    end = 0
    while end < shorter - start and typed[-1 - end] == meant[-1 - end]:
        end += 1
    one, other = typed[start : len(typed) - end], meant[start : len(meant) - end]
    swapped = len(one) == len("ab") and one == other[::-1]
    return swapped or max(len(one), len(other)) <= 1
