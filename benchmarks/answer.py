"""Recall of what stands in the text of an answer, within the characters there are for it.

    python -m benchmarks.answer [quick]

Each query is asked as a client asks `ToolSearch`, with nothing but the query. A tool counts where
the text defines it or has it on a line; `matches` of the result must name the same tools in the
same order. The catalogs are read from `../shared/retrieval`, beside the project.
"""

import statistics
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from aggregator.catalog import Catalog, Ready, ToolEntry
from aggregator.names import Lookup, ServerName
from aggregator.search.index import Index
from aggregator.toolsearch import parse_search
from aggregator.toolsearch.answer import tell
from aggregator.toolsearch.find import search
from aggregator.toolsearch.view import View
from benchmarks.retrieval import Tool, entries, evaluation


class Told(NamedTuple):
    """What one answer told."""

    names: tuple[str, ...]
    defined: int
    characters: int


def view_of(tools: Sequence[Tool]) -> View:
    """Return a catalog as a client sees it, its index included."""
    by_server = entries(tools)
    index = Index(list(by_server))
    servers: dict[ServerName, Any] = {}
    for server, its in by_server.items():
        index.update(server, its)
        servers[server] = Ready(tuple({entry.name: entry for entry in its}.values()))
    catalog = Catalog(servers)
    known = catalog.entries.values()
    lookup = Lookup.of((each.name, each.server, each.own_name) for each in known)
    return View(catalog=catalog, lookup=lookup, index=index)


def ask(view: View, query: str) -> Told:
    """Ask as a client does."""
    answer = tell(search(parse_search({"query": query}), view), view)
    names = tuple(str(name) for name in answer.meta["matches"])
    places = [_place(name, answer.text) for name in names]
    if -1 in places or places != sorted(places):
        sys.exit(f"The text and `matches` differ for {query!r}")
    return Told(names, len(answer.shown), len(answer.text))


def _place(name: str, text: str) -> int:
    """Return where a tool stands in an answer, with its definition or on a line; -1 if nowhere."""
    forms = (f"\n## {name} (", f"\n- {name} | ", f"\n- {name}\n")
    return max(f"\n{text}\n".find(form) for form in forms)


def main(arguments: Sequence[str]) -> None:
    """Print recall at five and at eight places, and of what is in the text."""
    found = evaluation()
    print(
        f"{'task':26s}{'@5':>8s}{'@8':>8s}{'in text':>9s}{'defined':>9s}{'chars':>8s}{'most':>7s}"
    )
    sums: list[tuple[float, float, float]] = []
    kept: tuple[object, View | None] = (None, None)
    for task in found["SETS"]["quick" if "quick" in arguments else "all"]:
        tools, queries = found["load_task"](task)
        catalog = (found["TASKS"][task][0], tuple(found["TASKS"][task][2]))
        view = (kept[1] if kept[0] == catalog else None) or view_of(tools)
        kept = catalog, view
        told = [ask(view, each["query"]) for each in queries]
        first = [_ranked(view, each["query"]) for each in queries]
        five = _recall(queries, [names[:5] for names in first])
        eight = _recall(queries, [names[:8] for names in first])
        text = _recall(queries, [each.names for each in told])
        sums.append((five, eight, text))
        defined = statistics.mean(each.defined for each in told)
        usual = statistics.mean(each.characters for each in told)
        most = max(each.characters for each in told)
        print(
            f"{task:26s}{five:8.3f}{eight:8.3f}{text:9.3f}{defined:9.2f}{usual:8.0f}{most:7d}",
            flush=True,
        )
    means = [statistics.mean(column) for column in zip(*sums, strict=True)]
    print(f"{'mean':26s}{means[0]:8.3f}{means[1]:8.3f}{means[2]:9.3f}")


def _ranked(view: View, query: str) -> list[str]:
    """Return the best tools by themselves, without an answer."""
    parsed = parse_search({"query": query, "max_results": 8})
    matches: tuple[ToolEntry, ...] = search(parsed, view).matches
    return [entry.name for entry in matches]


def _recall(queries: Sequence[Any], told: Sequence[Sequence[str]]) -> float:
    shares: list[float] = []
    for query, names in zip(queries, told, strict=True):
        groups = query.get("groups") or [[each] for each in query["gold"]]
        right = [{f"{server}__{name}" for server, name in group} for group in groups]
        shares.append(sum(not each.isdisjoint(names) for each in right) / len(right))
    return statistics.mean(shares)


if __name__ == "__main__":
    main(sys.argv[1:])
