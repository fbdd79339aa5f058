"""What of a tool is read for its meaning."""

from aggregator.catalog import ToolEntry
from aggregator.search.analysis import ANY_SERVER
from aggregator.search.fields import texts
from aggregator.search.weights import MAX_GIST
from aggregator.search.words import words


def gist(entry: ToolEntry) -> str:
    """Return a tool as one short text, its names written as words."""
    said = texts(entry)
    named = [word for word in words(entry.server) if word not in ANY_SERVER] + words(said.name)
    told = f"{said.hint} {said.description}".strip()[:MAX_GIST]
    return f"{' '.join(named)}: {told}"
