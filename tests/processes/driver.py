"""The aggregator as a process, spoken to in raw JSON lines."""

import json
import os
import signal
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
from anyio.streams.buffered import BufferedByteReceiveStream
from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION

from tests.patience import PATIENCE

ROOT = Path(__file__).parent.parent.parent
FAULTY = ROOT / "tests" / "faulty.py"


class Aggregator:
    """One running aggregator and the lines it has written."""

    def __init__(self, process: anyio.abc.Process, era: str) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process = process
        self.lines: list[dict[str, Any]] = []
        self._era = era
        self._input = process.stdin
        self._output = BufferedByteReceiveStream(process.stdout)
        self._last = 0

    async def write(self, line: bytes) -> None:
        await self._input.send(line + b"\n")

    async def send(self, method: str, params: Mapping[str, Any] | None = None) -> int:
        """Send a request and return its id."""
        self._last += 1
        await self._message(id=self._last, method=method, params=self._stamped(params or {}))
        return self._last

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        await self._message(method=method, **({"params": params} if params else {}))

    async def read(self) -> dict[str, Any]:
        """Read the next line; whatever is on stdout must be the protocol."""
        with anyio.fail_after(PATIENCE):
            line = await self._output.receive_until(b"\n", 1 << 26)
        message = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        self.lines.append(message)
        return message

    async def ask(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Send a request and return its answer."""
        wanted = await self.send(method, params)
        while True:
            message = await self.read()
            if message.get("id") == wanted:
                return message

    async def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        return (await self.ask("tools/call", {"name": tool, "arguments": arguments}))["result"]

    async def open(self, client: str = "raw") -> None:
        """Begin in the way of the era."""
        if self._era == "handshake":
            await self.ask(
                "initialize",
                {
                    "protocolVersion": LATEST_HANDSHAKE_VERSION,
                    "capabilities": {},
                    "clientInfo": {"name": client, "version": "1"},
                },
            )
            await self.notify("notifications/initialized")
        else:
            await self.ask("server/discover")

    async def end_input(self) -> None:
        await self._input.aclose()

    async def rest(self) -> bytes:
        """Return whatever else is written before the output ends."""
        received = bytes(self._output.buffer)
        with anyio.fail_after(PATIENCE):
            async for chunk in self._output:
                received += chunk
        return received

    async def ended(self) -> int:
        with anyio.fail_after(PATIENCE):
            return await self.process.wait()

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def _stamped(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        if self._era == "handshake":
            return params
        meta = {
            "io.modelcontextprotocol/protocolVersion": LATEST_MODERN_VERSION,
            "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        return {**params, "_meta": meta}

    async def _message(self, **message: Any) -> None:
        await self.write(json.dumps({"jsonrpc": "2.0", **message}).encode())


@asynccontextmanager
async def aggregator(
    directory: Path,
    servers: Mapping[str, Mapping[str, Any]],
    *,
    era: str = "handshake",
    **settings: Any,
) -> AsyncGenerator[Aggregator, None]:
    """Run the aggregator in front of servers and be its client."""
    path = directory / "servers.yaml"
    path.write_text(json.dumps({"servers": servers, **settings}), encoding="utf-8")
    process = await anyio.open_process(
        [sys.executable, "-m", "aggregator", "serve", "--config", str(path)],
        cwd=ROOT,
        stderr=None,
        env={**os.environ, "XDG_STATE_HOME": str(directory / "state")},
    )
    async with process:
        try:
            client = Aggregator(process, era)
            await client.open()
            yield client
        finally:
            if process.returncode is None:
                process.terminate()


def faulty(mode: str = "ok", *options: str) -> dict[str, Any]:
    """Configure the server that misbehaves on demand."""
    return {"command": sys.executable, "args": [str(FAULTY), mode, *options]}


def texts(result: Mapping[str, Any]) -> str:
    return "\n".join(block.get("text", "") for block in result["content"])
