"""What `servers.lock`, and what is kept of each run, add to a start with ten thousand tools.

python -m benchmarks.lock [ROUNDS]
"""

import gc
import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import anyio.lowlevel
from anyio import to_thread

from aggregator.basics.effort import finished
from aggregator.catalog import Ready
from aggregator.catalog.lock import LazyLock, Lock, taken_apart, written
from aggregator.config import ServerConfig
from aggregator.downstream.intake import take_in
from aggregator.fleet.last_known import LastKnown
from aggregator.fleet.pinning import compare as differing
from aggregator.fleet.pinning import recording
from aggregator.fleet.saved_listing import read as read_listing
from aggregator.fleet.saved_listing import written as written_listing
from aggregator.names import ServerName
from benchmarks.measure import report

SERVERS = 1_250
TOOLS = 8
"""Tools of each server: as in published collections, most have few."""
Offered = dict[ServerName, tuple[ServerConfig, Ready]]

WORDS = ["list", "open", "issues", "of", "a", "repository", "sorted", "by", "date", "and", "labels"]


def tool(number: int) -> dict[str, object]:
    """Return a definition of about the median length."""
    chance = random.Random(number)  # noqa: S311 - the same every time
    properties = {
        f"p{each}": {"type": "string", "description": " ".join(chance.choices(WORDS, k=8))}
        for each in range(3)
    }
    return {
        "description": " ".join(chance.choices(WORDS, k=25)),
        "inputSchema": {"type": "object", "properties": properties, "required": ["p0"]},
    }


def made(offered: Offered) -> Lock:
    """Return what is approved of so many servers."""
    return {name: finished(recording(*each)) for name, each in offered.items()}


def processor_time(work: Callable[[], object], rounds: int) -> float:
    """Return the least that a piece of work took."""
    taken: list[float] = []
    for _ in range(rounds):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return min(taken)


def longest_turn(data: bytes) -> float:
    """Return the longest time for which nobody else has a turn."""
    longest, began = 0.0, time.process_time()
    for _ in taken_apart(data):
        longest, began = max(longest, time.process_time() - began), time.process_time()
    return max(longest, time.process_time() - began)


def compare(lazy_lock: LazyLock, offered: Offered) -> int:
    """Hold every listing against the file, as whoever serves does."""
    return sum(
        len(finished(differing(server, lazy_lock[name], ready)))
        for name, (server, ready) in offered.items()
    )


def sheets() -> Offered:
    """Return what so many servers offer."""
    made: dict[ServerName, tuple[ServerConfig, Ready]] = {}
    for number in range(SERVERS):
        server = ServerConfig(ServerName(f"s{number}"), f"s{number}")
        listing = [{"name": f"t{each}", **tool(number * TOOLS + each)} for each in range(TOOLS)]
        made[server.name] = server, Ready(tuple(take_in(server, listing)[0]))
    return made


async def longest_wait(work: Callable[[], object] | None) -> float:
    """Return the longest time that a turn of the event loop came late, while a thread works."""
    longest = 0.0
    is_done = anyio.Event()

    async def run() -> None:
        await to_thread.run_sync(work or (lambda: time.sleep(0.5)))
        is_done.set()

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        while not is_done.is_set():
            began = time.perf_counter()
            await anyio.lowlevel.checkpoint()
            longest = max(longest, time.perf_counter() - began)
    return longest


def keep(rounds: int) -> None:
    """Measure what is kept between runs, beside parsing the same."""
    made = sheets()
    lines = {name: list(written_listing(*each, "", "")) for name, each in made.items()}
    text = [f"[{','.join(each)}]" for each in lines.values()]
    gc.freeze()
    whole = processor_time(lambda: [json.loads(each) for each in text], rounds)
    reading = processor_time(
        lambda: [read_listing(iter(each), made[name][0]) for name, each in lines.items()], rounds
    )

    def write() -> None:
        with TemporaryDirectory() as directory:
            last_known = LastKnown(Path(directory))
            for server, ready in made.values():
                last_known.note(server, ready)
            last_known.save()

    idle = min(anyio.run(longest_wait, None) for _ in range(rounds))
    busy = min(anyio.run(longest_wait, write) for _ in range(rounds))
    report(
        f"What is kept of {SERVERS * TOOLS:,} tools",
        ["work", "time", "beside parsing it whole"],
        [
            ["parse it whole", f"{1e3 * whole:.0f} ms", "1.00"],
            ["read and name it, in a thread", f"{1e3 * reading:.0f} ms", f"{reading / whole:.2f}"],
            ["longest wait of a turn, idle", f"{1e3 * idle:.2f} ms", ""],
            ["longest wait of a turn, written", f"{1e3 * busy:.2f} ms", ""],
        ],
    )


def main(rounds: int = 5) -> None:
    offered = sheets()
    text = written(made(offered))
    data = text.encode()
    lazy_lock = finished(taken_apart(data))
    assert compare(lazy_lock, offered) == 0
    # As whoever serves has it: what stays is not looked through for garbage.
    gc.freeze()
    whole = processor_time(lambda: json.loads(text), rounds)
    reading = processor_time(lambda: finished(taken_apart(data)), rounds)
    comparing = processor_time(lambda: compare(lazy_lock, offered), rounds)
    turn = min(longest_turn(data) for _ in range(rounds))
    altogether = reading + comparing
    report(
        f"servers.lock with {SERVERS * TOOLS:,} tools, {len(data) / 1e6:.1f} MB",
        ["work", "processor time", "beside parsing it whole"],
        [
            ["parse it whole", f"{1e3 * whole:.0f} ms", "1.00"],
            ["find where each tool is", f"{1e3 * reading:.0f} ms", f"{reading / whole:.2f}"],
            ["compare each", f"{1e3 * comparing:.0f} ms", f"{comparing / whole:.2f}"],
            ["altogether", f"{1e3 * altogether:.0f} ms", f"{altogether / whole:.2f}"],
            ["longest turn", f"{1e3 * turn:.2f} ms", ""],
        ],
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
    keep(*map(int, sys.argv[1:] or ["5"]))
