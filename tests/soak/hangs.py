"""How long a caller waits for a server that does not answer, whether it still reads or not."""

import time
from dataclasses import dataclass
from pathlib import Path

import anyio

from tests.soak.client import Client, aggregator, faulty, text_of

MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class Wait:
    """One caller's wait."""

    what: str
    seconds: float
    said: str


async def measure(directory: Path, patience: float, callers: int) -> list[Wait]:
    """Call servers that hang; return the waits, in seconds."""
    servers = {
        name: faulty("ok", callTimeout=patience, connectTimeout=10) for name in ("hung", "deaf")
    }
    waits = list[Wait]()
    async with aggregator(directory, servers) as client:
        await client.ready()
        await client.call("deaf__fault", kind="stop_reading")
        async with anyio.create_task_group() as group:
            for _ in range(callers):
                group.start_soon(_wait, client, "hung", 1, waits)
                group.start_soon(_wait, client, "deaf", MEGABYTE, waits)
        for name in servers:
            answer = await client.call(f"{name}__echo", text="again")
            assert text_of(answer) == "again", answer
    return waits


async def _wait(client: Client, server: str, size: int, waits: list[Wait]) -> None:
    padding = "x" * size
    began = time.perf_counter()
    answer = await client.call(f"{server}__fault", kind="hang", padding=padding)
    what = f"{server}, {size:,} bytes of arguments"
    waits.append(Wait(what, time.perf_counter() - began, text_of(answer)))
