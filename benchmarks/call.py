"""What a call through the aggregator costs, beside the same call straight to its server.

    python -m benchmarks.call [ROUNDS] [CHECKOUT] [--beside]

One raw client speaks to the server itself, to the aggregator in front of it, to the plainest
forwarder on the SDK and, if it is installed, to FastMCP's proxy: over stdio to a server over
stdio, and over HTTP to a server over HTTP; client and server in the same era, first the one, then
the other. Rounds are interleaved. With another checkout of the project, the aggregator in it goes
the same way in the same rounds. Processor time is that of the process in the middle, of calls of
100 B one at a time. Servers over HTTP are served by what `mcp` installs; with --beside, by whatever
the aggregator has installed beside it.
"""

import argparse
import importlib.util
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Generator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

from benchmarks.measure import (
    ERAS,
    ROOT,
    Era,
    RawClient,
    aggregator,
    percentile,
    processor_time,
    report,
)
from benchmarks.peers import FASTMCP, FORWARDER, SERVER
from benchmarks.web import (
    WEB_FASTMCP,
    WEB_FORWARDER,
    WEB_SERVER,
    Program,
    Stack,
    WebClient,
    free_port,
    program,
)

CALLS = {100: 200, 10_000: 200, 1_000_000: 20}
"""How often a result of so many characters is asked for in each round."""
SIZES = tuple(CALLS)
IN_FLIGHT = (1, 8, 64)
HAS_FASTMCP = importlib.util.find_spec("fastmcp") is not None


class Client(Protocol):
    """What a raw client can do, over whatever it speaks."""

    def send(self, method: str, params: Mapping[str, Any] | None = None) -> object: ...
    def read(self) -> dict[str, Any]: ...
    def ask(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]: ...
    def open(self) -> None: ...
    def close(self) -> None: ...

    @property
    def pid(self) -> int: ...


Clients = dict[str, tuple[Client, str]]
"""Each way to the server: who goes it, and what the tool is called there."""


def latencies(client: Client, tool: str, size: int, calls: int) -> list[float]:
    """Return the seconds each call took, one at a time."""
    taken: list[float] = []
    for _ in range(calls):
        began = time.perf_counter()
        answer = client.ask("tools/call", {"name": tool, "arguments": {"size": size}})
        taken.append(time.perf_counter() - began)
        assert len(answer["result"]["content"][0]["text"]) == size
    return taken


def throughput(client: Client, tool: str, in_flight: int, calls: int) -> float:
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


def opened(client: Client, tool: str) -> tuple[Client, str]:
    client.open()
    client.ask("tools/list")
    if tool != "fill":
        # A model has read a definition before it calls; without it, arguments are checked.
        selected = {"query": f"select:{tool}", "wait": 20}
        client.ask("tools/call", {"name": "ToolSearch", "arguments": selected})
    client.ask("tools/call", {"name": tool, "arguments": {"size": 100}})
    return client, tool


def configured(folder: Path, name: str, server: Mapping[str, Any]) -> Path:
    config = folder / f"{name}.json"
    config.write_text(json.dumps({"mcpServers": {"one": server}}), encoding="utf-8")
    return config


@contextmanager
def over_stdio(folder: Path, era: Era, other: Path | None) -> Generator[Clients, None, None]:
    """Go every way there is over pipes."""
    server = [sys.executable, "-c", SERVER, era]
    config = configured(folder, f"stdio-{era}", {"command": server[0], "args": server[1:]})
    commands = {
        "direct": server,
        "aggregator": aggregator(config),
        **({} if other is None else {OTHER: aggregator(config)}),
    }
    if era == "handshake":
        commands["plain forwarder"] = [sys.executable, "-c", FORWARDER, SERVER]
        if HAS_FASTMCP:
            commands["FastMCP proxy"] = [sys.executable, "-c", FASTMCP, SERVER]
    clients: Clients = {}
    for name, each in commands.items():
        client = RawClient(each, era=era, cwd=other if other and name == OTHER else ROOT)
        clients[name] = opened(client, tool_of(name))
    yield clients
    for client, _tool in clients.values():
        client.close()


@contextmanager
def over_http(
    folder: Path, era: Era, other: Path | None, served_by: Stack
) -> Generator[Clients, None, None]:
    """Go every way there is over Streamable HTTP."""
    with ExitStack() as stack:
        direct = stack.enter_context(closing(program(WEB_SERVER, served_by, era)))
        config = configured(folder, f"http-{era}", {"url": direct.url})

        def served(checkout: Path) -> Program:
            port = free_port()
            serve = [*aggregator(config), "--http", str(port), "--no-auth"]
            return stack.enter_context(closing(Program(serve, port, checkout)))

        programs = {"direct": direct, "aggregator": served(ROOT)}
        if other is not None:
            programs[OTHER] = served(other)
        if era == "handshake":
            forwarder = program(WEB_FORWARDER, served_by, direct.url)
            programs["plain forwarder"] = stack.enter_context(closing(forwarder))
            if HAS_FASTMCP:
                proxy = stack.enter_context(closing(program(WEB_FASTMCP, direct.url)))
                programs["FastMCP proxy"] = proxy
        clients: Clients = {}
        for name, each in programs.items():
            client = stack.enter_context(closing(WebClient(each.port, era, each.pid)))
            clients[name] = opened(client, tool_of(name))
        yield clients


OTHER = "aggregator, other checkout"


def tool_of(way: str) -> str:
    return "one__fill" if way.startswith("aggregator") else "fill"


def main(rounds: int, other: Path | None, served_by: Stack) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for era in ERAS:
            with over_stdio(folder, era, other) as clients:
                measure(f"stdio to stdio, {era}", clients, rounds)
        for era in ERAS:
            with over_http(folder, era, other, served_by) as clients:
                measure(f"HTTP to HTTP, {era}", clients, rounds)
    print(f"\nload: {', '.join(f'{each:.1f}' for each in os.getloadavg())}")


def measure(title: str, clients: Clients, rounds: int) -> None:
    """Call in turn by every way, and print what it took."""
    taken = {(name, size): list[float]() for name in clients for size in SIZES}
    rates = {(name, count): list[float]() for name in clients for count in IN_FLIGHT}
    worked = dict.fromkeys(clients, 0.0)
    for _ in range(rounds):
        for name, (client, tool) in clients.items():
            before = processor_time(client.pid)
            taken[name, SIZES[0]] += latencies(client, tool, SIZES[0], CALLS[SIZES[0]])
            worked[name] += processor_time(client.pid) - before
            for size in SIZES[1:]:
                taken[name, size] += latencies(client, tool, size, CALLS[size])
            for count in IN_FLIGHT:
                rates[name, count].append(throughput(client, tool, count, 20 * max(count, 10)))
    _report(title, list(clients), taken, rates)
    calls = rounds * CALLS[SIZES[0]]
    report(
        f"call: processor time of the process in the middle, {title}, 100 B",
        ("way", "processor time a call"),
        [(name, f"{1e6 * worked[name] / calls:,.0f} µs") for name in clients],
    )


def _report(
    title: str,
    names: list[str],
    taken: dict[tuple[str, int], list[float]],
    rates: dict[tuple[str, int], list[float]],
) -> None:
    report(
        f"call: one at a time, {title}",
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
        f"call: calls a second, {title}, 100 B results",
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
    parser = argparse.ArgumentParser(prog="python -m benchmarks.call")
    parser.add_argument("rounds", nargs="?", type=int, default=5)
    parser.add_argument("checkout", nargs="?", type=lambda given: Path(given).resolve())
    parser.add_argument("--beside", action="store_true")
    asked = parser.parse_args()
    main(asked.rounds, asked.checkout, "beside" if asked.beside else "alone")
