"""Two hundred servers at once: time until all are ready, memory, descriptors, idle processor time.

    python -m benchmarks.fleet [SERVERS]

Beside it stands the SDK's client, connected to the same servers by the plainest program.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measure import ROOT, RawClient, aggregator, memory_of, report

FAULTY = ROOT / "tests" / "faulty.py"
TOOLS = 50
IDLE_SECONDS = 10.0

SDK = """\
import sys, time, anyio
from mcp import Client, StdioServerParameters
count, tools, path = int(sys.argv[1]), sys.argv[2], sys.argv[3]
async def connect(ready, done):
    command = StdioServerParameters(command=sys.executable, args=[path, "ok", "--tools", tools])
    async with Client(command) as client:
        await client.list_tools()
        ready.append(None)
        await done.wait()
async def main():
    ready, done = [], anyio.Event()
    async with anyio.create_task_group() as group:
        for _ in range(count):
            group.start_soon(connect, ready, done)
        while len(ready) < count:
            await anyio.sleep(0.02)
        print("ready", flush=True)
        await anyio.to_thread.run_sync(sys.stdin.readline)
        done.set()
anyio.run(main)
"""


def processor_time(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def idle(pid: int) -> str:
    before = processor_time(pid)
    time.sleep(IDLE_SECONDS)
    return f"{100 * (processor_time(pid) - before) / IDLE_SECONDS:.1f} %"


def ours(count: int, folder: Path) -> tuple[object, ...]:
    config = folder / "servers.json"
    one = {"command": sys.executable, "args": [str(FAULTY), "ok", "--tools", str(TOOLS)]}
    servers = {f"s{number}": one for number in range(count)}
    config.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    began = time.perf_counter()
    client = RawClient(aggregator(config), env={"XDG_STATE_HOME": str(folder)})
    client.open()
    client.ask("tools/list")
    listed = time.perf_counter() - began
    while True:
        answer = client.ask("resources/read", {"uri": "catalog://servers"})
        states = json.loads(answer["result"]["contents"][0]["text"])["servers"]
        if all(server["state"] == "ready" for server in states):
            break
        time.sleep(0.05)
    took = time.perf_counter() - began
    row = (
        "aggregator",
        f"{listed:.2f} s",
        f"{took:.1f} s",
        f"{memory_of(client.pid):.0f} MB",
        descriptors(client.pid),
        idle(client.pid),
    )
    client.close()
    return row


def theirs(count: int) -> tuple[object, ...]:
    began = time.perf_counter()
    command = [sys.executable, "-c", SDK, str(count), str(TOOLS), str(FAULTY)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        took = time.perf_counter() - began
        row = (
            "SDK client",
            "-",
            f"{took:.1f} s",
            f"{memory_of(process.pid):.0f} MB",
            descriptors(process.pid),
            idle(process.pid),
        )
        process.stdin.write(b"\n")
        process.stdin.close()
    return row


def main(count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        rows = [theirs(count), ours(count, Path(folder))]
    report(
        f"fleet: {count} servers of {TOOLS} tools",
        ("what", "first list", "all ready", "memory", "descriptors", "idle processor"),
        rows,
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
