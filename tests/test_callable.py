"""Whatever a client is shown, or a search finds, can be called by that name."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from aggregator.catalog import Catalog, Ready
from aggregator.config import ServerConfig
from aggregator.downstream.intake import take_in
from aggregator.exposure import Surface, visible
from aggregator.names import Lookup, ServerName, prefixes
from aggregator.search.index import Index
from aggregator.toolsearch import parse_search
from aggregator.toolsearch.find import search
from aggregator.toolsearch.view import View

words = st.text(st.sampled_from("abcXY_-. \u00e9\u4e2d"), min_size=1, max_size=60)
catalogs = st.dictionaries(words, st.lists(words, max_size=6), min_size=1, max_size=4)


def taken_in(servers: dict[str, list[str]]) -> Catalog:
    prefix = prefixes(list(servers))
    states: dict[ServerName, Ready] = {}
    for name, tools in servers.items():
        server = ServerConfig(ServerName(name), prefix[ServerName(name)])
        listing: list[Any] = [{"name": tool, "description": "does it"} for tool in tools]
        states[server.name] = Ready(tuple(take_in(server, listing)[0]))
    return Catalog(states)


@given(catalogs, words, st.sampled_from(["promote", "hybrid", "relay", "full"]))
def test_every_visible_and_every_found_tool_is_callable(
    servers: dict[str, list[str]], query: str, surface: Surface
) -> None:
    catalog = taken_in(servers)
    lookup = Lookup.of((each.name, each.server, each.own_name) for each in catalog.entries.values())
    index = Index(list(catalog.servers))
    for name, state in catalog.servers.items():
        assert isinstance(state, Ready)
        index.update(name, state.entries)

    view = View(catalog=catalog, lookup=lookup, index=index)
    found = [
        entry.name
        for text in (query, "does it", *catalog.entries)
        for entry in search(parse_search({"query": text}), view).matches
    ]
    shown = visible(
        catalog, surface=surface, meta_tools=(), loaded=tuple(catalog.entries), searching=True
    )

    for name in [*found, *(tool["name"] for tool in shown)]:
        assert lookup.find(name) == name
        assert name in catalog.entries
    assert len({tool["name"] for tool in shown}) == len(shown)
