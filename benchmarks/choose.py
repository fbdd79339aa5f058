"""Choose the numbers of the ranking with one set left out, and say what each ingredient brings.

    python -m benchmarks.choose [quick]

Every change of one number is measured on every task. For each set, all changes that bring
something in the mean of the *other* sets are made together, and the set itself is measured with
them: what such a choice is worth on a catalog that nobody has seen. A set is all that was taken
from one source, so that no catalog is on both sides; `quick` leaves the large ones out. The
catalogs are read from `../shared/retrieval`, beside the project.
"""

import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean

from aggregator.search.index import Index
from aggregator.search.query import Keywords, parse_query
from aggregator.search.weights import WEIGHTS, Weights
from benchmarks.retrieval import Tool, entries, evaluation, index_of

SETS = ("livemcpbench", "azure_mcp", "metatool", "stabletoolbench")
WORTH = 0.001
"""What a change must bring in the mean of the other sets to be made: less is chance."""

Change = Callable[[Weights], Weights]
Recall = Mapping[str, float]
"""recall@5 by task."""


def _number(name: str, value: float) -> Change:
    return lambda weights: weights._replace(**{name: value})


def _rule(name: str, value: float) -> Change:
    return lambda weights: weights._replace(by_words=weights.by_words._replace(**{name: value}))


WITHOUT: Mapping[str, Change] = {
    "equivalents": _number("equivalent", 0.0),
    "topics": _number("topic", 0.0),
    "bonus for coverage": _number("coverage", 0.0),
    "bonus for neighbours": _number("together", 0.0),
    "bonus for whole names": _number("named", 0.0),
    "bonus for the server's name": _number("hosted", 0.0),
    "less weight for wrapping words": _number("faint", 1.0),
    "words run together": _number("joined", 0.0),
    "the average catalog": _number("prior", 1.0),
    "twins": _rule("twin", 1.0),
    "crowding": _rule("crowding", 1.0),
    "needs that are met counting less": _rule("answered", 1.0),
    "strange servers counting less": _rule("strange", 1.0),
}
"""Each ingredient that one number switches off."""

MOVES: Mapping[str, Change] = {
    **{f"coverage {value}": _number("coverage", value) for value in (0.25, 1.0)},
    **{f"together {value}": _number("together", value) for value in (0.15, 0.6)},
    **{f"named {value}": _number("named", value) for value in (0.15, 0.6)},
    **{f"hosted {value}": _number("hosted", value) for value in (0.15, 0.6)},
    **{f"faint {value}": _number("faint", value) for value in (0.5, 0.85)},
    **{f"equivalent {value}": _number("equivalent", value) for value in (0.2, 0.6)},
    **{f"topic {value}": _number("topic", value) for value in (0.2, 0.6)},
    **{f"doubted {value}": _number("doubted", value) for value in (0.1, 0.6)},
    **{f"prior {value}": _number("prior", value) for value in (100.0, 1600.0)},
    **{f"crowding {value}": _rule("crowding", value) for value in (0.8, 0.95)},
    **{f"answered {value}": _rule("answered", value) for value in (0.5, 0.85)},
    **{f"strange {value}": _rule("strange", value) for value in (0.7, 0.95)},
}
"""Each number, lower and higher by about half."""


class Bench:
    """The tasks, with every tool read once: what is chosen here has to do with queries alone."""

    def __init__(self, *, quick: bool) -> None:
        self._evaluation = evaluation()
        self.tasks = [task for task in self._evaluation["TASKS"] if not (quick and "+" in task)]
        self._read: dict[str, Index] = {}

    def recall(self, weights: Weights, tasks: Iterable[str]) -> Recall:
        """Return the recall of some tasks with these numbers."""
        return {task: self._one(weights, task) for task in tasks}

    def _one(self, weights: Weights, task: str) -> float:
        tools, queries = self._evaluation["load_task"](task)
        index = self._index(task, tools, weights)
        found = [_hits(index, each["query"]) for each in queries]
        return fmean(map(self._recall_of, found, queries))

    def _recall_of(self, found: Sequence[tuple[str, str]], query: Tool) -> float:
        recall: float = self._evaluation["score"](found, query)["recall@5"]
        return recall

    def _index(self, task: str, tools: Sequence[Tool], weights: Weights) -> Index:
        name, _, more = task.partition("+")
        catalog = f"{name.partition('/')[0]}+{more}"
        if catalog not in self._read:
            self._read[catalog] = index_of(tools)
        by_server = entries(tools)
        index = Index(list(by_server), weights=weights)
        for server, its in by_server.items():
            deque(index.stage(server, its, like=self._read[catalog]), maxlen=0)
        return index


def _hits(index: Index, text: str) -> list[tuple[str, str]]:
    query = parse_query(text)
    hits = index.rank(query, 10) if isinstance(query, Keywords) else []
    return [(hit.entry.server, hit.entry.own_name) for hit in hits]


def of_set(recall: Recall, name: str) -> float:
    """Return the mean recall of the tasks of one set."""
    return fmean(value for task, value in recall.items() if task.startswith(name))


def main(arguments: Sequence[str]) -> None:
    """Print what each ingredient brings on each set, and what is gained by choosing."""
    bench = Bench(quick="quick" in arguments)
    usual = bench.recall(WEIGHTS, bench.tasks)
    print(_row("", SETS))
    print(_row("as it is", [f"{of_set(usual, each):.3f}" for each in SETS]))
    for name, change in WITHOUT.items():
        found = bench.recall(change(WEIGHTS), bench.tasks)
        print(_row(f"without {name}", _differences(found, usual)), flush=True)
    moved = dict[str, Recall]()
    for name, change in MOVES.items():
        moved[name] = bench.recall(change(WEIGHTS), bench.tasks)
        print(_row(name, _differences(moved[name], usual)), flush=True)
    for left_out in SETS:
        others = [each for each in SETS if each != left_out]
        gains = {
            name: fmean(of_set(found, each) - of_set(usual, each) for each in others)
            for name, found in moved.items()
        }
        chosen = [name for name, gain in gains.items() if gain >= WORTH]
        weights = WEIGHTS
        for name in chosen:
            weights = MOVES[name](weights)
        own = [task for task in bench.tasks if task.startswith(left_out)]
        now = of_set(bench.recall(weights, own), left_out)
        said = ", ".join(chosen) or "nothing changed"
        print(f"{left_out}: {of_set(usual, left_out):.3f}, {now:.3f} by the others ({said})")


def _differences(found: Recall, usual: Recall) -> list[str]:
    return [f"{of_set(found, each) - of_set(usual, each):+.3f}" for each in SETS]


def _row(name: str, cells: Iterable[str]) -> str:
    return f"{name:42s}" + "".join(f"{cell:>17s}" for cell in cells)


if __name__ == "__main__":
    main(sys.argv[1:])
