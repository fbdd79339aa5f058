"""Tools to search for, written as briefly as a test can say them."""

from collections.abc import Iterable
from typing import Any

from aggregator.catalog import ToolEntry
from aggregator.names import ServerName, ToolName
from aggregator.search.index import Index
from aggregator.search.query import Keywords, parse_query


def entry(name: str, description: str = "", *, hint: str = "", **tool: Any) -> ToolEntry:
    """Return the entry of `server__tool`."""
    server, _, own = name.partition("__")
    definition = {"name": own, "description": description, **tool}
    return ToolEntry(ToolName(name), ServerName(server), definition, hint=hint)


def index_of(*entries: ToolEntry) -> Index:
    """Return an index over entries, servers in the order they first appear."""
    servers = list(dict.fromkeys(each.server for each in entries))
    index = Index(servers)
    for server in servers:
        index.update(server, [each for each in entries if each.server == server])
    return index


def search(index: Index, text: str, limit: int = 5) -> list[str]:
    """Return the names found by a text."""
    query = parse_query(text)
    assert isinstance(query, Keywords)
    return names(hit.entry for hit in index.rank(query, limit))


def names(entries: Iterable[ToolEntry]) -> list[str]:
    """Return the names of entries."""
    return [each.name for each in entries]
