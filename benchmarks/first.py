"""The first list and the first search of a client that asks at once, with a dozen servers behind.

    python -m benchmarks.first [ROUNDS]

Five servers are the examples, three start at once, two after one and two seconds, one exits and
one hangs. The first list stands beside that of an aggregator with no servers.
"""

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.measure import ROOT, RawClient, aggregator, report, spread

FAULTY = str(ROOT / "tests" / "faulty.py")
EXAMPLES = ("notes", "files", "board", "text", "units")
WITHIN = 3.0
"""Seconds after which no first search waits for a server."""


def servers() -> dict[str, list[str]]:
    """Return the arguments of each of the dozen."""
    slow = {
        f"after{seconds}": ["-c", f"import sys, time; time.sleep({seconds}); {_run()}"]
        for seconds in (1, 2)
    }
    return {
        **{name: [str(ROOT / "examples" / "servers" / f"{name}.py")] for name in EXAMPLES},
        **{f"quick{number}": [FAULTY] for number in range(3)},
        **slow,
        "exits": ["-S", "-c", "pass"],
        "hangs": ["-S", "-c", "import sys; sys.stdin.read()"],
    }


def _run() -> str:
    path = str(Path(FAULTY).parent)
    return (
        f"import runpy; sys.path.insert(0, {path!r}); runpy.run_path({FAULTY!r}, None, '__main__')"
    )


def configuration(directory: Path, arguments: Mapping[str, list[str]]) -> Path:
    """Write a configuration of these servers."""
    path = directory / f"{len(arguments)}.json"
    entries = {name: {"command": sys.executable, "args": each} for name, each in arguments.items()}
    path.write_text(json.dumps({"state": False, "servers": entries}), encoding="utf-8")
    return path


def facts(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    return answer["result"]["_meta"]["aggregator/search"]


class Start:
    """One start: when the list came, when the search, and what it had searched."""

    def __init__(self, config: Path) -> None:
        began = time.perf_counter()
        client = RawClient(aggregator(config))
        client.open()
        client.ask("tools/list")
        listed = time.perf_counter()
        self.listed = listed - began
        search = {"name": "ToolSearch", "arguments": {"query": ""}}
        told = facts(client.ask("tools/call", search))
        self.searched = time.perf_counter() - listed
        pending = {each["name"] for each in told["pending_mcp_servers"]}
        self.found = servers().keys() - pending
        read = client.ask("resources/read", {"uri": "catalog://servers"})
        states = json.loads(read["result"]["contents"][0]["text"])["servers"]
        now = time.perf_counter() - listed
        self.ready = {
            each["name"]
            for each in states
            if each["state"] == "ready" and now - each["seconds"] <= WITHIN
        }
        client.close()


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        none = configuration(Path(folder), {})
        dozen = configuration(Path(folder), servers())
        alone: list[Start] = []
        behind: list[Start] = []
        for _ in range(rounds):
            alone.append(Start(none))
            behind.append(Start(dozen))
    missed = [sorted(each.ready - each.found) for each in behind]
    report(
        "a client that asks at once",
        ("what", "no servers", "12 servers"),
        [
            (
                "spawn to first list",
                *(spread([s.listed for s in each]) for each in (alone, behind)),
            ),
            ("list to first search", *(spread([s.searched for s in e]) for e in (alone, behind))),
            ("servers searched", 0, statistics.median(len(each.found) for each in behind)),
            ("ready within 3 s, not searched", 0, max(map(len, missed))),
        ],
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 9)
