"""What one search looks at: one catalog, seen by one client."""

from collections.abc import Callable, Mapping
from dataclasses import field

from aggregator.basics.frozen import frozen
from aggregator.catalog import Catalog, Changes, Idle, Pending, ServerState, ToolEntry
from aggregator.catalog.lock import Kind
from aggregator.config.settings import MAX_RESULT_CHARS
from aggregator.exposure import Way, way_to_call
from aggregator.names import RESERVED, Lookup, MetaTools, ServerName, ToolName
from aggregator.search.hits import Ranker
from aggregator.search.nearness import Nearness
from aggregator.search.query import Keywords
from aggregator.toolsearch.beside import Shown
from aggregator.toolsearch.offers import split

STANDING_BY = "starts when called"
"""What is said of a server that does not run, since nobody needs it."""


@frozen(kw_only=True)
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
    relaying: bool = True
    """Whether this client's model can call a tool that is not in its list."""
    listed: frozenset[str] = frozenset()
    """The names in the list that the client's model works with now."""
    visible: frozenset[ToolName] = frozenset()
    """The tools that were in it before the search."""
    names: MetaTools = RESERVED
    """What our own tools are called."""
    search: str = RESERVED.search
    """How this client shows the name of the one that searches."""
    descriptions: Mapping[ServerName, str] = field(default_factory=dict[ServerName, str])
    withheld: Callable[[ToolName], str] = lambda name: f"`{name}` is withheld"
    """Says why a tool is not offered that is not as it was approved."""
    approving: Callable[[ServerName], str] = lambda name: f"aggregator approve {name}"
    """What a person types to approve what a server offers."""
    problem: str | None = None
    """Why the file as it is now is not the configuration in use."""
    now: float = 0.0
    """On the clock of `since` in the catalog."""
    changes: Changes | None = None
    """None if there are none, or where there is no memory of the client."""
    max_chars: int = MAX_RESULT_CHARS
    shown: Shown = Shown()
    """What is found beside tools."""

    def way(self, entry: ToolEntry) -> Way:
        """Say how this client's model calls a tool."""
        way = way_to_call(
            entry,
            listed=entry.name in self.listed,
            relaying=self.relaying,
            names=self.names,
        )
        told = (_standing(self.catalog.servers.get(entry.server)), self._approved(entry))
        kind = split(entry.name)
        return way._replace(standing=", ".join(filter(None, told)), kind=kind[0] if kind else "")

    def _approved(self, entry: ToolEntry) -> str:
        """Say of a tool that is not as it was approved what is known of that."""
        drift = self.catalog.drift_of(entry)
        if drift is None:
            return ""
        return "not approved yet" if drift.kind is Kind.NEW else "changed since it was approved"


def _standing(state: ServerState | None) -> str:
    """Say of a server that is not connected what a call of its tools will do about it."""
    match state:
        case Pending(phase=phase):
            return f"{phase}: a call waits for it"
        case Idle():
            return f"{STANDING_BY}, did not start the last time" if state.reason else STANDING_BY
        case _:
            return ""
