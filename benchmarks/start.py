"""From spawn to the first `tools/list`, beside the barest server the SDK allows.

    python -m benchmarks.start [ROUNDS]

Who is answered ahead has been there once before; all others find nothing that is remembered.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measure import ROOT, RawClient, aggregator, memory_of, report, spread

BARE = """\
import anyio, mcp_types as types
from mcp.server import Server
from mcp.server.stdio import stdio_server
async def list_tools(ctx, params):
    return types.ListToolsResult(tools=[])
async def main():
    server = Server("bare", on_list_tools=list_tools)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
anyio.run(main)
"""

SCRIPT = str(Path(sys.executable).with_name("aggregator"))
"""What `pip` installs."""
AHEAD = "the example servers, answered ahead"
MODULE = "the same by `python -m`"

HANGING = [sys.executable, "-S", "-c", "import sys; sys.stdin.read()"]
EXITING = [sys.executable, "-S", "-c", "pass"]


def first_list(command: list[str], state: str) -> tuple[float, float]:
    """Return seconds from spawn to the answer to `tools/list`, and the memory held then."""
    began = time.perf_counter()
    client = RawClient(command, env={"XDG_STATE_HOME": state})
    client.open()
    client.ask("tools/list")
    took = time.perf_counter() - began
    memory = memory_of(client.pid)
    client.close()
    return took, memory


def be_known(command: list[str], state: str) -> None:
    """Be served once until every server was heard of."""
    client = RawClient(command, env={"XDG_STATE_HOME": state})
    client.open()
    client.ask("tools/list")
    client.ask("tools/call", {"name": "ToolSearch", "arguments": {"query": "", "wait": 30}})
    client.close()


def configuration(directory: Path, servers: int) -> Path:
    """Write a configuration of servers that mostly hang and sometimes exit at once."""
    path = directory / f"{servers}.json"
    entries = {
        f"s{number}": {"command": each[0], "args": each[1:]}
        for number in range(servers)
        for each in [EXITING if number % 8 == 0 else HANGING]
    }
    path.write_text(json.dumps({"mcpServers": entries}), encoding="utf-8")
    return path


def importing() -> float:
    """Return the seconds that our own modules add to importing the SDK."""
    program = (
        "import time, mcp.server.stdio; began = time.perf_counter(); "
        "import aggregator.cli.main, aggregator.cli.serve; print(time.perf_counter() - began)"
    )
    runs = [subprocess.check_output([sys.executable, "-c", program]) for _ in range(5)]
    return statistics.median(map(float, runs))


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        sizes = (0, 1, 10, 40, 100)
        commands = {"bare SDK server": [sys.executable, "-c", BARE]} | {
            f"{size} servers": aggregator(configuration(Path(folder), size)) for size in sizes
        }
        # Here every server is heard of, so that the list is the whole one.
        known = aggregator(ROOT / "servers.yaml")
        commands |= {AHEAD: [SCRIPT, *known[3:]], MODULE: known}
        kept = str(Path(folder, "kept"))
        for name in (AHEAD, MODULE):
            be_known(commands[name], kept)
        times: dict[str, list[float]] = {name: [] for name in commands}
        memory: dict[str, list[float]] = {name: [] for name in commands}
        for each in range(rounds):
            for name, command in commands.items():
                is_ahead = name in (AHEAD, MODULE)
                state = kept if is_ahead else str(Path(folder, f"{each} {name}"))
                took, held = first_list(command, state)
                times[name].append(took)
                memory[name].append(held)
    base = statistics.median(times["bare SDK server"])
    report(
        "start: spawn to the first tools/list",
        ("what", "median (quartiles)", "ratio", "memory"),
        [
            (
                name,
                spread(taken),
                f"{statistics.median(taken) / base:.2f}",
                f"{statistics.median(memory[name]):.0f} MB",
            )
            for name, taken in times.items()
        ],
    )
    print(f"\nImporting our own modules after the SDK takes {1e3 * importing():.0f} ms.")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 9)
