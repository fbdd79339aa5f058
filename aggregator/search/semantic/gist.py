"""What of a tool is read for its meaning."""

from aggregator.catalog import ToolEntry
from aggregator.search.fields import texts
from aggregator.search.words import words

MAX_CHARACTERS = 600
"""Characters of a description that are read: what follows tells how, and no longer what."""
_COMMON = frozenset({"mcp", "server", "api"})
"""Words that any server's name may have."""


def gist(entry: ToolEntry) -> str:
    """Return a tool as one short text, its names written as words."""
    said = texts(entry)
    named = [word for word in words(entry.server) if word not in _COMMON] + words(said.name)
    told = f"{said.hint} {said.description}".strip()[:MAX_CHARACTERS]
    return f"{' '.join(named)}: {told}"
