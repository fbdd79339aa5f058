"""Start in front of very many servers, and see how long a client waits and what it costs."""

import time
from dataclasses import dataclass
from pathlib import Path

from tests.soak.client import aggregator, faulty


@dataclass(frozen=True, slots=True)
class Crowd:
    """What so many servers came to."""

    servers: int
    first_list: float
    """Seconds from the start of the process to the answer to the first `tools/list`."""
    ready: float
    """Seconds until every server was ready."""
    tools: int
    memory: int
    """Bytes that the aggregator holds then."""


async def measure(directory: Path, servers: int, tools: int) -> Crowd:
    """Start in front of so many servers with so many tools each, and wait for all."""
    configured = {
        f"s{number}": faulty("ok", "--tools", str(tools), connectTimeout=120)
        for number in range(servers)
    }
    began = time.perf_counter()
    # A client is introduced, and has its first list, when the block is entered.
    async with aggregator(directory, configured) as client:
        first_list = time.perf_counter() - began
        await client.ready()
        ready = time.perf_counter() - began
        found = await client.servers()
        listed = sum(server["tools"] for server in found.values())
        return Crowd(servers, first_list, ready, listed, client.memory())
