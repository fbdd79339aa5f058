"""What a search found, and why: values that can be had without the index."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from aggregator.catalog import ToolEntry
from aggregator.search.nearness import Nearness
from aggregator.search.query import Keywords


class Hit(NamedTuple):
    """One tool that a search found."""

    entry: ToolEntry
    score: float
    """What it was ranked by."""
    called: bool = False
    """Whether the query is its name."""
    meaning: float | None = None
    """The part of the score that its meaning brought, where that counts."""
    answered: float = 0.0
    """The part of the telling words of the query that it has."""

    def __repr__(self) -> str:
        meant = "" if self.meaning is None else f", {self.meaning:.2f} by meaning"
        return f"<Hit {self.entry.name}: {self.score:.2f}{meant}>"


class Contribution(NamedTuple):
    """What one word of a query brought a tool by standing in one of its fields."""

    word: str
    """The word as the query has it; empty for what the words brought together."""
    term: str
    """The word of the index that stood for it."""
    field: str
    """A field, or `coverage`, `together`, `named` or `hosted` for what words brought together;
    `called`, worth nothing by itself, for a tool that comes first because the query is its name."""
    score: float


class Experience(Protocol):
    """What was called after which requests."""

    def strengths(self, asked: frozenset[str], /) -> Mapping[str, float]:
        """Return how sure it is, up to 1, that each tool is meant by a request."""
        ...


class Ranker(Protocol):
    """An index, as whoever searches sees it."""

    def __len__(self) -> int:
        """Return how many tools can be found."""
        ...

    def rank(self, query: Keywords, limit: int, near: Nearness | None = None, /) -> Sequence[Hit]:
        """Return the tools that answer a query best, best first."""
        ...

    def learn(self, experience: Experience, /) -> None:
        """Lift what was called after like requests from now on."""
        ...

    def mended(self, query: Keywords, /) -> tuple[str, ...]:
        """Return a query with its slips put right, if it has any."""
        ...

    def explain(self, query: Keywords, entry: ToolEntry, /) -> tuple[Contribution, ...]:
        """Return which words of a query a tool matches, in which fields, and for how much."""
        ...
