"""Have a server say the same thing over and over, and see what that costs."""

import time
from dataclasses import dataclass
from pathlib import Path

from tests.soak.client import aggregator, faulty, text_of
from tests.soak.messages import forgotten_high_water, high_water

STORMS = ("storm", "asking", "reporting", "chatting")
"""Changes of its list, questions it does not hear the answers to, progress, log messages."""


@dataclass(frozen=True, slots=True)
class Storm:
    """What one storm came to."""

    kind: str
    growth: int
    """Bytes by which memory grew."""
    seconds: float
    answer: str


async def measure(directory: Path, kind: str, size: int) -> Storm:
    """Weather one storm."""
    async with aggregator(directory, {"one": faulty(callTimeout=60)}) as client:
        await client.ready()
        await client.call("one__echo", text="x")
        before = forgotten_high_water(client)
        began = time.perf_counter()
        call = {"name": "one__fault", "arguments": {"kind": kind, "size": size}}
        answer = await client.request("tools/call", {**call, "_meta": {"progressToken": "mine"}})
        seconds = time.perf_counter() - began
        return Storm(kind, high_water(client) - before, seconds, text_of(answer))
