"""A door with a server behind it, and a connection to it on which each byte is ours."""

import json
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types.version import LATEST_MODERN_VERSION

from aggregator.config import Settings
from tests.loopback.door import Open, door
from tests.patience import PATIENCE
from tests.peers import Context as PeerContext
from tests.peers import Era, connect_to, ready
from tests.upstream.http.test_endpoint import ENVELOPE, HELLO, Asker, asked
from tests.upstream.usual import Usual

CALL = "tools/call"


class Answer:
    """What came back: a status, headers, and messages."""

    def __init__(self, head: bytes, body: bytes) -> None:
        status, *lines = head.decode().split("\r\n")
        self.status = int(status.split()[1])
        self.headers = dict(line.split(": ", 1) for line in lines)
        kind = self.headers.get("content-type")
        texts = [body.decode()] if kind == "application/json" else []
        if kind == "text/event-stream":
            texts = [line[6:] for line in body.decode().splitlines() if line.startswith("data: ")]
        self.messages: list[dict[str, Any]] = [json.loads(each) for each in texts]

    @property
    def text(self) -> str:
        return self.messages[-1]["result"]["content"][0]["text"]


class Wire:
    """One connection to a door, on which each byte is ours."""

    def __init__(self, stream: anyio.abc.SocketStream, opened: Open, era: Era) -> None:
        self.stream = stream
        self.era: Era = era
        self.host = opened.origin.removeprefix("http://")
        self.token = opened.token
        self.session = ""
        self._rest = b""
        self.number = 0

    def request(
        self, method: str, params: dict[str, Any] | None = None, **headers: str
    ) -> tuple[bytes, bytes]:
        """Return the head and the body of a request."""
        self.number += 1
        params = dict(params or {})
        given = {
            "host": self.host,
            "authorization": f"Bearer {self.token}",
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
        }
        if self.era == "modern":
            params["_meta"] = {**ENVELOPE, **params.get("_meta", {})}
            given |= {"mcp-protocol-version": LATEST_MODERN_VERSION, "mcp-method": method}
            if method == CALL:
                given["mcp-name"] = params["name"]
        elif self.session:
            given["mcp-session-id"] = self.session
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        body = json.dumps(asked(method, params, self.number)).encode()
        given["content-length"] = str(len(body))
        lines = "".join(f"{name}: {value}\r\n" for name, value in given.items() if value)
        return f"POST /mcp HTTP/1.1\r\n{lines}\r\n".encode(), body

    def call(
        self, tool: str = "one__plain", *, waits: bool = False, **headers: str
    ) -> tuple[bytes, bytes]:
        arguments = {"waits": True} if waits else {}
        return self.request(CALL, {"name": tool, "arguments": arguments}, **headers)

    def sized(self, body: bytes) -> bytes:
        """Return the request that is like a call, but for its body."""
        head, usual = self.call()
        said = "content-length: %d\r\n"
        return head.replace((said % len(usual)).encode(), (said % len(body)).encode()) + body

    async def ask(self, *pieces: bytes) -> Answer:
        """Send the pieces of a request, and return its answer."""
        await self.send(pieces)
        return await self.answer()

    async def send(self, pieces: Iterable[bytes]) -> None:
        for piece in pieces:
            await self.stream.send(piece)

    async def answer(self) -> Answer:
        with anyio.fail_after(PATIENCE):
            head = await self._until(b"\r\n\r\n")
            if b"transfer-encoding: chunked" in head:
                return Answer(head, await self._chunks())
            length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
            while len(self._rest) < length:
                self._rest += await self.stream.receive()
            body, self._rest = self._rest[:length], self._rest[length:]
            return Answer(head, body)

    async def _chunks(self) -> bytes:
        body = b""
        while size := int(await self._until(b"\r\n"), 16):
            while len(self._rest) < size + 2:
                self._rest += await self.stream.receive()
            body, self._rest = body + self._rest[:size], self._rest[size + 2 :]
        await self._until(b"\r\n")
        return body

    async def _until(self, end: bytes) -> bytes:
        while end not in self._rest:
            self._rest += await self.stream.receive()
        before, _, self._rest = self._rest.partition(end)
        return before

    async def begin(self) -> None:
        """Shake hands, if that is what is done in its era."""
        if self.era == "handshake":
            answer = await self.ask(*self.request("initialize", dict(HELLO)))
            self.session = answer.headers["mcp-session-id"]


@asynccontextmanager
async def connected(opened: Open, era: Era, of: Wire | None = None) -> AsyncGenerator[Wire, None]:
    """Connect to a door, in the session of another connection if there is one."""
    name, port = opened.origin.removeprefix("http://").split(":")
    async with await anyio.connect_tcp(name, int(port)) as stream:
        wire = Wire(stream, opened, era)
        if of is None:
            await wire.begin()
        else:
            wire.session = of.session
        yield wire


class Gate(Asker):
    """Leaves a call unanswered that asks for it, for ever or until it is let through."""

    def __init__(self, *tools: str) -> None:
        super().__init__(*tools)
        self.let_through = anyio.Event()

    async def _call(self, ctx: PeerContext, params: types.CallToolRequestParams) -> Any:
        arguments = params.arguments or {}
        if arguments.get("waits"):
            params = params.model_copy(update={"name": "block"})
        if arguments.get("lingers"):
            self.blocked.set()
            await self.let_through.wait()
        if (code := arguments.get("refused")) is not None:
            raise MCPError(code, "No", {"why": "because"})
        return await super()._call(ctx, params)


class Served:
    def __init__(self, opened: Open, wire: Wire, peer: Gate, usual: Usual) -> None:
        self.opened = opened
        self.wire = wire
        self.peer = peer
        self.usual = usual


@asynccontextmanager
async def serving(
    directory: Path, era: Era, settings: Settings | None = None, **options: Any
) -> AsyncGenerator[Served, None]:
    """Serve one server, with a client that has called it once."""
    options.setdefault("outside", {"drain_time": 0.05})
    peer = Gate("plain", "count", "ask", "other")
    async with door({"one": connect_to(peer, era)}, directory, settings, **options) as opened:
        await ready(opened.upstream)
        usual = Usual(opened.upstream)
        async with connected(opened, era) as wire:
            assert (await wire.ask(*wire.call())).status == 200
            usual.calls.clear()
            yield Served(opened, wire, peer, usual)
