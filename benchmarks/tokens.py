"""What a client loads at the start and for each search, beside listing every tool.

    python -m benchmarks.tokens

Reads the catalogs in `../shared/retrieval`. Counted is what a model reads of a definition, its
name, description and input schema, at 2.5 characters a token, as for `toolSearch: auto`.
"""

import json
import statistics
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from aggregator.catalog import Catalog, Ready, ToolEntry
from aggregator.exposure import visible
from aggregator.names import Lookup, ServerName, prefixes, qualify
from aggregator.search.index import Index
from aggregator.toolsearch import definitions, instructions, parse_search
from aggregator.toolsearch.answer import tell
from aggregator.toolsearch.find import search
from aggregator.toolsearch.view import View
from benchmarks.measure import report

SHARED = Path(__file__).parent.parent.parent / "shared" / "retrieval"
CATALOGS = {"livemcpbench": "queries_route.jsonl", "azure_mcp": "queries.jsonl"}
CHARACTERS_PER_TOKEN = 2.5


def lines(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def entries(tools: Iterable[Mapping[str, Any]]) -> dict[ServerName, list[ToolEntry]]:
    """Name the tools of a catalog as a client would see them."""
    by_server: dict[str, list[Mapping[str, Any]]] = {}
    for tool in tools:
        by_server.setdefault(tool["server"], []).append(tool)
    prefix = prefixes(list(by_server))
    made: dict[ServerName, list[ToolEntry]] = {}
    for server, listed in by_server.items():
        name = ServerName(server)
        names = qualify(prefix[name], [tool["name"] for tool in listed])
        made[name] = [
            ToolEntry(names[tool["name"]], name, {k: v for k, v in tool.items() if k != "server"})
            for tool in listed
            if tool["name"] in names
        ]
    return made


def tokens(text: str) -> int:
    return round(len(text) / CHARACTERS_PER_TOKEN)


def loaded(definitions: Iterable[Mapping[str, Any]]) -> int:
    """Return the tokens a model reads of a list of tools."""
    return tokens("".join(map(_read, definitions)))


def _read(tool: Mapping[str, Any]) -> str:
    schema = json.dumps(tool.get("inputSchema"), ensure_ascii=False, separators=(",", ":"))
    return f"{tool['name']}{tool.get('description', '')}{schema}"


def _shown(entry: ToolEntry) -> Mapping[str, Any]:
    return {**entry.tool, "name": entry.name}


def some(tools: list[dict[str, Any]], wanted: int) -> list[dict[str, Any]]:
    """Take whole servers, the largest first, until there are so many tools."""
    sizes = Counter(tool["server"] for tool in tools)
    chosen: set[str] = set()
    for server, _size in sizes.most_common():
        if sum(sizes[each] for each in chosen) < wanted:
            chosen.add(server)
    return [tool for tool in tools if tool["server"] in chosen][:wanted]


def measure(name: str, tools: list[dict[str, Any]], queries: list[str]) -> tuple[object, ...]:
    servers = entries(tools)
    catalog = Catalog({server: Ready(tuple(listed)) for server, listed in servers.items()})
    index = Index(list(servers))
    for server, listed in servers.items():
        index.update(server, listed)
    described = [(server, "") for server in servers]
    meta_tools = definitions(described, "relay")

    def shown(surface: Any) -> tuple[Mapping[str, Any], ...]:
        return visible(
            catalog,
            surface=surface,
            meta_tools=meta_tools,
            loaded=(),
            searching=surface != "full",
        )

    lookup = Lookup.of((e.name, e.server, e.own_name) for e in catalog.entries.values())
    view = View(catalog=catalog, lookup=lookup, index=index)
    asked = [parse_search({"query": query}) for query in queries]
    found = [tell(search(each, view), view) for each in asked]
    answers = [tokens(each.text) for each in found]
    # What search transforms of other proxies return: the same definitions, as JSON.
    whole = [loaded(_shown(entry) for entry in each.matches) for each in found]
    all_listed, start = loaded(shown("full")), loaded(shown("relay"))
    return (
        name,
        len(servers),
        len(catalog.entries),
        f"{all_listed:,}",
        f"{start:,}",
        f"{100 * start / all_listed:.2f} %",
        f"{tokens(instructions(described)):,}",
        f"{round(statistics.mean(answers)):,}",
        f"{round(statistics.mean(whole)):,}",
        f"{100 * (start + statistics.mean(answers)) / all_listed:.2f} %",
    )


def main() -> None:
    if not SHARED.is_dir():
        sys.exit(f"error: there are no catalogs at {SHARED}")
    rows: list[tuple[object, ...]] = []
    for name, queries in CATALOGS.items():
        tools = lines(SHARED / name / "tools.jsonl")
        asked = [line["query"] for line in lines(SHARED / name / queries)][:60]
        rows.append(measure(name, tools, asked))
        rows.append(measure(f"{name}, 150 tools", some(tools, 150), asked))
    report(
        "tokens: what a client loads",
        (
            "catalog",
            "servers",
            "tools",
            "all listed",
            "at start",
            "of all",
            "instructions",
            "per search",
            "the same as JSON",
            "start and search",
        ),
        rows,
    )


if __name__ == "__main__":
    main()
