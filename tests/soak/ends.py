"""End the aggregator in front of many servers, and see what is left of them."""

import signal
import time
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.lowlevel

from aggregator.downstream.stdio.watchdog import COOKIE
from tests.census import Seen, carrying, descendants, environment
from tests.ends import ended
from tests.soak.client import Client, Json, aggregator, faulty

MANNERS = (
    (),
    ("--ignore-eof", "--ignore-term"),
    ("--ignore-eof", "--fork"),
    ("--ignore-eof", "--ignore-term", "--daemon"),
)
"""How servers behave in turn when the aggregator is killed."""

QUARTER = ((), (), (), ("--ignore-eof", "--ignore-term"))
"""How they behave when it is told to stop: one in four ignores whatever it is told."""

GIVEN_UP = 60.0
"""Seconds after which what is left is taken to stay."""


@dataclass(frozen=True, slots=True)
class Ending:
    """What one end came to."""

    processes: int
    """Processes of servers that there were."""
    seconds: float
    """Until the last of them was gone."""
    left: tuple[str, ...]
    exited: float
    """Seconds until the aggregator itself was gone."""
    status: int | None


async def measure(directory: Path, number: signal.Signals, count: int) -> Ending:
    """Run so many servers, call some of them, and send the aggregator a signal."""
    manners = MANNERS if number == signal.SIGKILL else QUARTER
    servers = {f"s{each}": _server(manners[each % len(manners)]) for each in range(count)}
    async with aggregator(directory, servers) as client:
        await client.ready()
        cookies = {cookie_of(client.process.pid)}
        for each in range(0, count, 10):
            call: Json = {"name": f"s{each}__wait", "arguments": {}}
            await client.send("tools/call", call)
        processes = len(family(cookies))
        client.process.send_signal(number)
        began = time.monotonic()
        exited = list[float]()
        gone = list[float]()
        async with anyio.create_task_group() as group:
            group.start_soon(_await_exit, client, began, exited)
            group.start_soon(await_ends, cookies, began, gone)
    left = tuple(str(each) for each in family(cookies))
    return Ending(processes, gone[0], left, exited[0], client.process.returncode)


async def await_ends(cookies: set[str], began: float, gone: list[float]) -> None:
    """Wait until nothing carries the cookies, or for too long."""
    with anyio.move_on_after(GIVEN_UP):
        while left := family(cookies):
            await ended(each.pid for each in left)
            await anyio.lowlevel.checkpoint()
    gone.append(time.monotonic() - began)


def _server(options: tuple[str, ...]) -> Json:
    return faulty("ok", *options, callTimeout=60)


async def _await_exit(client: Client, began: float, exited: list[float]) -> None:
    await client.process.wait()
    exited.append(time.monotonic() - began)


def cookie_of(pid: int) -> str:
    """Find what marks the servers of an aggregator."""
    prefix = f"{COOKIE}=".encode()
    for process in descendants(pid):
        for variable in environment(process.pid).split(b"\0"):
            if variable.startswith(prefix):
                return variable.removeprefix(prefix).decode()
    raise AssertionError("no server carries a cookie")


def family(cookies: set[str]) -> list[Seen]:
    """Return the processes that carry one of the cookies and have not ended."""
    return [each for each in carrying(cookies) if each.state not in "ZX"]
