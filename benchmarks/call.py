"""What a call through the aggregator costs, beside the same call straight to its server.

    python -m benchmarks.call [ROUNDS]

One raw client speaks to the server itself, to the aggregator in front of it, to the plainest
forwarder on the SDK and, if it is installed, to FastMCP's proxy. Rounds are interleaved.
"""

import importlib.util
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.measure import RawClient, aggregator, percentile, report
from benchmarks.peers import FASTMCP, FORWARDER, SERVER

CALLS = {100: 200, 10_000: 200, 1_000_000: 20}
"""How often a result of so many characters is asked for in each round."""
SIZES = tuple(CALLS)
IN_FLIGHT = (1, 8, 64)


def latencies(client: RawClient, tool: str, size: int, calls: int) -> list[float]:
    """Return the seconds each call took, one at a time."""
    taken: list[float] = []
    for _ in range(calls):
        began = time.perf_counter()
        answer = client.ask("tools/call", {"name": tool, "arguments": {"size": size}})
        taken.append(time.perf_counter() - began)
        assert len(answer["result"]["content"][0]["text"]) == size
    return taken


def throughput(client: RawClient, tool: str, in_flight: int, calls: int) -> float:
    """Return the calls a second with so many in flight."""
    params = {"name": tool, "arguments": {"size": 100}}
    began = time.perf_counter()
    for _ in range(in_flight):
        client.send("tools/call", params)
    for number in range(calls):
        client.read()
        if number < calls - in_flight:
            client.send("tools/call", params)
    return calls / (time.perf_counter() - began)


def opened(command: list[str], tool: str) -> tuple[RawClient, str]:
    client = RawClient(command)
    client.open()
    client.ask("tools/list")
    if tool != "fill":
        # A model has read a definition before it calls; without it, arguments are checked.
        selected = {"query": f"select:{tool}", "wait": 20}
        client.ask("tools/call", {"name": "ToolSearch", "arguments": selected})
    client.ask("tools/call", {"name": tool, "arguments": {"size": 100}})
    return client, tool


def ways(folder: Path) -> dict[str, Callable[[], tuple[RawClient, str]]]:
    """Return the ways to the server, each opened when it is called."""
    config = folder / "servers.json"
    one = {"command": sys.executable, "args": ["-c", SERVER]}
    config.write_text(json.dumps({"mcpServers": {"one": one}}), encoding="utf-8")
    found = {
        "direct": lambda: opened([sys.executable, "-c", SERVER], "fill"),
        "aggregator": lambda: opened(aggregator(config), "one__fill"),
        "plain forwarder": lambda: opened([sys.executable, "-c", FORWARDER, SERVER], "fill"),
    }
    if importlib.util.find_spec("fastmcp") is not None:
        found["FastMCP proxy"] = lambda: opened([sys.executable, "-c", FASTMCP, SERVER], "fill")
    return found


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        clients = {name: way() for name, way in ways(Path(folder)).items()}
        taken = {(name, size): list[float]() for name in clients for size in SIZES}
        rates = {(name, count): list[float]() for name in clients for count in IN_FLIGHT}
        for _ in range(rounds):
            for name, (client, tool) in clients.items():
                for size in SIZES:
                    taken[name, size] += latencies(client, tool, size, CALLS[size])
                for count in IN_FLIGHT:
                    rates[name, count].append(throughput(client, tool, count, 20 * max(count, 10)))
        for client, _tool in clients.values():
            client.close()
    _report(list(clients), taken, rates)


def _report(
    names: list[str],
    taken: dict[tuple[str, int], list[float]],
    rates: dict[tuple[str, int], list[float]],
) -> None:
    report(
        "call: one at a time, stdio to stdio",
        ("way", "result", "p50", "p99", "p50, of direct"),
        [
            (
                name,
                f"{size:,} B",
                f"{1e3 * statistics.median(taken[name, size]):.2f} ms",
                f"{1e3 * percentile(taken[name, size], 0.99):.2f} ms",
                f"{_ratio(taken, name, size):.2f}",
            )
            for size in SIZES
            for name in names
        ],
    )
    report(
        "call: calls a second, 100 B results",
        ("way", "in flight", "calls a second", "of direct"),
        [
            (
                name,
                count,
                f"{statistics.median(rates[name, count]):,.0f}",
                f"{_ratio(rates, name, count):.2f}",
            )
            for count in IN_FLIGHT
            for name in names
        ],
    )


def _ratio(measured: dict[tuple[str, int], list[float]], name: str, at: int) -> float:
    return statistics.median(measured[name, at]) / statistics.median(measured["direct", at])


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
