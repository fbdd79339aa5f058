"""Ten thousand real tools: what they take, and who notices that another server joins.

    python -m benchmarks.join [TOOLS]

The catalog is read from `../shared/retrieval`. Its tools are listed by a hundred small programs;
further servers of 50 tools are ready from the start and answer only when they are told to, one
after another, while a client calls without a pause.
"""

import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.measure import RawClient, aggregator, memory_of, percentile, report
from benchmarks.retrieval import DATA
from benchmarks.start import BARE

SERVERS = 100
JOINING = 8
JOINED_TOOLS = 50
QUIET_CALLS = 1_000

LISTER = """\
import json, sys
tools = json.load(open(sys.argv[1]))
if len(sys.argv) > 2:
    open(sys.argv[2]).readline()
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    result = {"content": [{"type": "text", "text": "x"}]}
    if asked["method"] == "initialize":
        info = {"name": "lister", "version": "1"}
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
        result["serverInfo"] = info
    elif asked["method"] == "tools/list":
        result = {"tools": tools}
    answer = {"jsonrpc": "2.0", "id": asked["id"], "result": result}
    if asked["method"] == "server/discover":
        answer = {"jsonrpc": "2.0", "id": asked["id"]}
        answer["error"] = {"code": -32601, "message": "no such method"}
    print(json.dumps(answer), flush=True)
"""
"""Lists the tools in a file; a second argument is a pipe to wait for a line of."""


def catalog(count: int) -> list[dict[str, Any]]:
    """Return so many tools of the catalog, each with a name of its own."""
    lines = (DATA / "toucan" / "tools.jsonl").read_text(encoding="utf-8").splitlines()
    found: dict[str, dict[str, Any]] = {}
    for line in lines:
        tool = json.loads(line)
        tool.pop("server")
        found.setdefault(tool["name"], tool)
        if len(found) == count:
            break
    return list(found.values())


def lister(folder: Path, name: str, tools: list[dict[str, Any]], *pipe: str) -> dict[str, Any]:
    path = folder / f"{name}.tools.json"
    path.write_text(json.dumps(tools), encoding="utf-8")
    return {"command": sys.executable, "args": ["-S", "-c", LISTER, str(path), *pipe]}


def configured(folder: Path, tools: list[dict[str, Any]]) -> tuple[Path, list[Path]]:
    """Write the configuration; return it, and the pipes that the late servers wait for."""
    late = [tools.pop() for _ in range(JOINING * JOINED_TOOLS)]
    share = -(-len(tools) // SERVERS)
    servers = {
        f"s{number}": lister(folder, f"s{number}", tools[number * share : (number + 1) * share])
        for number in range(SERVERS)
    }
    pipes = [folder / f"pipe{number}" for number in range(JOINING)]
    for number, pipe in enumerate(pipes):
        os.mkfifo(pipe)
        part = late[number * JOINED_TOOLS : (number + 1) * JOINED_TOOLS]
        servers[f"late{number}"] = lister(folder, f"late{number}", part, str(pipe))
    config = folder / "servers.json"
    config.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    return config, pipes


def states(client: RawClient) -> dict[str, str]:
    answer = client.ask("resources/read", {"uri": "catalog://servers"})
    listed = json.loads(answer["result"]["contents"][0]["text"])["servers"]
    return {server["name"]: server["state"] for server in listed}


def latency(client: RawClient, tool: str) -> float:
    began = time.perf_counter()
    answer = client.ask("tools/call", {"name": tool, "arguments": {}})
    assert "result" in answer, answer
    return time.perf_counter() - began


def join(client: RawClient, tool: str, server: str, pipe: Path) -> list[float]:
    """Let a server join, and call until it is there and a little longer."""
    taken: list[float] = []
    with pipe.open("wb", buffering=0) as told:
        told.write(b"go\n")
        while True:
            taken += [latency(client, tool) for _ in range(20)]
            if states(client)[server] == "ready":
                break
    return taken + [latency(client, tool) for _ in range(100)]


def main(count: int) -> None:
    if not DATA.exists():
        sys.exit(f"There are no catalogs at {DATA}: put them there to measure")
    tools = catalog(count + JOINING * JOINED_TOOLS)
    bare = RawClient([sys.executable, "-c", BARE])
    bare.open()
    bare.ask("tools/list")
    smallest = memory_of(bare.pid)
    bare.close()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        called = f"s0__{tools[0]['name']}"
        config, pipes = configured(folder, tools)
        client = RawClient(aggregator(config), env={"XDG_STATE_HOME": name})
        client.open()
        client.ask("tools/list")
        while sum(state == "ready" for state in states(client).values()) < SERVERS:
            time.sleep(0.1)
        selected = {"name": "ToolSearch", "arguments": {"query": f"select:{called}"}}
        client.ask("tools/call", selected)
        memory = memory_of(client.pid)
        quiet = [latency(client, called) for _ in range(QUIET_CALLS)]
        joins = [join(client, called, f"late{number}", pipe) for number, pipe in enumerate(pipes)]
        client.close()
    usual = statistics.median(quiet)
    worst = [1e3 * (max(each) - usual) for each in joins]
    report(
        f"join: {count:,} tools of {SERVERS} servers, and {JOINING} servers of {JOINED_TOOLS} more",
        ("what", "figure"),
        [
            ("memory of the bare SDK server", f"{smallest:.0f} MB"),
            ("memory with all tools", f"{memory:.0f} MB"),
            ("of that for the tools", f"{memory - smallest:.0f} MB"),
            ("a call in quiet, p50", f"{1e3 * usual:.2f} ms"),
            ("a call in quiet, p99", f"{1e3 * percentile(quiet, 0.99):.2f} ms"),
            ("a call in quiet, slowest", f"{1e3 * max(quiet):.2f} ms"),
            (
                "delay of the slowest call of a join, median",
                f"{statistics.median(worst):.2f} ms",
            ),
            ("delay of the slowest call of all joins", f"{max(worst):.2f} ms"),
        ],
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
