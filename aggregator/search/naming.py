"""Whether a query is the name of a tool: in any order, in any case, with one slip at most."""

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from enum import IntEnum

from aggregator.basics.frozen import frozen
from aggregator.search.analysis import ANY_SERVER, Document
from aggregator.search.concepts import Postings
from aggregator.search.lexicon import STOP_WORDS
from aggregator.search.name_index import one_slip, recognised
from aggregator.search.weights import SHORTEST_SLIP
from aggregator.search.words import stem

UNTELLING = STOP_WORDS | ANY_SERVER
"""Words of a query that need not be in a name."""


class Called(IntEnum):
    """How surely a query is the name of a tool."""

    NO = 0
    NEARLY = 1
    """Together with the name of its server, but for one slip in a word that no name has."""
    MISSPELT = 2
    """But for one slip."""
    INFLECTED = 3
    """In other forms of its words."""
    EXACTLY = 4


@frozen
class Spelling:
    """A query read as the name of a tool."""

    words: Sequence[str]
    having: Collection[int]
    """The tools that have all of its words, somewhere."""
    slips: frozenset[str]
    """The words that may be misspelt: those that no name has, or any if no tool has them all."""


def spelling(words: Sequence[str], postings: Postings, known: Container[str]) -> Spelling:
    """Read a query as a name."""
    having = _holding(words, postings)
    slips = frozenset(word for word in words if not having or word not in known)
    return Spelling(words, having, slips)


def called(asked: Spelling, document: Document) -> Called:
    """Tell whether words are those of a tool's name, those of its server's included or not."""
    words = asked.words
    if "".join(words) == "".join(document.parts):
        return Called.EXACTLY
    left = _strangers(words, document)
    stems = {stem(word) for word in words}
    missing = [
        part for part in document.parts if stem(part) not in stems and part not in STOP_WORDS
    ]
    if not left and not missing:
        return Called.EXACTLY if {*document.parts} <= {*words} else Called.INFLECTED
    if _misspelt(asked, {*document.parts}):
        return Called.MISSPELT
    if len(left) == 1 and len(missing) <= 1 and left[0] in asked.slips:
        meant = missing or (*document.parts, *document.host.spelled, *ANY_SERVER)
        return Called(any(len(each) >= SHORTEST_SLIP and one_slip(left[0], each) for each in meant))
    return Called.NO


def _misspelt(asked: Spelling, name: set[str]) -> bool:
    """Tell whether a query is the words of a name but for a slip in one of them."""
    strange, lacking = {*asked.words} - name, name.difference(asked.words)
    if not len(strange) == len(lacking) == 1 or not strange <= asked.slips:
        return False
    return recognised(*strange, *lacking, beside=len(name) - 1)


def _holding(words: Iterable[str], postings: Postings) -> set[int]:
    """Return the tools that have all the words of a query that tell something."""
    telling = {stem(word) for word in words if word not in UNTELLING}
    holders = sorted((postings.get(each, {}).keys() for each in telling), key=len)
    having = set(holders[0]) if holders else set[int]()
    for more in holders[1:]:
        having &= more
    return having


def namesakes(asked: Spelling, documents: Mapping[int, Document]) -> list[int]:
    """Return the tools whose names have no words but those of the query."""
    stems = {stem(word) for word in asked.words}
    return [slot for slot in asked.having if documents[slot].named <= stems]


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
