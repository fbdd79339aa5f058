"""What one search looks at: one catalog, seen by one client."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from aggregator.catalog import Catalog, ToolEntry
from aggregator.config.values import MAX_RESULT_CHARS
from aggregator.names import Ambiguous, ServerName, ToolName
from aggregator.search import Keywords

Call = Literal["direct", "CallTool", "CallReadOnlyTool"]
"""How a client reaches a tool: by its own name, or through one of the meta-tools."""


class Changes(Protocol):
    """What came and went since a client's last search."""

    @property
    def tools_added(self) -> Sequence[ToolName]:
        """The tools that can be called now and could not before."""
        ...

    @property
    def tools_removed(self) -> Sequence[ToolName]:
        """The tools that can be called no more."""
        ...

    @property
    def servers_added(self) -> Sequence[ServerName]:
        """The servers that are connected now and were not before."""
        ...

    @property
    def servers_removed(self) -> Sequence[ServerName]:
        """The servers that are connected no more."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """One catalog and what this client makes of it."""

    catalog: Catalog
    """Only what this client may call."""
    rank: Callable[[Keywords, int], Sequence[ToolEntry]]
    """The entries that match, best first, at most so many."""
    find: Callable[[str], ToolName | Ambiguous | None]
    """The tool that a name means, however it is written."""
    call: Callable[[ToolEntry], Call]
    namesakes: Callable[[str], Sequence[ToolName]] = lambda _own: ()
    """The tools that have a name on their servers."""
    visible: frozenset[ToolName] = frozenset()
    """What was in this client's list before the search."""
    descriptions: Mapping[ServerName, str] = field(default_factory=dict[ServerName, str])
    problem: str | None = None
    """Why the file as it is now is not the configuration in use."""
    now: float = 0.0
    """On the clock of `since` in the catalog."""
    changes: Changes | None = None
    """None if there are none, or where there is no memory of the client."""
    max_chars: int = MAX_RESULT_CHARS
