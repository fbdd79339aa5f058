"""The aggregator as a process, with any number of requests under way at once."""

import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION

from aggregator.basics.eras import Era

ROOT = Path(__file__).parents[2]
FAULTY = ROOT / "tests" / "faulty.py"

SERVERS = "catalog://servers"

PATIENCE = 120.0
"""Seconds after which a run is taken to hang."""

INTRODUCTION: Mapping[str, Any] = {
    "protocolVersion": LATEST_HANDSHAKE_VERSION,
    "capabilities": {},
    "clientInfo": {"name": "soak", "version": "1"},
}
"""How a client of the handshake era begins."""

ENVELOPE: Mapping[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": LATEST_MODERN_VERSION,
    "io.modelcontextprotocol/clientInfo": {"name": "soak", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
"""What each request of a client of the modern era carries."""

Json = dict[str, Any]
Servers = Mapping[str, Mapping[str, Any]]


class GoneError(Exception):
    """The aggregator ended before it had answered."""


class Client:
    """Sends requests, and gives each its answer."""

    def __init__(self, process: anyio.abc.Process, log: Path, era: Era = "handshake") -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process = process
        self.log = log
        self.era: Era = era
        self.strays: list[Json] = []
        """What was answered twice, or to nobody."""
        self.notices: list[Json] = []
        self._input = process.stdin
        self._output = process.stdout
        self._numbers = count(1)
        self._answers: dict[int, Json | None] = {}
        self._came: dict[int, anyio.Event] = {}
        self._changed = anyio.Event()

    async def read(self) -> None:
        """Sort what comes until the output ends."""
        rest = bytearray()
        async for chunk in self._output:
            rest += chunk
            if b"\n" in chunk:
                *lines, rest = rest.split(b"\n")
                for line in lines:
                    self._take(json.loads(line))
        self._changed.set()
        for event in self._came.values():
            event.set()

    def _take(self, message: Json) -> None:
        number = message.get("id")
        if "method" in message:
            self.notices.append(message)
            self._changed.set()
        elif isinstance(number, int) and number in self._came:
            self._answers[number] = message
            self._came.pop(number).set()
        else:
            self.strays.append(message)

    async def send(self, method: str, params: Mapping[str, Any] | None = None) -> int:
        """Send a request and return its id."""
        number = next(self._numbers)
        self._came[number] = anyio.Event()
        await self.write({"id": number, "method": method, "params": self.stamped(params or {})})
        return number

    def stamped(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the parameters of a request in the form of the client's era."""
        return {**params, "_meta": ENVELOPE} if self.era == "modern" else params

    async def answer(self, number: int) -> Json:
        """Wait for the answer to a request."""
        if (came := self._came.get(number)) is not None:
            await came.wait()
        answer = self._answers.pop(number, None)
        if answer is None:
            raise GoneError
        return answer

    async def request(self, method: str, params: Mapping[str, Any] | None = None) -> Json:
        return await self.answer(await self.send(method, params))

    async def call(self, tool: str, /, **arguments: Any) -> Json:
        """Call a tool and return the whole answer."""
        return await self.request("tools/call", {"name": tool, "arguments": arguments})

    async def write(self, message: Mapping[str, Any]) -> None:
        await self.write_raw(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def write_raw(self, data: bytes) -> None:
        await self._input.send(data)

    async def end_input(self) -> None:
        await self._input.aclose()

    async def servers(self) -> dict[str, Json]:
        """Return what the catalog says of each server."""
        answer = await self.request("resources/read", {"uri": SERVERS})
        listed = json.loads(answer["result"]["contents"][0]["text"])["servers"]
        return {server["name"]: server for server in listed}

    async def until(self, condition: Callable[[dict[str, Json]], bool]) -> float:
        """Wait until the catalog is as it should be; return how long that took."""
        began = time.perf_counter()
        if self.era == "modern":
            await self.send(
                "subscriptions/listen", {"notifications": {"resourceSubscriptions": [SERVERS]}}
            )
        else:
            await self.request("resources/subscribe", {"uri": SERVERS})
        while True:
            changed = self._changed = anyio.Event()
            if condition(await self.servers()):
                return time.perf_counter() - began
            await changed.wait()

    async def ready(self) -> float:
        """Wait until every server is ready; return how long that took."""
        return await self.until(lambda found: all(is_ready(each) for each in found.values()))

    def memory(self) -> int:
        """Return the bytes that the aggregator holds."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        lines = [line.split() for line in status.splitlines()]
        return 1024 * next(int(line[1]) for line in lines if line[0] == "VmRSS:")


def is_ready(server: Mapping[str, Any]) -> bool:
    return server["state"] == "ready"


def is_error(answer: Mapping[str, Any]) -> bool:
    return "error" in answer or answer["result"].get("isError", False)


def text_of(answer: Mapping[str, Any]) -> str:
    """Return what a model would read of an answer."""
    if "error" in answer:
        return answer["error"]["message"]
    return "\n".join(block.get("text", "") for block in answer["result"]["content"])


def faulty(mode: str = "ok", *options: str, **settings: Any) -> Json:
    """Configure the server that misbehaves on demand."""
    return {"command": sys.executable, "args": [str(FAULTY), mode, *options], **settings}


@asynccontextmanager
async def aggregator(
    directory: Path,
    servers: Servers,
    *options: str,
    era: Era = "handshake",
    **settings: Any,
) -> AsyncGenerator[Client, None]:
    """Run the aggregator in front of servers and be its client."""
    path = directory / "servers.yaml"
    path.write_text(json.dumps({"servers": servers, **settings}), encoding="utf-8")
    log = directory / "log"
    async with spawned(path, log, options) as process, anyio.create_task_group() as group:
        client = Client(process, log, era)
        group.start_soon(client.read)
        with anyio.fail_after(PATIENCE):
            await introduce(client)
        yield client
        group.cancel_scope.cancel()


@asynccontextmanager
async def spawned(
    config: Path, log: Path, options: Sequence[str]
) -> AsyncGenerator[anyio.abc.Process, None]:
    command = [sys.executable, "-m", "aggregator", "serve", "--config", str(config), *options]
    # What is known of servers from an earlier run would have them start only when they are called.
    state = tempfile.mkdtemp(prefix="state-", dir=config.parent)
    environment = {**os.environ, "XDG_STATE_HOME": state}
    with log.open("wb") as stderr:
        process = await anyio.open_process(command, cwd=ROOT, stderr=stderr, env=environment)
    async with process:
        try:
            yield process
        finally:
            if process.returncode is None:
                process.terminate()


async def introduce(client: Client) -> None:
    """Begin in the way of the client's era."""
    if client.era == "modern":
        await client.request("server/discover")
    else:
        await client.request("initialize", INTRODUCTION)
        await client.write({"method": "notifications/initialized"})
    await client.request("tools/list")
