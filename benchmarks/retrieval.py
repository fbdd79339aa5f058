"""Recall of our search on public catalogs, beside the baselines published with them.

    python -m benchmarks.retrieval [quick]

The catalogs are read from `../shared/retrieval`, beside the project.
"""

import re
import runpy
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from aggregator.catalog import ToolEntry
from aggregator.names import ServerName, ToolName
from aggregator.search.index import Index
from aggregator.search.query import Keywords, parse_query
from aggregator.search.weights import WEIGHTS, Weights

DATA = Path(__file__).resolve().parents[2] / "shared" / "retrieval"

Tool = Mapping[str, Any]
Search = Callable[[str, int], list[tuple[str, str]]]


def entries(tools: Sequence[Tool]) -> dict[ServerName, list[ToolEntry]]:
    """Return the tools of a catalog by server."""
    found: dict[ServerName, list[ToolEntry]] = {}
    for tool in tools:
        server = ServerName(tool["server"])
        name = ToolName(f"{server}__{tool['name']}")
        found.setdefault(server, []).append(ToolEntry(name=name, server=server, tool=tool))
    return found


def index_of(tools: Sequence[Tool], weights: Weights = WEIGHTS) -> Index:
    """Return an index over a catalog."""
    by_server = entries(tools)
    index = Index(list(by_server), weights=weights)
    for server, its in by_server.items():
        index.update(server, its)
    return index


def build(tools: Sequence[Tool], weights: Weights = WEIGHTS) -> Search:
    """Return a search over a catalog, in the form the evaluation asks for."""
    index = index_of(tools, weights)

    def search(text: str, limit: int) -> list[tuple[str, str]]:
        query = parse_query(text)
        hits = index.rank(query, limit) if isinstance(query, Keywords) else []
        return [(hit.entry.server, hit.entry.own_name) for hit in hits]

    return search


def evaluation() -> dict[str, Any]:
    """Return the names of the evaluation script, if the catalogs are there."""
    script = DATA / "evaluate.py"
    if not script.exists():
        sys.exit(f"There are no catalogs at {DATA}: put them there to measure recall")
    return runpy.run_path(str(script), run_name="evaluate")


def baselines() -> dict[str, list[str]]:
    """Return the published table: the figures of each task, and of the header."""
    rows: dict[str, list[str]] = {}
    for line in (DATA / "README.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip(" *") for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) > 4:  # noqa: PLR2004
            rows[re.sub(r" \(.*", "", cells[0])] = cells[3:]
    return rows


def main(arguments: Sequence[str]) -> None:
    """Print our recall@5 on each task beside the baselines."""
    found = evaluation()
    tasks = found["SETS"]["quick" if "quick" in arguments else "all"]
    published = baselines()
    print(_row("task", ["ours", *(name[:11] for name in published["task"])]))
    ours: list[float] = []
    for task in tasks:
        ours.append(found["run_task"](build, task)["recall@5"])
        print(_row(task, [f"{ours[-1]:.3f}", *published[task]]), flush=True)
    print(_row("mean", [f"{sum(ours) / len(ours):.3f}"]))


def _row(name: str, cells: Sequence[str]) -> str:
    return f"{name:26s}" + "".join(f"{cell:>12s}" for cell in cells)


if __name__ == "__main__":
    main(sys.argv[1:])
