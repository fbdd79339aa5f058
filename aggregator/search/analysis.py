"""From the definitions of one server's tools to what an index keeps of them."""

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from sys import intern

from aggregator.basics.frozen import frozen
from aggregator.catalog import ToolEntry
from aggregator.names import ServerName, ToolName
from aggregator.search.chinese import has_chinese, in_english
from aggregator.search.fields import Texts, texts
from aggregator.search.lexicon import STOP_WORDS
from aggregator.search.weights import (
    MAX_DESCRIPTION,
    WEIGHTS,
    WORDS_OF_PAIRS,
    Field,
    Measure,
    Weights,
)
from aggregator.search.words import stem, tokens, words

LEVELS = tuple(level / 4096 for level in range(4097))
"""Impacts are kept as one of these, so that all postings share their numbers."""
ANY_SERVER = frozenset({"mcp", "server", "api"})
"""Words of a server's name that tell it from no other."""
APART = "  "
"""What is between the fields of a tool in the sequence of its words."""
Content = dict[Field, tuple[str, ...]]
"""The stems of one tool by field, in order."""


@frozen
class Host:
    """What all tools of one server have in common."""

    name: ServerName
    stems: frozenset[str]
    """The words of its name that tell it from others."""
    terms: tuple[str, ...]
    spelled: tuple[str, ...]
    """The words of its name as written."""


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """What the index keeps of one tool."""

    entry: ToolEntry
    terms: tuple[str, ...]
    levels: "array[int]"
    """For each term, how strongly the tool speaks of it, as an index into `LEVELS`."""
    parts: tuple[str, ...]
    """The words of its name as written."""
    sequence: str
    """Its stems in order with blanks around each, to find words that stand side by side."""
    named: frozenset[str]
    """The stems of its name."""
    bare: frozenset[str]
    """The same without numbers, which may only count copies."""
    host: Host
    signature: int
    """Equal for tools that say the same of themselves."""
    is_deprecated: bool
    """Whether it says of itself that another should be used."""

    def __repr__(self) -> str:
        return f"<Document {self.entry.name}>"

    @property
    def described(self) -> Sequence[str]:
        """The stems of its description, in order."""
        return self.sequence[1:-1].split(APART)[_READ_IN_ORDER.index(Field.DESCRIPTION)].split()

    @property
    def spelled(self) -> tuple[str, ...]:
        """The words to repair misspelt words by."""
        return (*self.parts, "".join(self.parts), *self.host.spelled)


def documents(
    server: ServerName,
    entries: Iterable[ToolEntry],
    description: str = "",
    weights: Weights = WEIGHTS,
    read: Mapping[ToolName, Document] | None = None,
) -> Iterator[Document]:
    """Read the tools of one server, each when it is asked for, but for what is read already."""
    host = _host(server, description)
    for entry in entries:
        known = read.get(entry.name) if read else None
        if known is None or not _says_same(known.entry, entry):
            yield _document(entry, host, weights)
        else:
            yield known if known.entry is entry else replace(known, entry=entry)


def _says_same(one: ToolEntry, other: ToolEntry) -> bool:
    """Whether there is nothing in one tool to find it by that is not in the other."""
    return one.tool is other.tool and one.hint == other.hint and one.put_right == other.put_right


def content(entry: ToolEntry, host: Host) -> Content:
    """Return the stems of one tool by field."""
    found = texts(entry)
    return {
        Field.NAME: _name_terms(found.name),
        Field.TITLE: _name_terms(found.title),
        Field.SERVER: host.terms,
        Field.HINT: _prose(found.hint),
        Field.DESCRIPTION: _prose(found.description),
        Field.PARAMETER: _prose(found.parameters),
        Field.DETAIL: _prose(found.details),
    }


def strengths(said: Content, weights: Weights) -> dict[str, dict[Field, float]]:
    """Return how much each word of a tool counts in each field."""
    found: dict[str, dict[Field, float]] = {}
    for field, terms in said.items():
        for term, strength in _strengths(terms, weights.of(field), weights.repetition):
            found.setdefault(term, {})[field] = strength
    return found


def stop_free(parts: Iterable[str]) -> list[str]:
    """Return the words that mean something; all of them if none does."""
    every = list(parts)
    return [part for part in every if part not in STOP_WORDS] or every


def _host(server: ServerName, description: str) -> Host:
    """Read what the name and the description of a server say of its tools."""
    parts = words(server)
    telling = [part for part in parts if part not in ANY_SERVER] or parts
    terms = (*_run_together(telling), *_prose(description[:MAX_DESCRIPTION]))
    spelled = tuple(intern(part) for part in {*telling, "".join(telling)})
    return Host(server, frozenset(map(stem, telling)), terms, spelled)


def _document(entry: ToolEntry, host: Host, weights: Weights) -> Document:
    said = content(entry, host)
    impacts = _impacts(said, weights)
    own = texts(entry)
    parts = words(own.name)
    named = frozenset(map(stem, parts))
    bare = _numberless(named)
    return Document(
        entry=entry,
        terms=tuple(impacts),
        levels=array("H", (round(impact * 4096) for impact in impacts.values())),
        parts=tuple(map(intern, parts)),
        sequence=_sequence(said),
        named=named,
        bare=bare,
        host=host,
        signature=hash((spoken(parts), said[Field.DESCRIPTION])),
        is_deprecated=_is_deprecated(own),
    )


_DEPRECATED = re.compile(
    r"(?:\b|_)DEPRECATED(?:\b|_)|(?i:[(\[]deprecated\b"
    r"|^\W*deprecated(?:\W*$|\s*[^\w\s]|\s+(?:in|since|by|and|as|please|use)\b)"
    r"|\bthis (?:tool|function|method|endpoint|command|operation) (?:is|has been) deprecated\b)"
)
"""How tools say that they are: one that is about what is deprecated says it otherwise."""


def _is_deprecated(own: Texts) -> bool:
    return any(map(_DEPRECATED.search, (own.name, own.title, own.description)))


def _name_terms(text: str) -> tuple[str, ...]:
    said = _prose(in_english(text)) if has_chinese(text) else ()
    return (*said, *_run_together(words(text)))


def _run_together(parts: Sequence[str]) -> tuple[str, ...]:
    """Return the stems of a name, and after them its words run together by two and all."""
    pairs = dict.fromkeys(first + second for first, second in pairwise(parts))
    joined = dict.fromkeys((*pairs, "".join(parts))) if len(parts) > 1 else pairs
    return (*map(stem, parts), *map(stem, joined))


def _prose(text: str) -> tuple[str, ...]:
    """Return the stems of a text, without the words that mean nothing.

    Of Chinese, the English words stand in its place, and the pairs of characters behind them.
    """
    if has_chinese(text):
        pairs = (word for word in words(text) if has_chinese(word))
        return (*_prose(in_english(text)), *pairs)
    found: list[str] = []
    for parts in tokens(text):
        found += [stem(part) for part in parts if part not in STOP_WORDS]
        if len(parts) > 1:
            found.append(stem("".join(parts)))
    return tuple(found)


def _sequence(said: Content) -> str:
    """Return the stems of names and prose; a wide gap keeps the fields apart."""
    return f" {APART.join(' '.join(said[field]) for field in _READ_IN_ORDER)} "


_READ_IN_ORDER = tuple(Field)


def spoken(terms: Iterable[str]) -> tuple[str, ...]:
    """Return words in their order, without numbers: who makes variants counts them."""
    return tuple(term for term in terms if not term.isdigit())


def _numberless(terms: frozenset[str]) -> frozenset[str]:
    """Return the words of a name without its numbers."""
    numbers = [term for term in terms if term.isdigit()]
    return terms.difference(numbers) if numbers else terms


def _impacts(said: Content, weights: Weights) -> dict[str, float]:
    """Return how strongly a tool speaks of each of its words, from 0 to 1."""
    found: dict[str, float] = {}
    for term, by_field in strengths(said, weights).items():
        total = sum(by_field.values())
        found[term] = total / (total + weights.saturation)
    return found


def _strengths(
    terms: Sequence[str], measure: Measure, repetition: float
) -> Iterable[tuple[str, float]]:
    """Yield each word of a field with its weight there, less in longer fields."""
    length = _length(terms) / measure.usual
    scale = measure.weight / (1 - measure.slope + measure.slope * length)
    return ((term, count**repetition * scale) for term, count in Counter(terms).items())


def _length(terms: Sequence[str]) -> float:
    """Return how many words a field has, pairs of characters beside what they mean in English."""
    every = len(terms)
    if "".join(terms).isascii():
        return every
    pairs = sum(map(has_chinese, terms))
    return max(every - pairs, pairs * WORDS_OF_PAIRS)
