"""The numbers of the ranking, each with its reason."""

from dataclasses import dataclass
from enum import StrEnum


class Field(StrEnum):
    """Where in a tool's definition a word stands."""

    NAME = "name"
    TITLE = "title"
    SERVER = "server"
    HINT = "hint"
    DESCRIPTION = "description"
    PARAMETER = "parameter"
    DETAIL = "detail"
    """Descriptions and enum values of parameters."""


@dataclass(frozen=True, slots=True)
class Measure:
    """How much a word in one field counts, and how much the length of the field matters."""

    weight: float
    usual: float
    """The number of words at which length changes nothing; fixed, not the mean of the catalog,
    so that a server that joins changes nothing about the others."""
    slope: float
    """0: length does not matter; 1: in a field twice as long, a word counts half as much."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Everything that was tuned, in round numbers."""

    name: Measure = Measure(5.0, 3.0, 0.4)
    title: Measure = Measure(2.0, 3.0, 0.4)
    server: Measure = Measure(3.0, 3.0, 0.2)
    hint: Measure = Measure(3.0, 6.0, 0.4)
    description: Measure = Measure(1.5, 20.0, 0.6)
    parameter: Measure = Measure(0.6, 4.0, 0.3)
    detail: Measure = Measure(0.4, 20.0, 0.6)
    repetition: float = 0.5
    """A word said n times in a field counts as n to this power: stuffing pays little."""
    saturation: float = 3.0
    """The weight at which a word has half of its greatest effect."""

    prior: float = 400.0
    """Tools of an average catalog that are counted in when the rarity of a word is measured."""
    faint: float = 0.7
    """What a word counts that requests are only wrapped in."""
    joined: float = 0.9
    """What `createissue` counts for `create` and for `issue`."""
    humps: float = 0.5
    """What `git` and `hub` count when `GitHub` as a whole is known."""
    equivalent: float = 0.4
    """What a word of the same meaning counts; always less than the word itself."""
    topic: float = 0.4
    """What the topic of a word counts when no tool has the word."""
    familiar: float = 30.0
    """Tools that have a word at which its topic counts half as much."""
    repaired: float = 0.9
    """What the likeliest word counts for a misspelt one."""
    doubted: float = 0.3
    """The same in a long request: there, an unknown word is more likely a name than a slip."""
    contained: float = 0.5
    """What a word counts of which the query has a part."""

    coverage: float = 0.5
    """Added, times the score, for an answer to the whole query."""
    together: float = 0.3
    """Added, times what both words bring, for two that stand side by side in both texts."""
    named: float = 0.3
    """Added, times the worth of the words in the name, when they are all of the name."""
    hosted: float = 0.3
    """The same for the name of the server."""

    crowding: float = 0.9
    """What each tool of one server after the first two counts, again for each."""
    echo: float = 0.3
    """What the others count of a server that has shown a tool which repeats the request: who
    writes tools for requests has one for each."""
    twin: float = 0.3
    """What each further tool counts that says the same of itself."""

    def of(self, field: Field) -> Measure:
        """Return how one field is measured."""
        measure: Measure = getattr(self, field)
        return measure


WEIGHTS = Weights()
