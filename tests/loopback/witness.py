"""A server that answers with what it is told, and keeps account of whose calls were cancelled.

`python -m tests.loopback.witness ERA` speaks on the standard streams; with a port, over HTTP.
"""

import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import anyio.abc
import uvicorn
from anyio.streams.buffered import BufferedByteReceiveStream
from starlette.types import Receive, Scope, Send

from aggregator.downstream.link import LEVELS
from tests.loopback.scripted import body_of
from tests.loopback.web import answer, listening

Json = dict[str, Any]
Tell = Callable[[Json], Awaitable[None]]
"""Sends a message that belongs to one request."""

VERSIONS = {"handshake": "2025-11-25", "modern": "2026-07-28"}
LOG_LEVEL = "io.modelcontextprotocol/logLevel"
TOOLS = ("echo", "step", "log", "hold", "release", "tally")
LOGGED = ("debug", "error")
"""The levels of what `log` says."""
STEPS = 2
SCHEMA: Json = {"type": "object", "properties": {"nonce": {"type": "string"}}}


class RefusedError(Exception):
    """What was asked is not known in this era."""


class Witness:
    """What is held, what was cancelled, and the answers to everything."""

    def __init__(self, era: str) -> None:
        self.era = era
        self.calls = 0
        self._level = "emergency"
        self._held: dict[str, anyio.Event] = {}
        self._cancelled: list[str] = []
        self._changed = anyio.Event()
        self._under_way: dict[Any, anyio.CancelScope] = {}

    async def answer(self, message: Json, tell: Tell) -> Json | None:
        """Answer a request; return nothing if it was cancelled."""
        number, response = message["id"], None
        with anyio.CancelScope() as scope:
            self._under_way[number] = scope
            try:
                result = await self._answer(message["method"], message.get("params") or {}, tell)
                response = {"result": self._enveloped(result)}
            except RefusedError:
                response = {"error": {"code": -32601, "message": "Method not found"}}
            finally:
                del self._under_way[number]
        return None if response is None else {"jsonrpc": "2.0", "id": number, **response}

    def hear(self, message: Json) -> None:
        """Take back what is no longer wanted."""
        if message["method"] == "notifications/cancelled":
            self.abandon(message["params"]["requestId"])

    def abandon(self, number: Any) -> None:
        """Take back what is no longer waited for."""
        if number in self._under_way:
            self._under_way[number].cancel()

    def _enveloped(self, result: Json) -> Json:
        return {"resultType": "complete", **result} if self.era == "modern" else result

    async def _answer(self, method: str, params: Json, tell: Tell) -> Json:
        match method:
            case "initialize" if self.era == "handshake":
                about: Json = {"name": "witness", "version": "1"}
                return {**self._introduction(), "serverInfo": about}
            case "server/discover" if self.era == "modern":
                return {**self._introduction(), "supportedVersions": [VERSIONS["modern"]]}
            case "tools/list":
                return {"tools": [{"name": name, "inputSchema": SCHEMA} for name in TOOLS]}
            case "logging/setLevel":
                self._level = params["level"]
                return {}
            case "tools/call":
                return await self._call(params, tell)
            case _:
                raise RefusedError

    def _introduction(self) -> Json:
        capabilities: Json = {"tools": {}, "logging": {}}
        return {"protocolVersion": VERSIONS["handshake"], "capabilities": capabilities}

    async def _call(self, params: Json, tell: Tell) -> Json:
        nonce: str = params["arguments"]["nonce"]
        meta: Json = params.get("_meta") or {}
        self.calls += 1
        match params["name"]:
            case "step":
                for number in range(STEPS):
                    await tell(_progress(meta, number, nonce))
            case "log":
                for level in filter(lambda level: self._logs(level, meta), LOGGED):
                    await tell(_logged(level, nonce))
            case "hold":
                await self._hold(nonce, meta, tell)
            case "release":
                self._held[nonce].set()
            case "tally":
                nonce = await self._tally(int(nonce))
            case _:
                pass
        return {"content": [{"type": "text", "text": nonce}]}

    async def _hold(self, nonce: str, meta: Json, tell: Tell) -> None:
        """Keep a call until it is released; say loudly, as servers do, that it was cancelled."""
        self._held[nonce] = anyio.Event()
        try:
            await tell(_progress(meta, 0, nonce))
            await self._held[nonce].wait()
        except anyio.get_cancelled_exc_class():
            self._cancelled.append(nonce)
            changed, self._changed = self._changed, anyio.Event()
            changed.set()
            with anyio.CancelScope(shield=True):
                await tell(_logged("emergency", nonce))
            raise
        finally:
            del self._held[nonce]

    async def _tally(self, expected: int) -> str:
        """Say which calls were cancelled, once there are as many as there should be."""
        while len(self._cancelled) < expected:
            await self._changed.wait()
        account = {"calls": self.calls, "cancelled": self._cancelled, "held": [*self._held]}
        return json.dumps(account)

    def _logs(self, level: str, meta: Json) -> bool:
        least = meta.get(LOG_LEVEL) if self.era == "modern" else self._level
        return least is not None and LEVELS.index(level) >= LEVELS.index(least)


def _progress(meta: Json, number: int, nonce: str) -> Json:
    params = {"progressToken": meta.get("progressToken"), "progress": number, "message": nonce}
    return {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}


def _logged(level: str, nonce: str) -> Json:
    params: Json = {"level": level, "data": {"nonce": nonce}}
    return {"jsonrpc": "2.0", "method": "notifications/message", "params": params}


async def on_streams(witness: Witness) -> None:
    """Speak on the standard streams until they end."""
    lines = BufferedByteReceiveStream(_Input())
    async with anyio.create_task_group() as group:
        while True:
            try:
                line = await lines.receive_until(b"\n", 1 << 24)
            except (anyio.IncompleteRead, anyio.EndOfStream):
                group.cancel_scope.cancel()
                return
            message = json.loads(line)
            if "id" in message:
                group.start_soon(_answered, witness, message)
            else:
                witness.hear(message)


async def _answered(witness: Witness, message: Json) -> None:
    if (response := await witness.answer(message, _write)) is not None:
        await _write(response)


async def _write(message: Json) -> None:
    sys.stdout.buffer.write(json.dumps(message).encode() + b"\n")
    sys.stdout.buffer.flush()


class _Input(anyio.abc.ByteReceiveStream):
    """Standard input, read when there is something to read."""

    async def receive(self, max_bytes: int = 65536) -> bytes:
        await anyio.wait_readable(0)
        if data := os.read(0, max_bytes):
            return data
        raise anyio.EndOfStream

    async def aclose(self) -> None:
        """It is not ours to close."""


class Site:
    """A witness that is asked over HTTP."""

    def __init__(self, witness: Witness) -> None:
        self._witness = witness

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            await answer(send, 405 if scope["method"] == "GET" else 200)
            return
        message = json.loads(await body_of(receive))
        if "id" in message:
            await self._post(message, receive, send)
        else:
            self._witness.hear(message)
            await answer(send, 202)

    async def _post(self, message: Json, receive: Receive, send: Send) -> None:
        events = _Events(send)
        async with anyio.create_task_group() as group:
            if self._witness.era == "modern":
                group.start_soon(self._notice_hanging_up, receive, message["id"])
            await events.end(await self._witness.answer(message, events.tell))
            group.cancel_scope.cancel()

    async def _notice_hanging_up(self, receive: Receive, number: Any) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._witness.abandon(number)


class _Events:
    """One response: a stream of events if anything is told before the answer."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._has_begun = False

    async def tell(self, message: Json) -> None:
        if not self._has_begun:
            self._has_begun = True
            headers = [(b"content-type", b"text/event-stream")]
            await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        data = b"event: message\ndata: " + json.dumps(message).encode() + b"\n\n"
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self, response: Json | None) -> None:
        if self._has_begun:
            if response is not None:
                await self.tell(response)
            await self._send({"type": "http.response.body", "body": b""})
        elif response is None:
            await answer(self._send, 202)
        else:
            await answer(self._send, 200, response, mcp_session_id="one")


async def over_http(witness: Witness, port: int) -> None:
    """Serve on a port of the loopback interface; say on standard output where."""
    sock = listening(port)
    sys.stdout.write(f"http://127.0.0.1:{sock.getsockname()[1]}/mcp\n")
    sys.stdout.flush()
    config = uvicorn.Config(
        Site(witness), lifespan="off", log_config=None, access_log=False, ws="none"
    )
    await uvicorn.Server(config).serve([sock])


async def main(*arguments: str) -> None:
    """Be a witness until nobody is there any more."""
    era, *port = arguments
    witness = Witness(era)
    await (over_http(witness, int(port[0])) if port else on_streams(witness))


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:])
