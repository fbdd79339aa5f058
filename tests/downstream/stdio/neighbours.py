"""Measure a healthy server's calls while another misbehaves beside it on the same event loop.

python -m tests.downstream.stdio.neighbours [SECONDS]
"""

import sys
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import anyio
from mcp.shared.exceptions import MCPError

from aggregator.downstream.stdio.watchdog import Watchdog
from tests.downstream.stdio.running import Running, faulty, running

MEBIBYTE = 1 << 20

Neighbour = Callable[[Watchdog], Coroutine[Any, Any, None]]


def repeating(kind: str, size: int = 0) -> Neighbour:
    """A neighbour that does the same wrong thing over and over."""

    async def misbehave(watchdog: Watchdog) -> None:
        async with running(faulty(), watchdog) as server:
            while True:
                with suppress(MCPError):
                    await server.call("fault", kind=kind, size=size)

    return misbehave


def restarting(mode: str, kind: str) -> Neighbour:
    """A neighbour that has to be started again and again."""

    async def misbehave(watchdog: Watchdog) -> None:
        while True:
            async with running(faulty(mode), watchdog) as server:
                with suppress(MCPError):
                    await server.call("fault", kind=kind)
                await server.child.closed.wait()

    return misbehave


async def quiet(_watchdog: Watchdog) -> None:
    """No neighbour at all."""


NEIGHBOURS: dict[str, Neighbour] = {
    "none": quiet,
    "hangs": repeating("hang"),
    "crashes": restarting("ok", "die"),
    "floods stdout": restarting("flood", "hang"),
    "floods stderr": repeating("stderr", 20_000),
    "storms": repeating("storm", 20_000),
    "8 MiB lines": repeating("hugeline", 8 * MEBIBYTE),
    "32 MiB lines": repeating("hugeline", 32 * MEBIBYTE),
    "32 MiB of objects": repeating("hugeobjects", 32 * MEBIBYTE),
    "1 MiB of objects": repeating("hugeobjects", MEBIBYTE),
    "bad bytes": repeating("hugebytes", MEBIBYTE),
}


async def measure(neighbour: Neighbour, seconds: float) -> list[float]:
    """Return how long each call took, in milliseconds, in order."""
    took = list[float]()
    async with Watchdog() as watchdog, running(faulty(), watchdog) as server:
        for _ in range(50):
            await server.text("echo")
        async with anyio.create_task_group() as group:
            group.start_soon(neighbour, watchdog)
            await anyio.sleep(0.2)
            took.extend(await call_for(server, seconds))
            group.cancel_scope.cancel()
    return sorted(took)


async def call_for(server: Running, seconds: float) -> list[float]:
    """Call every few milliseconds for so long."""
    took = list[float]()
    end = time.perf_counter() + seconds
    while (started := time.perf_counter()) < end:
        await server.text("echo")
        took.append(1000 * (time.perf_counter() - started))
        await anyio.sleep(0.002)
    return took


if __name__ == "__main__":
    duration = float(sys.argv[1]) if sys.argv[1:] else 5
    for name, each in NEIGHBOURS.items():
        calls = anyio.run(measure, each, duration)
        middle, high = (calls[int(len(calls) * share)] for share in (0.5, 0.99))
        sys.stdout.write(
            f"{name:18} {len(calls):5} calls  p50 {middle:6.2f}  p99 {high:6.2f}  "
            f"max {calls[-1]:6.2f} ms\n"
        )
        sys.stdout.flush()
