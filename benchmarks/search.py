"""Speed and size of our search at 10,000 tools or other sizes, beside others in the same run.

    python -m benchmarks.search [100 1000 10000 17000]

`bm25s` and FastMCP's BM25 transform are measured, too, where they are installed
(`pip install bm25s fastmcp`). The catalogs are read from `../shared/retrieval`.
"""

import gc
import json
import re
import statistics
import sys
import tracemalloc
from collections.abc import Callable, Coroutine, Sequence
from heapq import nlargest
from random import Random
from time import perf_counter
from typing import Any, TypeVar

from aggregator.catalog import ToolEntry
from aggregator.names import ServerName
from aggregator.search.index import Index, warm_up
from aggregator.search.query import Keywords, parse_query
from benchmarks.retrieval import DATA, Tool, entries

TOOLS = 10_000
LIMIT = 5
WORDS = 12
"""Words of the longest query that is timed as an everyday one."""

T = TypeVar("T")
Ask = Callable[[str], object]


def main(arguments: Sequence[str]) -> None:
    """Measure everything at each size and print it."""
    if not DATA.exists():
        sys.exit(f"There are no catalogs at {DATA}: put them there to measure search")
    every, queries = _read("toucan/tools.jsonl"), _queries()
    warm_up()
    for size in [int(each) for each in arguments] or [TOOLS]:
        _measure(every[:size], queries)


def _measure(tools: Sequence[Tool], queries: Sequence[str]) -> None:
    index, seconds = _timed(lambda: _index(tools))
    print(f"\n{len(index):,} tools, {len(queries)} queries of up to {WORDS} words\n")
    print(f"build            {seconds:8.2f} s")
    print(f"memory           {_megabytes(tools):8.1f} MB")
    for name, usual in _changes(index, tools).items():
        print(f"{name:17s}{1e3 * usual:8.2f} ms")
    fuzz = [_best(_ask(index), text) for text in _fuzz()]
    print(f"fuzz, worst of {len(fuzz)} {1e3 * max(fuzz):6.2f} ms\n")
    print(f"{'':20s}{'p50 ms':>9s}{'p99 ms':>9s}{'to ours':>9s}")
    ours = _latency("aggregator", _ask(index), queries, None)
    for name, prepare in OTHERS.items():
        try:
            ask, some = prepare(tools), queries if name == "bm25s" else queries[::20]
        except ImportError as error:
            print(f"{name:20s} is not installed ({error.name}): not measured")
        else:
            _latency(name, ask, some, ours)


def _queries() -> list[str]:
    """Return real queries, cut to the length that is promised for."""
    files = ("livemcpbench/queries_route", "livemcpbench/queries_steps", "azure_mcp/queries")
    texts = [each["query"] for file in files for each in _read(f"{file}.jsonl")]
    return [" ".join(text.split()[:WORDS]) for text in texts]


def _fuzz() -> list[str]:
    """Return texts as long as a query may be, of letters in many scripts and of common words."""
    random = Random(1)  # noqa: S311 - noise, not secrets
    letters = 'abcdefghijklmnopqrstuvwxyz _-+"\u00e4\u0436\u4e2d\u6587\u0e44   '
    words = ["get", "list", "create", "data", "file", "user", "search", "name", "id", "update"]
    noise = ["".join(random.choices(letters, k=1024)) for _ in range(100)]
    return noise + [" ".join(random.choices(words, k=200))[:1024] for _ in range(100)]


def _index(tools: Sequence[Tool]) -> Index:
    by_server = entries(tools)
    index = Index(list(by_server))
    for server, its in by_server.items():
        index.update(server, its)
    return index


def _ask(index: Index) -> Ask:
    def ask(text: str) -> object:
        query = parse_query(text)
        return index.rank(query, LIMIT) if isinstance(query, Keywords) else None

    return ask


def _megabytes(tools: Sequence[Tool]) -> float:
    """Return what an index takes beside the definitions themselves."""
    by_server = entries(tools)
    gc.collect()
    tracemalloc.start()
    index = Index(list(by_server))
    for server, its in by_server.items():
        index.update(server, its)
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return taken / 2**20


def _changes(index: Index, tools: Sequence[Tool]) -> dict[str, float]:
    """Return the seconds it takes a server of fifty tools to join and to leave."""
    some = [entry for its in entries(tools[:50]).values() for entry in its]
    server = ServerName("joining")
    fifty = [ToolEntry(each.name, server, each.tool) for each in some]
    joins: list[float] = []
    leaves: list[float] = []
    for _ in range(10):
        joins.append(_timed(lambda: index.update(server, fifty))[1])
        leaves.append(_timed(lambda: index.remove(server))[1])
    return {"50 tools join": statistics.median(joins), "50 tools leave": statistics.median(leaves)}


def _bm25s(tools: Sequence[Tool]) -> Ask:
    """Index with bm25s, which is compiled."""
    import bm25s  # noqa: PLC0415 - optional

    texts = [_text(tool) for tool in tools]
    model = bm25s.BM25()
    model.index(bm25s.tokenize(texts, show_progress=False), show_progress=False)

    def ask(text: str) -> object:
        tokens = bm25s.tokenize([text], show_progress=False, return_ids=False)
        return model.retrieve(tokens, k=LIMIT, show_progress=False)

    return ask


def _linear(tools: Sequence[Tool]) -> Ask:
    """Look at every tool for every word, as clients do for the few that they have."""
    read = [
        (re.split(r"[_\W]+", tool["name"].lower()), (tool["description"] or "").lower())
        for tool in tools
    ]

    def score(words: Sequence[str], parts: list[str], description: str) -> int:
        found = 0
        for word in words:
            if word in parts:
                found += 12
            elif any(word in part for part in parts):
                found += 6
            if re.search(rf"\b{re.escape(word)}\b", description):
                found += 2
        return found

    def ask(text: str) -> object:
        words = text.lower().split()
        scores = [score(words, parts, description) for parts, description in read]
        return nlargest(LIMIT, range(len(scores)), scores.__getitem__)

    return ask


def _fastmcp(tools: Sequence[Tool]) -> Ask:
    """Index with FastMCP's transform, as its search tool does on every call."""
    from fastmcp.server.transforms.search.bm25 import BM25SearchTransform  # noqa: PLC0415
    from fastmcp.tools.base import Tool as Theirs  # noqa: PLC0415

    theirs = [
        Theirs(
            name=re.sub(r"[^\w.-]", "", f"{tool['server']}__{tool['name']}", flags=re.ASCII)[:128],
            description=tool["description"] or "",
            parameters=tool["inputSchema"] or {},
        )
        for tool in tools
    ]
    transform = BM25SearchTransform(max_results=LIMIT)
    return lambda text: _finished(transform._search(theirs, text))  # noqa: SLF001


def _finished(work: Coroutine[Any, Any, object]) -> object:
    """Run a coroutine that never waits."""
    try:
        work.send(None)
    except StopIteration as stop:
        return stop.value
    raise RuntimeError("it waited")


def _text(tool: Tool) -> str:
    parameters = (tool["inputSchema"] or {}).get("properties") or {}
    return f"{tool['name'].replace('_', ' ')} {tool['description'] or ''} {' '.join(parameters)}"


OTHERS = {"bm25s": _bm25s, "linear scorer": _linear, "FastMCP transform": _fastmcp}


def _latency(name: str, ask: Ask, queries: Sequence[str], ours: float | None) -> float:
    """Print how long queries take, the best of three times each; return the median."""
    taken = [_best(ask, text) for text in queries]
    cuts = statistics.quantiles(taken, n=100)
    ratio = f"{cuts[49] / ours:8.1f}x" if ours else f"{'1.0x':>9s}"
    print(f"{name:20s}{1e3 * cuts[49]:9.3f}{1e3 * cuts[98]:9.3f}{ratio}", flush=True)
    return cuts[49]


def _best(ask: Ask, text: str) -> float:
    """Return the seconds a query takes when nothing else comes between."""
    return min(_timed(lambda: ask(text))[1] for _ in range(3))


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    began = perf_counter()
    return work(), perf_counter() - began


def _read(file: str) -> list[dict[str, Any]]:
    with (DATA / file).open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


if __name__ == "__main__":
    main(sys.argv[1:])
