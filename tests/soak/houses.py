"""Aggregators as processes that can be weighed, each with its clients."""

import os
import signal
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import anyio
import anyio.abc

from aggregator.basics.eras import Era
from tests.census import Seen, descendants
from tests.soak.client import ROOT, Client, Json, introduce
from tests.soak.edits import Log
from tests.soak.scales import Scales, scales
from tests.soak.web import WebClient


class Caller(Protocol):
    """A client, over whatever it speaks."""

    era: Era

    async def request(self, method: str, params: Mapping[str, Any] | None = None) -> Json:
        """Send a request, and return its answer."""
        ...


@dataclass(frozen=True, slots=True)
class House:
    """One aggregator, whoever speaks to it, and the scales it stands on."""

    name: str
    process: anyio.abc.Process
    callers: Mapping[str, Caller]
    log: Log
    scales: Scales

    def family(self) -> list[Seen]:
        return descendants(self.process.pid)

    def servers(self) -> dict[str, list[int]]:
        """Return the living processes of each server."""
        found = dict[str, list[int]]()
        for each in self.family():
            _, named, rest = each.command.partition(" --name ")
            if named and each.state not in "ZX":
                found.setdefault(rest.split()[0], []).append(each.pid)
        return found

    def zombies(self) -> list[str]:
        return [str(each) for each in self.family() if each.state == "Z"]

    async def end(self, manner: str) -> int:
        """End it as clients, systems and accidents do; return its exit status."""
        if manner == "end of input":
            assert self.process.stdin is not None
            await self.process.stdin.aclose()
        else:
            self.process.send_signal(signal.Signals[manner])
        return await self.process.wait()


@asynccontextmanager
async def on_pipes(config: Path, era: Era) -> AsyncGenerator[House, None]:
    """Be the one client of an aggregator."""
    name = f"stdio, {era}"
    async with _process(config, f"stdio-{era}") as (process, log, weighing):
        async with anyio.create_task_group() as group:
            client = Client(process, config, era)
            group.start_soon(client.read)
            await introduce(client)
            yield House(name, process, {name: client}, log, weighing)
            group.cancel_scope.cancel()


@asynccontextmanager
async def on_the_web(config: Path, eras: Sequence[Era]) -> AsyncGenerator[House, None]:
    """Be several clients of one aggregator."""
    token = config.with_name("token")
    options = ("--http", "0", "--token-file", str(token))
    async with _process(config, "web", *options) as (process, log, weighing):
        url = await log.word("http://")
        async with AsyncExitStack() as stack:
            callers = dict[str, Caller]()
            for number, era in enumerate(eras, 1):
                client = WebClient(url, token.read_text(encoding="ascii").strip(), era)
                await stack.enter_async_context(client.present())
                callers[f"HTTP {number}, {era}"] = client
            yield House("HTTP", process, callers, log, weighing)


@asynccontextmanager
async def _process(
    config: Path, name: str, *options: str
) -> AsyncGenerator[tuple[anyio.abc.Process, Log, Scales], None]:
    environment = {**os.environ, "XDG_STATE_HOME": str(config.with_name("state"))}
    async with scales(config.with_name(f"{name}.scales")) as weighing:
        command = [sys.executable, "-m", "tests.soak.scales", str(weighing.path), "serve"]
        command += ["-v", "--config", str(config), *options]
        process = await anyio.open_process(command, cwd=ROOT, env=environment)
        assert process.stderr is not None
        async with process, anyio.create_task_group() as group:
            log = Log(process.stderr)
            group.start_soon(log.read)
            try:
                yield process, log, weighing
            finally:
                if process.returncode is None:
                    process.terminate()
                    with anyio.CancelScope(shield=True):
                        await process.wait()
                group.cancel_scope.cancel()
