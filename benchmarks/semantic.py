"""Recall and speed of search with `[semantic]`: `build` for the evaluation, or run for the times.

Vectors are kept in a file between runs: reading 17,000 tools for the first time takes minutes.
"""

import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import gettempdir
from typing import Any

from aggregator.catalog import ToolEntry
from aggregator.names import ServerName, ToolName
from aggregator.search.index import Index
from aggregator.search.nearness import Nearness, Roster
from aggregator.search.query import Keywords, parse_query
from aggregator.search.semantic.cache import Cache
from aggregator.search.semantic.clauses import clauses
from aggregator.search.semantic.encoder import SentenceModel
from aggregator.search.semantic.gist import gist
from aggregator.search.semantic.vectors import SCALE, Vectors
from aggregator.search.semantic.weighing import Commonness

VECTORS = Path(gettempdir(), "mcp-tool-aggregator-benchmark.db")
QUERIES = 200
os.environ["OPENBLAS_NUM_THREADS"] = "1"  # as in the process that answers

Tool = Mapping[str, Any]
Search = Callable[[str, int], list[tuple[str, str]]]


def build(tools: Sequence[Tool]) -> Search:
    """Return a search over a catalog, in the form the evaluation asks for."""
    by_server: dict[ServerName, list[ToolEntry]] = {}
    for tool in tools:
        server = ServerName(tool["server"])
        entry = ToolEntry(ToolName(f"{server}__{tool['name']}"), server, tool)
        by_server.setdefault(server, []).append(entry)
    index = Index(list(by_server))
    for server, entries in by_server.items():
        index.update(server, entries)
    roster = Roster(tuple(entry for entries in by_server.values() for entry in entries))
    model = SentenceModel()
    vectors = Vectors(_vectors(model, roster.entries))
    common = Commonness(map(model.pieces, {gist(entry) for entry in roster.entries}))

    def search(text: str, limit: int) -> list[tuple[str, str]]:
        query = parse_query(text)
        if not isinstance(query, Keywords):
            return []
        read = [*clauses(query.text), *index.mended(query)]
        asked = [model.request(each, common) for each in read]
        near = Nearness(roster, vectors.likeness(*asked), SCALE)
        hits = index.rank(query, limit, near)
        return [(hit.entry.server, hit.entry.own_name) for hit in hits]

    return search


def _vectors(model: SentenceModel, entries: Sequence[ToolEntry]) -> list[bytes]:
    cache = Cache(VECTORS, model=model.model, size=model.size)
    found: list[bytes] = []
    for entry in entries:
        text = gist(entry)
        vector = cache.get(text)
        if vector is None:
            vector = model.tool(text)
            cache.put([(text, vector)])
        found.append(vector)
    cache.close()
    return found


def times(folder: Path, size: int = 10_000) -> None:
    """Print how long searches among so many tools take."""
    sys.path.insert(0, str(folder))
    evaluate = __import__("evaluate")
    search = build(evaluate.load_tools("toucan")[:size])
    steps = [each["query"] for each in evaluate.load_task("azure_mcp")[1]]
    taken: list[float] = []
    for text in steps[:QUERIES]:
        began = time.perf_counter()
        search(text, 5)
        taken.append((time.perf_counter() - began) * 1000)
    taken.sort()
    p50, p99 = statistics.median(taken), taken[int(0.99 * (len(taken) - 1))]
    print(f"{size} tools: p50 {p50:.1f} ms, p99 {p99:.1f} ms")


if __name__ == "__main__":
    times(Path(sys.argv[1] if len(sys.argv) > 1 else "../shared/retrieval"))
