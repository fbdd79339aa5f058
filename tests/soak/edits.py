"""Edit `servers.yaml` at random under load, and see who notices."""

import json
import os
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import anyio
import anyio.abc

from tests.census import descendants
from tests.soak.author import NAMES, Author, Edit
from tests.soak.client import PATIENCE, ROOT, Client, introduce, is_ready, text_of

CALLERS = 2
"""Calls that are under way at any time."""

HELD = 2
"""Calls that are with servers which an edit does not concern while it is applied."""


@dataclass(slots=True)
class Outcome:
    """What came of it."""

    refused: int = 0
    """Edits that made the file one that cannot be used."""
    calls: int = 0
    """Calls of servers that did not change meanwhile."""
    wrong: list[str] = field(default_factory=list[str])
    """Answers to those that were not the right ones."""
    torn: list[bool] = field(default_factory=list[bool])
    """Of calls of servers that changed before the answer came: whether it was a right one."""
    kept: int = 0
    """Times that a server was ready and not concerned by an edit."""
    replaced: list[str] = field(default_factory=list[str])
    """Times that its process was another one afterwards."""
    unlike: list[str] = field(default_factory=list[str])
    """What was different from what the last good file says."""
    trouble: list[str] = field(default_factory=list[str])
    """What the log says of bugs."""
    seconds: list[float] = field(default_factory=list[float])
    """From each edit to its effect."""
    left: list[str] = field(default_factory=list[str])
    """Processes at the end that no server in the file accounts for."""


class Log:
    """What the aggregator says on its standard error, line by line."""

    def __init__(self, stream: anyio.abc.ByteReceiveStream) -> None:
        self.lines: list[str] = []
        self._stream = stream
        self._more = anyio.Event()

    async def read(self) -> None:
        """Take each line as it comes."""
        rest = b""
        async for chunk in self._stream:
            *lines, rest = (rest + chunk).split(b"\n")
            self.lines += [line.decode() for line in lines]
            more, self._more = self._more, anyio.Event()
            more.set()

    async def until(self, words: str, since: int) -> None:
        """Wait for a line that ends with these words."""
        with anyio.fail_after(PATIENCE):
            while not any(line.endswith(words) for line in self.lines[since:]):
                await self._more.wait()

    async def word(self, beginning: str) -> str:
        """Wait for a word that begins so."""
        with anyio.fail_after(PATIENCE):
            while not (found := self._words(beginning)):
                await self._more.wait()
        return found[0]

    def _words(self, beginning: str) -> list[str]:
        words = " ".join(self.lines).split()
        return [word for word in words if word.startswith(beginning)]

    def trouble(self) -> list[str]:
        """Return what only bugs bring about."""
        return [line for line in self.lines if "internal error" in line or "Traceback" in line]


async def measure(directory: Path, edits: int, *, seed: int = 7) -> Outcome:
    """Edit the file so many times while its servers are called."""
    outcome = Outcome()
    author = Author(directory / "servers.yaml", Random(seed))  # noqa: S311 - the same in every run
    async with serving(directory) as (client, log):
        await settle(client)
        async with anyio.create_task_group() as group:
            for number in range(CALLERS):
                group.start_soon(load, client, author, number, outcome)
            for _ in range(edits):
                await apply(client, author, log, outcome)
                # Half of the next edits come while servers are still starting.
                if author.random.random() < 0.5:
                    await compare(client, author, outcome)
            await compare(client, author, outcome)
            group.cancel_scope.cancel()
        outcome.left = await left(client, author)
        outcome.trouble = log.trouble()
    return outcome


async def apply(client: Client, author: Author, log: Log, outcome: Outcome) -> None:
    """Make one edit, wait for its effect, and see what has become of those it leaves alone."""
    edit = author.edit()
    author.begin(edit)
    steady = sorted(author.steady)
    found = await client.servers()
    # One that is still starting may have no process yet.
    alone = [name for name in steady if is_ready(found[name])]
    before = processes(client)
    held = await hold(client, author.random.sample(steady, HELD))
    outcome.seconds.append(await done(client, edit, log))
    author.end(edit)
    outcome.refused += not edit.is_good
    await release(client, held, outcome)
    after = processes(client)
    outcome.kept += len(alone)
    outcome.replaced += [name for name in alone if not after[name] or after[name] - before[name]]


async def done(client: Client, edit: Edit, log: Log) -> float:
    """Do an edit, wait until the aggregator says what it makes of it; return how long it took."""
    since = len(log.lines)
    began = time.perf_counter()
    edit.do(client.process)
    await log.until(": applied" if edit.is_good else "the configuration in use", since)
    return time.perf_counter() - began


async def load(client: Client, author: Author, number: int, outcome: Outcome) -> None:
    """Call one server after another with something that only the right answer repeats."""
    random = Random(number)  # noqa: S311 - the same in every run
    while True:
        name = random.choice(sorted(author.steady))
        edition = author.editions[name]
        nonce = f"{name} {random.random()}"
        answer = text_of(await client.call(f"{name}__echo", text=nonce))
        if author.editions[name] != edition:
            # One that was taken out before it had started has nobody to answer for it.
            outcome.torn.append(answer == nonce or "no longer configured" in answer)
            continue
        outcome.calls += 1
        if answer != nonce:
            outcome.wrong.append(f"{nonce}: {answer}")


async def hold(client: Client, names: list[str]) -> dict[str, int]:
    """Begin a call at each of these servers that ends when it is released."""
    held: dict[str, int] = {}
    for name in names:
        held[name] = await client.send("tools/call", {"name": f"{name}__wait", "arguments": {}})
        # Answered in order, so the other has arrived.
        await client.call(f"{name}__echo", text="")
    return held


async def release(client: Client, held: dict[str, int], outcome: Outcome) -> None:
    """End the calls that are held."""
    for name, number in held.items():
        await client.call(f"{name}__release")
        answer = text_of(await client.answer(number))
        outcome.calls += 1
        if answer != "released":
            outcome.wrong.append(f"{name}: {answer}")


async def settle(client: Client) -> None:
    """Wait until no server is starting any more."""
    await client.call("ToolSearch", query="", wait=60)


async def compare(client: Client, author: Author, outcome: Outcome) -> None:
    """Compare the catalog with what the last good file says."""
    await settle(client)
    found = await client.servers()
    said = [(name, server["description"]) for name, server in found.items()]
    meant = [(name, server["description"]) for name, server in author.servers.items()]
    if said != meant:
        outcome.unlike.append(f"servers {said} and not {meant}")
    absent = [name for name in author.steady if name not in found or not is_ready(found[name])]
    outcome.unlike += [f"{name} is not ready" for name in absent]
    answer = await client.request("resources/read", {"uri": "catalog://tools"})
    listed = json.loads(answer["result"]["contents"][0]["text"])["tools"]
    different = {
        each["name"]: each["alwaysLoad"] for each in listed
    }.items() ^ author.tools().items()
    outcome.unlike += [f"tool {name}" for name, _ in sorted(different)]


async def left(client: Client, author: Author) -> list[str]:
    """Return the processes too many, once those have ended that were about to."""
    wanted = {name: int(name in author.steady) for name in NAMES}
    for name, pids in processes(client).items():
        for pid in sorted(pids)[: len(pids) - wanted[name]]:
            await gone(pid)
    found = processes(client)
    return [f"{name}: {pids}" for name, pids in found.items() if len(pids) != wanted[name]]


async def gone(pid: int) -> None:
    """Wait, within bounds, until a process has ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        with anyio.move_on_after(PATIENCE):
            await anyio.wait_readable(descriptor)
    finally:
        os.close(descriptor)


def processes(client: Client) -> dict[str, set[int]]:
    """Return the processes of each server."""
    found: dict[str, set[int]] = {name: set() for name in NAMES}
    for each in descendants(client.process.pid):
        words = each.command.split()
        if "--name" in words and each.state not in "ZX":
            found[words[words.index("--name") + 1]].add(each.pid)
    return found


@asynccontextmanager
async def serving(directory: Path) -> AsyncGenerator[tuple[Client, Log], None]:
    """Run the aggregator in front of what the file names, and hear what it says."""
    config, log = directory / "servers.yaml", directory / "log"
    command = [sys.executable, "-m", "aggregator", "serve", "--config", str(config), "-v"]
    environment = {**os.environ, "XDG_STATE_HOME": str(directory / "state")}
    process = await anyio.open_process(command, cwd=ROOT, env=environment)
    assert process.stderr is not None
    async with process, anyio.create_task_group() as group:
        client, heard = Client(process, log), Log(process.stderr)
        group.start_soon(client.read)
        group.start_soon(heard.read)
        await introduce(client)
        yield client, heard
        process.terminate()
        await process.wait()
        group.cancel_scope.cancel()
