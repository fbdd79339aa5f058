"""Search what `servers.lock` says that servers offer, as if they were there."""

from collections.abc import Callable, Mapping
from typing import Any

from aggregator.catalog import Ready, ToolEntry
from aggregator.catalog.lock import Lock, Record
from aggregator.config import Config, ServerConfig
from aggregator.config.settings import MAX_RESULTS
from aggregator.downstream.intake import Admitted, entries_of
from aggregator.fleet.now import Now
from aggregator.search.index import Index
from aggregator.toolsearch import parse_search
from aggregator.toolsearch.facts import facts
from aggregator.toolsearch.find import search
from aggregator.toolsearch.view import View

NOT_WRITTEN_DOWN = "`servers.lock` does not say what it offers; `aggregator lock` writes it down"


def searched(
    config: Config, lock: Lock
) -> tuple[Mapping[str, str], Mapping[str, str], Callable[[str], Mapping[str, Any]]]:
    """Return the server of each tool, why servers are missing, and the search."""
    known = {
        name: Ready(entries=_entries(server, lock[name]))
        for name, server in config.enabled.items()
        if name in lock
    }
    now = Now.starting(config, 0.0, known)
    index = Index(list(config.enabled))
    for name, ready in known.items():
        index.update(name, ready.entries, description=config.servers[name].description)
    view = View(catalog=now.catalog, lookup=now.lookup, index=index, descriptions=now.descriptions)

    def find(query: str) -> Mapping[str, Any]:
        return facts(search(parse_search({"query": query}, MAX_RESULTS, explain=True), view), view)

    owners = {str(name): str(entry.server) for name, entry in now.catalog.entries.items()}
    absent = {str(name): NOT_WRITTEN_DOWN for name in config.enabled if name not in lock}
    return owners, absent, find


def _entries(server: ServerConfig, record: Record) -> tuple[ToolEntry, ...]:
    tools = [{**tool, "name": name} for name, tool in record.tools.items() if server.allows(name)]
    return tuple(entries_of(server, Admitted(tuple(tools), ()))[0])
