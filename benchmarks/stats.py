"""What counting costs a call: the same aggregator with `stats` on and off, call by call in turn.

python -m benchmarks.stats [CALLS]
"""

import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measure import RawClient, aggregator
from benchmarks.peers import SERVER

PARAMS = {"name": "one__fill", "arguments": {"size": 100}}
BLOCK = 100
"""Calls of which a median is taken, so that what disturbs one block disturbs both ways."""


def opened(folder: Path, name: str, **top: bool) -> RawClient:
    config = folder / f"{name}.json"
    servers = {"one": {"command": sys.executable, "args": ["-c", SERVER]}}
    config.write_text(json.dumps({**top, "mcpServers": servers}), encoding="utf-8")
    client = RawClient(aggregator(config), {"XDG_STATE_HOME": str(folder)})
    client.open()
    client.ask("tools/list")
    selected = {"query": "select:one__fill", "wait": 20}
    client.ask("tools/call", {"name": "ToolSearch", "arguments": selected})
    client.ask("tools/call", PARAMS)
    return client


def processor_time(client: RawClient) -> float:
    """Return the seconds that the threads of a process have run."""
    threads = Path(f"/proc/{client.pid}/task").iterdir()
    return sum(int((each / "schedstat").read_text().split()[0]) for each in threads) / 1e9


def main(calls: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ways = {
            "off": opened(Path(folder), "off", stats=False),
            "on": opened(Path(folder), "on", stats=True),
        }
        began = {name: processor_time(client) for name, client in ways.items()}
        taken: dict[str, list[float]] = {name: [] for name in ways}
        for number in range(calls):
            for name in sorted(ways, reverse=bool(number % 2)):
                start = time.perf_counter()
                ways[name].ask("tools/call", PARAMS)
                taken[name].append(time.perf_counter() - start)
        used = {name: (processor_time(ways[name]) - began[name]) / calls for name in ways}
        for client in ways.values():
            client.close()
    blocks = [
        {name: statistics.median(each[at : at + BLOCK]) for name, each in taken.items()}
        for at in range(0, calls, BLOCK)
    ]
    report = {
        "p50 on, of off": statistics.median(each["on"] / each["off"] for each in blocks),
        "p50 milliseconds": {name: statistics.median(each) * 1e3 for name, each in taken.items()},
        "processor time a call, microseconds": {name: each * 1e6 for name, each in used.items()},
        "load": os.getloadavg()[0],
    }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 4000)
