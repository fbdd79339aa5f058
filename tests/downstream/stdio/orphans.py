"""Kill an aggregator's process the hard way, and see how long its children outlive it.

python -m tests.downstream.stdio.orphans [CHILDREN] [RUNS]
"""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path

import anyio

from aggregator.downstream.stdio.watchdog import Watchdog
from tests.census import carrying, look
from tests.downstream.stdio.running import faulty, running
from tests.ends import await_ends
from tests.patience import PATIENCE

ROOT = Path(__file__).parents[3]

MANNERS = (
    (),
    ("--ignore-eof",),
    ("--ignore-eof", "--ignore-term"),
    ("--ignore-eof", "--fork"),
    ("--ignore-eof", "--ignore-term", "--daemon"),
)
"""How the children behave, in turn."""


async def doomed(children: int) -> None:
    """Start children, say which, and wait for the end."""
    async with AsyncExitStack() as stack:
        watchdog = await stack.enter_async_context(Watchdog())
        specs = [faulty("ok", *MANNERS[number % len(MANNERS)]) for number in range(children)]
        servers = [await stack.enter_async_context(running(spec, watchdog)) for spec in specs]
        for server in servers:
            # It answers only after it has left behind what it leaves behind.
            await server.text("echo")
        sys.stdout.write(json.dumps({"cookie": watchdog.cookie, "watchdog": watchdog.pid}) + "\n")
        sys.stdout.flush()
        await anyio.sleep_forever()


def expected(children: int) -> int:
    """Return how many processes so many children come to."""
    manners = [MANNERS[number % len(MANNERS)] for number in range(children)]
    return children + sum("--fork" in each or "--daemon" in each for each in manners)


def outlived(children: int, number: int = signal.SIGKILL) -> tuple[int, float, list[str]]:
    """Kill a parent of children; return how many there were, for how long, and what is left."""
    command = [sys.executable, "-m", "tests.downstream.stdio.orphans", "--doomed", str(children)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as parent:
        assert parent.stdout is not None
        told = json.loads(parent.stdout.readline())
        cookies = {told["cookie"]}
        started = len(carrying(cookies))
        os.kill(parent.pid, number)
        killed = time.monotonic()
        while (left := carrying(cookies)) and time.monotonic() < killed + PATIENCE:
            await_ends([each.pid for each in left], killed + PATIENCE - time.monotonic())
        seconds = time.monotonic() - killed
    await_ends([told["watchdog"]], killed + PATIENCE - time.monotonic())
    watchdog = look(told["watchdog"])
    # A zombie has ended; when it is taken note of is up to the system.
    there = [*left, watchdog] if watchdog and watchdog.state != "Z" else left
    return started, seconds, [str(each) for each in there]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--doomed"]:
        anyio.run(doomed, int(sys.argv[2]))
    else:
        count = int(sys.argv[1]) if sys.argv[1:] else 100
        for _ in range(int(sys.argv[2]) if sys.argv[2:] else 1):
            processes, took, remains = outlived(count)
            sys.stdout.write(f"{processes} processes, {len(remains)} left after {took:.2f} s\n")
