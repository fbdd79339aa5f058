"""Recall of our search on public catalogs, beside the published baselines."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from aggregator.catalog import ToolEntry
from aggregator.names import ServerName, ToolName
from aggregator.search import Index, Keywords, parse_query

Tool = Mapping[str, Any]
Search = Callable[[str, int], list[tuple[str, str]]]


def build(tools: Sequence[Tool], **options: Any) -> Search:
    """Return a search over a catalog, in the form the evaluation asks for."""
    by_server: dict[str, list[ToolEntry]] = {}
    for tool in tools:
        server = tool["server"]
        name = ToolName(f"{server}__{tool['name']}")
        entry = ToolEntry(name=name, server=ServerName(server), tool=tool)
        by_server.setdefault(server, []).append(entry)
    index = Index([ServerName(each) for each in by_server], **options)
    for server, entries in by_server.items():
        index.update(ServerName(server), entries)

    def search(text: str, limit: int) -> list[tuple[str, str]]:
        query = parse_query(text)
        if not isinstance(query, Keywords):
            return []
        hits = index.rank(query, limit)
        return [(hit.entry.server, hit.entry.tool["name"]) for hit in hits]

    return search
