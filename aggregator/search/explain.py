"""Why a tool was found: which words, in which fields, for how much."""

from collections.abc import Sequence
from dataclasses import dataclass

from aggregator.catalog import ToolEntry
from aggregator.search.analysis import content
from aggregator.search.concepts import Concept
from aggregator.search.weights import Weights


@dataclass(frozen=True, slots=True)
class Contribution:
    """What one word of a query found in one field of a tool."""

    word: str
    """The word as the query has it."""
    term: str
    """The word of the index that stood for it."""
    field: str
    score: float


def contributions(
    concepts: Sequence[Concept], entry: ToolEntry, weights: Weights
) -> tuple[Contribution, ...]:
    """Return what each word of a query found in each field of a tool."""
    found: list[Contribution] = []
    said = content(entry)
    for concept in concepts:
        for each in concept.alternatives:
            fields = [field for field, terms in said.fields if each.term in terms]
            found += [
                Contribution(concept.word, each.term, field.name.lower(), each.gain / len(fields))
                for field in fields
            ]
            if fields:
                break
    return tuple(found)
