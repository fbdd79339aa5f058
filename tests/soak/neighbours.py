"""Measure a healthy server's calls while another misbehaves behind the same aggregator."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from tests.soak.client import Client, aggregator, faulty

MEBIBYTE = 1 << 20

SLICE = 1.0
"""Seconds of quiet, and of misbehaviour, in turn: whatever else the machine does hits both."""

SETTLING = 0.3
"""Seconds that what was begun has to end before quiet is measured."""

PACE = 0.002
"""Seconds between two calls."""

AT_ONCE = 2
"""Faults that are under way at a time."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What a neighbour does, over and over."""

    kind: str
    size: int = 0
    mode: str = "ok"
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])


NEIGHBOURS: dict[str, Fault] = {
    "hangs": Fault("hang", settings={"callTimeout": 1}),
    "crashes": Fault("die"),
    "floods stdout": Fault("noise", 900),
    "floods stderr": Fault("stderr", 20_000),
    "storms list_changed": Fault("storm", 20_000),
    "32 MiB lines": Fault("hugeline", 32 * MEBIBYTE),
    "ReDoS": Fault("redos", mode="redos"),
}


@dataclass(slots=True)
class Latencies:
    """How long calls took, in milliseconds, in quiet and beside the fault."""

    quiet: list[float] = field(default_factory=list[float])
    beside: list[float] = field(default_factory=list[float])
    faults: int = 0

    def within(self, share: float = 0.99) -> tuple[float, float]:
        """Return what that share of calls stayed under, in quiet and beside the fault."""
        return _quantile(self.quiet, share), _quantile(self.beside, share)

    @property
    def allowed(self) -> float:
        return 1.25 * self.within()[0] + 2


def _quantile(values: list[float], share: float) -> float:
    return sorted(values)[int(len(values) * share)]


async def measure(directory: Path, fault: Fault, rounds: int) -> Latencies:
    """Call a healthy server in quiet and beside the fault, in turn."""
    bad = faulty(fault.mode, **fault.settings)
    latencies = Latencies()
    async with aggregator(directory, {"good": faulty(), "bad": bad}) as client:
        await client.ready()
        await _calls(client, 0.5)
        for _ in range(rounds):
            latencies.quiet += await _calls(client, SLICE)
            async with anyio.create_task_group() as group:
                for _ in range(AT_ONCE):
                    group.start_soon(_misbehave, client, fault, latencies)
                await anyio.sleep(SETTLING)
                latencies.beside += await _calls(client, SLICE)
                group.cancel_scope.cancel()
            await anyio.sleep(SETTLING)
    return latencies


async def _calls(client: Client, seconds: float) -> list[float]:
    """Call every few milliseconds for so long."""
    took = list[float]()
    end = time.perf_counter() + seconds
    while (started := time.perf_counter()) < end:
        answer = await client.call("good__echo", text="x")
        took.append(1000 * (time.perf_counter() - started))
        assert "result" in answer, answer
        await anyio.sleep(PACE)
    return took


async def _misbehave(client: Client, fault: Fault, latencies: Latencies) -> None:
    while True:
        await client.call("bad__fault", kind=fault.kind, size=fault.size)
        latencies.faults += 1
