"""A start with twelve published servers: the first list, and a first search sent at once.

    python -m tests.foreign.start [ROUNDS]

Each time first with an empty state directory, then with what that start has left in it. The list
must be as fast as with no server at all. The search, sent right after it, must find a tool
of every server that is ready within three seconds, in both eras of clients; when a server was ready
is told by the aggregator itself, in `catalog://servers`.
"""

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import anyio

from tests.foreign.installing import install, ready_node, variables
from tests.foreign.published import SERVERS, Published
from tests.foreign.scratch import fill
from tests.foreign.wire import talking
from tests.peers import ERAS, Era

ROOT = Path(__file__).parents[2]
TWELVE = (
    *("everything", "filesystem", "memory", "sequential-thinking", "playwright", "context7"),
    *("tavily", "exa", "chart", "time", "fetch", "git"),
)
WITHIN = 2.8
"""Seconds after the list in which a server must be ready to be found: times are told in tenths."""
LATER = 15.0
"""Seconds after which it is looked which servers were ready, and when."""
FOUND = 100
"""Tools that the search may find: enough for one of every server."""


class Start(NamedTuple):
    """One start, in seconds from the first byte that we sent."""

    listed: float
    answered: float
    found: set[str]
    """Servers with a tool in the answer."""
    ready: dict[str, float]
    """When each server was ready."""


def main(rounds: int) -> int:
    """Measure and print; return the exit status."""
    ready_node()
    servers = [server for server in SERVERS if server.name in TWELVE]
    head = (
        *("client", "state", "list, none", "list, twelve", "search"),
        *("ready within 3 s", "of these found", "found"),
    )
    sys.stdout.write(f"| {' | '.join(head)} |\n| --- | --- |{' ---: |' * (len(head) - 2)}\n")
    complete = [anyio.run(_measure, servers, era, rounds) for era in ERAS]
    return 0 if all(complete) else 1


async def _measure(servers: Sequence[Published], era: Era, rounds: int) -> bool:
    """Write two rows; return whether all was found that had to be."""
    none: list[Start] = []
    many: dict[str, list[Start]] = {"empty": [], "remembered": []}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            none.append(await _start([], era, Path(folder)))
        with tempfile.TemporaryDirectory() as folder:
            for starts in many.values():
                starts.append(await _start(servers, era, Path(folder)))
    told = [_tell(era, state, none, starts) for state, starts in many.items()]
    return all(told)


def _tell(era: Era, state: str, none: Sequence[Start], many: Sequence[Start]) -> bool:
    ready = [
        {name for name, at in start.ready.items() if at - start.listed <= WITHIN} for start in many
    ]
    for start, early in zip(many, ready, strict=True):
        if early - start.found:
            sys.stderr.write(f"{era}: not found: {', '.join(sorted(early - start.found))}\n")
    cells = (
        era,
        state,
        f"{1e3 * statistics.median(start.listed for start in none):.0f} ms",
        f"{1e3 * statistics.median(start.listed for start in many):.0f} ms",
        f"{statistics.median(start.answered for start in many):.1f} s",
        sum(map(len, ready)),
        sum(len(early & start.found) for start, early in zip(many, ready, strict=True)),
        f"{sum(len(start.found) for start in many)} of {len(TWELVE) * len(many)}",
    )
    sys.stdout.write(f"| {' | '.join(map(str, cells))} |\n")
    sys.stdout.flush()
    return not any(early - start.found for start, early in zip(many, ready, strict=True))


async def _start(servers: Sequence[Published], era: Era, folder: Path) -> Start:
    work, path = folder / "work", folder / "servers.json"
    fill(work)
    entries = {
        server.name: {
            "command": str(install(server)),
            "args": [each.format(work=work) for each in server.args],
            "env": variables(server, work),
            "cwd": str(work),
        }
        for server in servers
    }
    settings = {"maxResults": FOUND, "maxResultChars": 200_000}
    path.write_text(json.dumps({"servers": entries, **settings}), encoding="utf-8")
    command = [sys.executable, "-m", "aggregator", "serve", "--config", str(path)]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(folder)}
    began = time.monotonic()
    async with talking(command, era, env, work) as wire:
        await wire.open()
        await wire.ask("tools/list")
        listed = time.monotonic() - began
        if not servers:
            return Start(listed, listed, set(), {})
        query = f"select:{','.join(map(_first_tool, servers))}"
        answer = await wire.ask("tools/call", {"name": "ToolSearch", "arguments": {"query": query}})
        answered = time.monotonic() - began
        facts = answer["result"]["_meta"]["aggregator/search"]
        await anyio.sleep(LATER)
        states = (await wire.read_document("catalog://servers"))["servers"]
        now = time.monotonic() - began
        owners = {
            each["name"]: each["server"]
            for each in (await wire.read_document("catalog://tools"))["tools"]
        }
    found = {owners[name] for name in facts["matches"] if name in owners}
    ready = {each["name"]: now - each["seconds"] for each in states if each["state"] == "ready"}
    return Start(listed, answered, found, ready)


def _first_tool(server: Published) -> str:
    """Return the name that a model would have seen for the first tool that is called."""
    return f"{server.name}__{server.calls[0].tool}".replace("-", "_")


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 3))
