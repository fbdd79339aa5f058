"""How long the event loop stands still while servers do every fault there is.

The aggregator runs in this process, with real servers behind it; a probe on the same loop wakes
every few milliseconds and notes how late it is. On a busy machine it is also late because other
processes run: what counts is the processor time that this thread has used meanwhile.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import anyio

from aggregator.app.life import Orders, running_fleet, serve_client
from aggregator.basics import garbage
from aggregator.config import load_config
from aggregator.upstream.server import Upstream
from aggregator.upstream.stdio import standard_streams
from tests.faults import FAULTS
from tests.peers import Era, ready
from tests.soak.client import ENVELOPE, INTRODUCTION, ROOT, Servers, faulty

MEBIBYTE = 1 << 20

HEAD = 100
"""Bytes of an answer in which its id is found."""

_ID = re.compile(rb'\{"jsonrpc":"2\.0","id":(\d+),')

INTERVAL = 0.005
"""Seconds between two wakes of the probe."""

FOLLOWING = 40
"""Wakes for which what follows from a fault is looked at: a relisting, a restart."""

LISTINGS = (
    "duplicates", "bad_tools", "schema_bomb", "deep_schema", "megabyte_description", "redos",
    "cursor_same", "cursor_aba", "cursor_empty", "cursor_infinite", "notify_on_list",
)  # fmt: skip
"""What can be wrong with a listing."""

SIZES = {
    "hugeline": (8 * MEBIBYTE, 16 * MEBIBYTE - 200, 32 * MEBIBYTE),
    "hugebytes": (MEBIBYTE, 4 * MEBIBYTE - 200, 16 * MEBIBYTE),
    "noise": (900,),
    "stderr": (20_000,),
    "mutations": (5_000,),
    "deep": (150, 100_000),
    "trickle": (1_000,),
}
"""How much of each fault; of a huge one 1, 4 and 16 MiB unless it says otherwise."""


@dataclass(slots=True)
class Probe:
    """The longest that the loop stood still."""

    late: float = 0.0
    """Seconds by the clock."""
    busy: float = 0.0
    """Seconds of it in which this thread worked."""
    beat: anyio.Event = field(default_factory=anyio.Event)
    """Set when the loop has been looked at once more."""

    async def run(self) -> None:
        while True:
            began, worked = time.perf_counter(), time.thread_time()
            with anyio.move_on_after(INTERVAL):
                await anyio.Event().wait()
            late = time.perf_counter() - began - INTERVAL
            self.late = max(self.late, late)
            self.busy = max(self.busy, min(late, time.thread_time() - worked))
            self.beat.set()
            self.beat = anyio.Event()

    async def beats(self, number: int) -> None:
        """Wait until the loop has been looked at so many times more."""
        for _ in range(number):
            await self.beat.wait()

    def forget(self) -> None:
        self.late = self.busy = 0.0


@dataclass(frozen=True, slots=True)
class Stall:
    """The longest stall during one fault."""

    fault: str
    late: float
    busy: float


class Pipes:
    """A client on two pipes that looks at no more of an answer than its id."""

    def __init__(self) -> None:
        self.stdin, self._input = os.pipe()
        self._output, self.stdout = os.pipe()
        os.set_blocking(self._output, False)
        self._numbers = count(1)
        self._came: dict[int, anyio.Event] = {}

    async def read(self) -> None:
        """Find the ids of what is answered."""
        head = b""
        while True:
            await anyio.wait_readable(self._output)
            first, *rest = os.read(self._output, 1 << 16).split(b"\n")
            head = (head + first)[:HEAD]
            for begun in rest:
                self._answered(head)
                head = begun[:HEAD]

    def _answered(self, head: bytes) -> None:
        if found := _ID.match(head):
            self._came.pop(int(found[1])).set()

    async def request(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a request and wait for its answer."""
        number = next(self._numbers)
        came = self._came[number] = anyio.Event()
        self.write({"id": number, "method": method, "params": params})
        await came.wait()

    def write(self, message: Mapping[str, Any]) -> None:
        os.write(self._input, json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def call(self, tool: str, **arguments: Any) -> None:
        await self.request("tools/call", {"name": tool, "arguments": arguments})

    def close(self) -> None:
        anyio.notify_closing(self._output)
        for descriptor in (self.stdin, self._input, self.stdout, self._output):
            os.close(descriptor)


@dataclass(slots=True)
class Running:
    """The aggregator in this process, its one client, and the probe."""

    upstream: Upstream
    client: Pipes
    probe: Probe
    stalls: list[Stall] = field(default_factory=list[Stall])

    def note(self, fault: str) -> None:
        self.stalls.append(Stall(fault, self.probe.late, self.probe.busy))
        self.probe.forget()


@asynccontextmanager
async def in_process(
    directory: Path, servers: Servers, era: Era = "handshake"
) -> AsyncGenerator[Running, None]:
    """Run the aggregator here, in front of real servers."""
    path = directory / "servers.yaml"
    settings = {"servers": servers, "watch": False, "state": False}
    path.write_text(json.dumps(settings), encoding="utf-8")
    pipes, orders, probe = Pipes(), Orders(), Probe()
    async with (
        running_fleet(load_config(path, os.environ), os.environ, orders) as upstream,
        standard_streams(pipes.stdin, pipes.stdout, stop=orders.stop) as streams,
        anyio.create_task_group() as group,
    ):
        group.start_soon(serve_client, upstream, streams)
        group.start_soon(pipes.read)
        if era == "handshake":
            await pipes.request("initialize", INTRODUCTION)
            pipes.write({"method": "notifications/initialized"})
        await pipes.request("tools/list", {} if era == "handshake" else {"_meta": ENVELOPE})
        group.start_soon(probe.run)
        yield Running(upstream, pipes, probe)
        group.cancel_scope.cancel()
    pipes.close()


async def during_calls(directory: Path, kinds: Sequence[str] = tuple(FAULTS)) -> list[Stall]:
    """Have a server do each fault, and return the longest stall of each."""
    # As the command itself does when it has been loaded.
    garbage.begin()
    servers = {"bad": faulty(callTimeout=2), "good": faulty()}
    async with in_process(directory, servers) as running:
        await ready(running.upstream)
        await running.client.call("good__echo", text="x")
        running.probe.forget()
        for kind in kinds:
            for size in _sizes(kind):
                await _inflict(running, kind, size)
        return running.stalls


def _sizes(kind: str) -> tuple[int, ...]:
    if kind in SIZES:
        return SIZES[kind]
    huge = kind.startswith("huge")
    return tuple(size * MEBIBYTE for size in (1, 4, 16)) if huge else (0,)


async def _inflict(running: Running, kind: str, size: int) -> None:
    with anyio.move_on_after(4):
        await running.client.call("bad__fault", kind=kind, size=size)
    # What follows from it: a relisting, a restart.
    await running.client.call("good__echo", text="x")
    await running.probe.beats(FOLLOWING)
    running.note(f"{kind} {size}" if size else kind)


async def during_listings(directory: Path, tools: int) -> list[Stall]:
    """List what should not be listed, and a great many tools."""
    # As the command itself does when it has been loaded.
    garbage.begin()
    many = {"many tools": faulty("ok", "--tools", str(tools))}
    found = list[Stall]()
    for name, server in {**{mode: faulty(mode) for mode in LISTINGS}, **many}.items():
        async with in_process(directory, {"bad": server, "good": faulty()}) as running:
            await ready(running.upstream)
            await running.client.call("ToolSearch", query="extra echo")
            await running.probe.beats(FOLLOWING)
            running.note(f"listing: {name}")
            found += running.stalls
    return found


def measured(kinds: Sequence[str]) -> list[Stall]:
    """Measure in a process of its own: what else is in ours makes every step longer."""
    command = [sys.executable, "-m", "tests.soak.stalls", *kinds]
    told = subprocess.check_output(command, cwd=ROOT, text=True, stderr=subprocess.DEVNULL)
    return [Stall(*each) for each in json.loads(told)]


async def _tell(kinds: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        found = await during_calls(Path(directory), kinds)
    sys.stdout.write(json.dumps([[each.fault, each.late, each.busy] for each in found]))


if __name__ == "__main__":
    anyio.run(_tell, sys.argv[1:])
