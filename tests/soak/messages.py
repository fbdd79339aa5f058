"""Have a server answer with one message of each size and kind, and see how far memory grows.

Unlike `tests.downstream.stdio.memory` this looks at the whole aggregator, which writes the answer
out again.
"""

import time
from dataclasses import dataclass
from pathlib import Path

from tests.downstream.stdio.memory import ALLOWED, KINDS, MEBIBYTE, SIZES
from tests.soak.client import Client, aggregator, faulty, text_of

__all__ = ["ALLOWED", "KINDS", "MEBIBYTE", "SIZES", "Growth", "measure"]


@dataclass(frozen=True, slots=True)
class Growth:
    """What one message came to."""

    kind: str
    size: int
    growth: int
    seconds: float
    outcome: str
    survived: bool


async def measure(directory: Path, kind: str, size: int) -> Growth:
    """Take one such answer in an aggregator of its own, since memory is given back late."""
    async with aggregator(directory, {"one": faulty(callTimeout=60)}) as client:
        await client.ready()
        await client.call("one__echo", text="x")
        before = forgotten_high_water(client)
        started = time.perf_counter()
        answer = await client.call("one__fault", kind=kind, size=size)
        seconds = time.perf_counter() - started
        growth = high_water(client) - before
        alive = text_of(await client.call("one__echo", text="alive")) == "alive"
    return Growth(kind, size, growth, seconds, _outcome(answer), alive)


def _outcome(answer: dict[str, object]) -> str:
    if "error" not in answer:
        return "passed"
    return "refused" if "could not be used" in text_of(answer) else text_of(answer)


def forgotten_high_water(client: Client) -> int:
    """Begin to look for the most memory anew; return what it is now."""
    Path(f"/proc/{client.process.pid}/clear_refs").write_text("5", encoding="ascii")
    return high_water(client)


def high_water(client: Client) -> int:
    """Return the most memory the aggregator has had, in bytes."""
    status = Path(f"/proc/{client.process.pid}/status").read_text(encoding="ascii")
    lines = [line.split() for line in status.splitlines()]
    return 1024 * next(int(line[1]) for line in lines if line[0] == "VmHWM:")
