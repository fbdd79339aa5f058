"""Kill servers under load, and see who notices."""

import os
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import anyio

from tests.census import Seen, descendants
from tests.soak.client import Client, Json, aggregator, faulty, text_of

WAITING = 5
"""Calls that are with the victim when it is killed."""

AT_ONCE = 4
"""Calls that are under way at a time, to all servers together."""


@dataclass(slots=True)
class Outcome:
    """What came of it."""

    calls: int = 0
    """Calls of servers that were not being killed."""
    wrong: list[str] = field(default_factory=list[str])
    """Answers to those that were not the right ones."""
    errors: list[float] = field(default_factory=list[float])
    """Seconds from each kill to each error of a call in flight."""
    odd_errors: list[str] = field(default_factory=list[str])
    returns: list[float] = field(default_factory=list[float])
    """Seconds from each kill to the victim's next answer."""
    start: float = 0.0
    """Seconds one server takes to start."""
    strays: list[Json] = field(default_factory=list[Json])


async def measure(directory: Path, *, servers: int, kills: int, calls: int) -> Outcome:
    """Kill one server after another, about so many calls apart, while all of them are called."""
    outcome = Outcome()
    names = [f"server{number}" for number in range(servers)]
    configured = {name: faulty("ok", "--name", name) for name in names}
    random = Random(7)  # noqa: S311 - the same order in every run
    async with aggregator(directory, configured) as client:
        outcome.start = await client.ready() / servers
        killed = set[str]()
        async with anyio.create_task_group() as group:
            limiter = anyio.CapacityLimiter(AT_ONCE)
            for name in names:
                group.start_soon(load, client, name, killed, outcome, limiter)
            for number in range(kills):
                victim = names[number % servers]
                for _ in range(random.randrange(2 * calls)):
                    await client.call("ToolSearch", query="echo")
                killed.add(victim)
                await kill(client, victim, outcome)
                killed.discard(victim)
            group.cancel_scope.cancel()
        outcome.strays = client.strays
    return outcome


async def load(
    client: Client,
    name: str,
    killed: set[str],
    outcome: Outcome,
    limiter: anyio.CapacityLimiter,
) -> None:
    """Call a server again and again with something only it can know the answer to."""
    number = 0
    while True:
        number += 1
        nonce = f"{name} {number}"
        was_killed = name in killed
        async with limiter:
            answer = await client.call(f"{name}__echo", text=nonce)
        if not (was_killed or name in killed):
            outcome.calls += 1
            if text_of(answer) != nonce:
                outcome.wrong.append(f"{nonce}: {text_of(answer)}")


async def kill(client: Client, victim: str, outcome: Outcome) -> None:
    """Kill a server that has calls in hand, and wait until it answers again."""
    waiting = [
        await client.send("tools/call", {"name": f"{victim}__wait", "arguments": {}})
        for _ in range(WAITING)
    ]
    # Answered in order, so the others have arrived.
    await client.call(f"{victim}__echo", text="")
    os.kill(process_of(client, victim).pid, signal.SIGKILL)
    killed = time.perf_counter()
    async with anyio.create_task_group() as group:
        for number in waiting:
            group.start_soon(fail, client, number, killed, outcome)
    answer = await client.call(f"{victim}__echo", text="back")
    outcome.returns.append(time.perf_counter() - killed)
    if text_of(answer) != "back":
        outcome.odd_errors.append(text_of(answer))


async def fail(client: Client, number: int, killed: float, outcome: Outcome) -> None:
    answer = await client.answer(number)
    outcome.errors.append(time.perf_counter() - killed)
    if "may or may not have taken effect" not in text_of(answer):
        outcome.odd_errors.append(text_of(answer))


def process_of(client: Client, name: str) -> Seen:
    """Return the process of a server."""
    family = descendants(client.process.pid)
    return next(each for each in family if each.command.endswith(f"--name {name}"))
