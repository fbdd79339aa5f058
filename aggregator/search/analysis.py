"""From the definitions of one server's tools to what an index keeps of them."""

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from aggregator.catalog import ToolEntry
from aggregator.names import ServerName
from aggregator.search.equivalents import STOP_WORDS
from aggregator.search.fields import MAX_NAME, Texts, texts
from aggregator.search.weights import WEIGHTS, Field, FieldWeight, Weights
from aggregator.search.words import stem, tokens, words

LEVELS = tuple(level / 4096 for level in range(4097))
"""Impacts are kept as one of these, so that postings share their numbers."""


@dataclass(frozen=True, slots=True)
class Document:
    """What the index keeps of one tool."""

    entry: ToolEntry
    terms: tuple[str, ...]
    impacts: "array[int]"
    """For each term, how strongly the tool speaks of it, as an index into `LEVELS`."""
    spelled: tuple[str, ...]
    """The words of its names as written, to repair misspelt words by."""
    sequence: str
    """Its stems in order, with blanks around each, to find words that stand side by side."""


@dataclass(frozen=True, slots=True)
class Analysed:
    """One server's tools, ready to be put into an index."""

    server: ServerName
    documents: tuple[Document, ...]


@dataclass(frozen=True, slots=True)
class Content:
    """The stems of one tool by field, in order."""

    fields: tuple[tuple[Field, tuple[str, ...]], ...]
    spelled: tuple[str, ...]


def analyse(
    server: ServerName,
    entries: Sequence[ToolEntry],
    description: str = "",
    weights: Weights = WEIGHTS,
) -> Analysed:
    """Read the tools of one server; slow, but needs nothing of the index."""
    documents = [_document(entry, content(entry, description), weights) for entry in entries]
    return Analysed(server, tuple(documents))


def content(entry: ToolEntry, description: str = "") -> Content:
    """Return the stems of one tool by field."""
    found = texts(entry)
    name = _name_terms(found.name)
    server = (*_name_terms(entry.server), *_prose(description[:MAX_NAME]))
    return Content(
        fields=(
            (Field.NAME, name),
            (Field.TITLE, _name_terms(found.title)),
            (Field.SERVER, server),
            (Field.HINT, _prose(found.hint)),
            (Field.DESCRIPTION, _prose(found.description)),
            (Field.PARAMETER, _prose(found.parameters)),
            (Field.DETAIL, _prose(found.details)),
        ),
        spelled=_spelled(entry, found),
    )


def joined(parts: Sequence[str]) -> set[str]:
    """Return the ways in which the words of a name may be run together."""
    pairs = {first + second for first, second in zip(parts, parts[1:], strict=False)}
    return pairs | {"".join(parts)} if len(parts) > 1 else pairs


def _name_terms(text: str) -> tuple[str, ...]:
    """Return the stems of a name, and after them its words run together."""
    parts = words(text)
    return (*(stem(part) for part in parts), *sorted(stem(each) for each in joined(parts)))


def _prose(text: str) -> tuple[str, ...]:
    """Return the stems of a text, without the words that mean nothing."""
    found: list[str] = []
    for parts in tokens(text):
        found += [stem(part) for part in parts if part not in STOP_WORDS]
        if len(parts) > 1:
            found.append(stem("".join(parts)))
    return tuple(found)


def _spelled(entry: ToolEntry, found: Texts) -> tuple[str, ...]:
    """Return the distinct words of the names of a tool and its server as they are written."""
    named = words(found.name), words(entry.server), words(found.title)
    every = [word for parts in named for word in (*parts, *sorted(joined(parts)))]
    return tuple(dict.fromkeys(every))


def _document(entry: ToolEntry, said: Content, weights: Weights) -> Document:
    impacts = _impacts(said, weights)
    levels = array("H", (round(impact * 4096) for impact in impacts.values()))
    return Document(entry, tuple(impacts), levels, said.spelled, _sequence(said))


def _sequence(said: Content) -> str:
    """Return the stems of names and prose in order; a blank pair keeps fields apart."""
    return f" {'  '.join(' '.join(terms) for _, terms in said.fields)} "


def _impacts(said: Content, weights: Weights) -> dict[str, float]:
    """Return how strongly a tool speaks of each of its words, from 0 to 1."""
    total: dict[str, float] = {}
    for field, terms in said.fields:
        measure = weights.field(field)
        for term, strength in _strengths(terms, measure):
            total[term] = total.get(term, 0.0) + strength
    return {term: value / (value + weights.saturation) for term, value in total.items()}


def _strengths(terms: Iterable[str], measure: FieldWeight) -> Iterable[tuple[str, float]]:
    """Yield each word of a field with its weight there, less in longer fields."""
    counts = Counter(terms)
    length = counts.total() / measure.usual
    scale = measure.weight / (1 - measure.slope + measure.slope * length)
    return ((term, count * scale) for term, count in counts.items())
