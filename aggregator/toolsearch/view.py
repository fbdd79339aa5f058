"""What one search looks at: one catalog, seen by one client."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from aggregator.catalog import Catalog, Changes, ToolEntry
from aggregator.config.values import MAX_RESULT_CHARS
from aggregator.exposure import Surface, Way, way_to_call
from aggregator.names import Lookup, ServerName, ToolName
from aggregator.search.hits import Ranker
from aggregator.search.nearness import Nearness
from aggregator.search.query import Keywords


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """One catalog and what this client makes of it."""

    catalog: Catalog
    """Only what this client may call."""
    lookup: Lookup
    """The way from what a model calls a tool to its name."""
    index: Ranker
    """What the tools in the catalog are found by."""
    near: Mapping[Keywords, Nearness] = field(default_factory=dict[Keywords, Nearness])
    """What queries mean, as far as that is known by now."""
    surface: Surface = "relay"
    relists: bool | None = None
    """Whether this client's model can call tools that join its list later, if that is known."""
    listed: frozenset[str] = frozenset()
    """The names in the list that the client's model works with now."""
    visible: frozenset[ToolName] = frozenset()
    """The tools that were in it before the search."""
    descriptions: Mapping[ServerName, str] = field(default_factory=dict[ServerName, str])
    problem: str | None = None
    """Why the file as it is now is not the configuration in use."""
    now: float = 0.0
    """On the clock of `since` in the catalog."""
    changes: Changes | None = None
    """None if there are none, or where there is no memory of the client."""
    max_chars: int = MAX_RESULT_CHARS

    def way(self, entry: ToolEntry) -> Way:
        """Say how this client's model calls a tool."""
        return way_to_call(
            entry,
            surface=self.surface,
            visible_to_client=entry.name in self.listed,
            relists=self.relists,
        )
