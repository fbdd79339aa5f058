"""Send a hundred thousand damaged lines as a client, and as a server, and see who minds."""

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import anyio

from aggregator.basics.eras import Era
from tests.faults import DAMAGE
from tests.soak.client import INTRODUCTION, PATIENCE, Client, aggregator, faulty, text_of

CHECKED_EVERY = 500
"""Lines after which a whole request must be answered."""

TROUBLE = ("Traceback", "internal error", "raised", "Exception", "could not handle")
"""What the log must not say."""

REQUESTS: tuple[tuple[str, Any], ...] = (
    ("initialize", INTRODUCTION),
    ("ping", {}),
    ("server/discover", {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}),
    ("tools/list", {"cursor": "7"}),
    ("tools/call", {"name": "one__echo", "arguments": {"text": "hello"}}),
    ("tools/call", {"name": "CallTool", "arguments": {"name": "one__echo", "arguments": {}}}),
    ("tools/call", {"name": "ToolSearch", "arguments": {"query": "echo", "max_results": 3}}),
    ("prompts/get", {"name": "one__x", "arguments": {"a": "b"}}),
    ("resources/read", {"uri": "catalog://servers"}),
    ("resources/subscribe", {"uri": "file:///x"}),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "x"}, "argument": {}}),
    ("logging/setLevel", {"level": "debug"}),
    ("subscriptions/listen", {"notifications": {"toolsListChanged": True}}),
)
NOTIFICATIONS: tuple[tuple[str, Any], ...] = (
    ("notifications/initialized", {}),
    ("notifications/cancelled", {"requestId": 7, "reason": "x"}),
    ("notifications/progress", {"progressToken": 7, "progress": 1}),
    ("notifications/roots/list_changed", {}),
)
VALUES: tuple[Any, ...] = (
    None, True, -1, 1e308, 2**70, "", "\u202e", [], {}, [[]], {"a": {}}, "x" * 5000, "7", 0.5,
)  # fmt: skip
"""What is put in the place of something else."""


@dataclass(slots=True)
class Damage:
    """What came of the damage."""

    lines: int = 0
    slowest: float = 0.0
    """Seconds that a whole request in between took at the most."""
    unanswered: int = 0
    alive: bool = False
    trouble: list[str] = field(default_factory=list[str])


async def from_client(directory: Path, lines: int) -> Damage:
    """Be a client with a session that damages what it sends."""
    return await _from_client(directory, lines, "handshake")


async def from_modern_client(directory: Path, lines: int) -> Damage:
    """Be a client without a session that does the same."""
    return await _from_client(directory, lines, "modern")


async def _from_client(directory: Path, lines: int, era: Era, seed: int = 20260728) -> Damage:
    random = Random(seed)  # noqa: S311 - the same damage in every run
    damage = Damage()
    async with aggregator(directory, {"one": faulty(callTimeout=5)}, "-vv", era=era) as client:
        await client.ready()
        while damage.lines < lines:
            messages = [client_message(random, client) for _ in range(100)]
            await client.write_raw(b"".join(mutated(random, each) for each in messages))
            damage.lines += 100
            if damage.lines % CHECKED_EVERY == 0:
                await _check(client, damage)
        await _finish(client, damage)
    damage.trouble += troubles(client.log)
    return damage


async def from_server(directory: Path, lines: int) -> Damage:
    """Have a server answer with damage, in between with something whole."""
    damage = Damage()
    servers = {"one": faulty(callTimeout=30), "two": faulty(callTimeout=2)}
    async with aggregator(directory, servers, "-vv") as client:
        await client.ready()
        number = 0
        while damage.lines < lines:
            # What comes back may be damage too, with this call's id on it.
            with anyio.move_on_after(PATIENCE) as scope:
                await client.call("one__fault", kind="mutations", size=CHECKED_EVERY)
            damage.unanswered += scope.cancelled_caught
            for _ in range(20):
                number += 1
                await client.call("two__fault", kind="odd", size=number)
            damage.lines += CHECKED_EVERY
            await _check(client, damage)
        await _finish(client, damage)
    damage.trouble += troubles(client.log)
    return damage


async def _check(client: Client, damage: Damage) -> None:
    """Call something whole in between."""
    began = time.perf_counter()
    with anyio.move_on_after(PATIENCE) as scope:
        answer = await client.request("tools/list")
        damage.unanswered += "result" not in answer
    damage.unanswered += scope.cancelled_caught
    damage.slowest = max(damage.slowest, time.perf_counter() - began)
    client.strays.clear()
    client.notices.clear()


async def _finish(client: Client, damage: Damage) -> None:
    with anyio.move_on_after(PATIENCE):
        damage.alive = text_of(await client.call("one__echo", text="whole")) == "whole"


def client_message(random: Random, client: Client) -> dict[str, Any]:
    """Make a message that a client may send."""
    if random.random() < 0.2:
        method, params = random.choice(NOTIFICATIONS)
        return {"jsonrpc": "2.0", "method": method, "params": params}
    method, params = random.choice(REQUESTS)
    # Far from the ids of whole requests.
    number = random.choice((random.randrange(10**6, 10**7), f"r{random.random()}"))
    # Some in the other era, too.
    stamped = client.stamped(params) if random.random() < 0.9 else params
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": stamped}


def mutated(random: Random, message: dict[str, Any]) -> bytes:
    """Damage a message, in its values or in its bytes."""
    if random.random() < 0.5:
        message = replaced(random, message)
    line = bytearray(json.dumps(message).encode())
    for _ in range(random.choice((0, 0, 1, 2))):
        start = random.randrange(len(line) + 1)
        piece = random.choice((*DAMAGE, random.randbytes(3)))
        line[start : start + random.randrange(12)] = piece
    return bytes(line) + b"\n"


def replaced(random: Random, value: Any) -> Any:
    """Put something else in one place of a value."""
    if isinstance(value, dict) and value and random.random() < 0.8:
        members: dict[str, Any] = dict(value)  # pyright: ignore[reportUnknownArgumentType]
        key = random.choice(list(members))
        if random.random() < 0.2:
            del members[key]
            return members
        return {**members, key: replaced(random, members[key])}
    return random.choice(VALUES)


def troubles(log: Path) -> list[str]:
    """Return the lines of a log that tell of something nobody thought of."""
    lines = log.read_text(errors="replace").splitlines()
    return [line for line in lines if any(word in line for word in TROUBLE)]
