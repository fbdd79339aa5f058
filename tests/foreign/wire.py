"""A client of one era that speaks raw JSON lines with a program that is not ours, or is."""

import json
import os
import signal
import subprocess
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import mcp_types as types
from anyio.streams.buffered import BufferedByteReceiveStream
from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION

from aggregator.basics.json import is_plain_object
from tests.peers import Era

Json = dict[str, Any]

PATIENCE = 90.0
"""Seconds an answer may take; some servers load for half a minute on a busy machine."""
SILENCE = 30.0
"""Seconds in which a server of the modern era says that it is one."""
LEAVING = 15.0
"""Seconds a program may take to end after its input has."""
LONGEST = 1 << 26
"""Bytes one message may have."""

CLIENT: Json = {"name": "comparison", "version": "1"}


class Wire:
    """One running program, and what is said to it."""

    def __init__(self, process: anyio.abc.Process, era: Era) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.era: Era = era
        self.opened: Json = {}
        self._input = process.stdin
        self._output = BufferedByteReceiveStream(process.stdout)
        self._last = 0

    async def open(self) -> bool:
        """Begin in the way of the era; return whether the program speaks it."""
        if self.era == "modern":
            with anyio.move_on_after(SILENCE):
                answer = await self.ask("server/discover")
                self.opened = answer.get("result", {})
            return LATEST_MODERN_VERSION in self.opened.get("supportedVersions", [])
        answer = await self.ask(
            "initialize",
            {
                "protocolVersion": LATEST_HANDSHAKE_VERSION,
                "capabilities": {},
                "clientInfo": CLIENT,
            },
        )
        self.opened = answer.get("result", {})
        await self._write({"method": "notifications/initialized"})
        return bool(self.opened)

    async def ask(self, method: str, params: Mapping[str, Any] | None = None) -> Json:
        """Send a request and return its answer, a result or an error."""
        self._last += 1
        wanted = self._last
        await self._write(
            {"id": wanted, "method": method, "params": {**(params or {}), **self._stamp()}}
        )
        with anyio.fail_after(PATIENCE):
            while True:
                message = await self._read()
                if "method" not in message and message.get("id") == wanted:
                    return message
                if "method" in message and "id" in message:
                    await self._refuse(message)

    async def listed(self, method: str, key: str) -> list[Json]:
        """Return everything a list has, of all its pages."""
        found: list[Json] = []
        params: Json = {}
        while True:
            result = (await self.ask(method, params)).get("result", {})
            found += result.get(key, [])
            if not result.get("nextCursor"):
                return found
            params = {"cursor": result["nextCursor"]}

    async def read_document(self, uri: str) -> Any:
        """Return a resource that is JSON."""
        answer = await self.ask("resources/read", {"uri": uri})
        return json.loads(answer["result"]["contents"][0]["text"])

    async def end_input(self) -> None:
        """Ask the program to end, as clients do."""
        await self._input.aclose()

    def _stamp(self) -> Json:
        if self.era == "handshake":
            return {}
        meta = {
            types.PROTOCOL_VERSION_META_KEY: LATEST_MODERN_VERSION,
            types.CLIENT_INFO_META_KEY: CLIENT,
            types.CLIENT_CAPABILITIES_META_KEY: {},
        }
        return {"_meta": meta}

    async def _refuse(self, question: Json) -> None:
        error = {"code": types.METHOD_NOT_FOUND, "message": "Nobody is here to be asked"}
        await self._write({"id": question["id"], "error": error})

    async def _write(self, message: Json) -> None:
        await self._input.send(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def _read(self) -> Json:
        while True:
            line = await self._output.receive_until(b"\n", LONGEST)
            # Some programs greet people on stdout before they speak.
            with suppress(ValueError):
                message: object = json.loads(line)
                if is_plain_object(message):
                    return message


@asynccontextmanager
async def talking(
    command: Sequence[str], era: Era, env: Mapping[str, str], cwd: Path
) -> AsyncGenerator[Wire]:
    """Run a program and be its client; nothing of it is left behind."""
    process = await anyio.open_process(
        command, env=env, cwd=cwd, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        wire = Wire(process, era)
        yield wire
        await wire.end_input()
        with anyio.move_on_after(LEAVING):
            await process.wait()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with anyio.CancelScope(shield=True):
            await process.aclose()
