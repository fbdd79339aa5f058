"""What of a tool is read for its meaning."""

from aggregator.catalog import ToolEntry
from aggregator.search.analysis import ANY_SERVER
from aggregator.search.chinese import has_chinese, in_english
from aggregator.search.fields import texts
from aggregator.search.weights import MAX_GIST
from aggregator.search.words import words


def gist(entry: ToolEntry) -> str:
    """Return a tool as one short text, its names written as words, and in English if it can be."""
    said = texts(entry)
    named = [word for word in words(entry.server) if word not in ANY_SERVER] + words(said.name)
    told = f"{said.hint} {said.description}".strip()[:MAX_GIST]
    text = f"{' '.join(named)}: {told}"
    return " ".join(in_english(text).split()) if has_chinese(text) else text
