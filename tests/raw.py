"""Peers that say exactly what they are told to: no model of the SDK stands in between."""

import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
from mcp.shared.dispatcher import CallOptions, DispatchContext
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp.shared.transport_context import TransportContext

from aggregator.app.life import serve_client
from aggregator.downstream.transport import Connect, Transport
from aggregator.upstream.server import Upstream
from aggregator.upstream.stdio import standard_streams
from aggregator.upstream.visitor import Visitor
from tests.patience import patience
from tests.peers import Era
from tests.transports import StreamTransport
from tests.ways import piped, way

Json = dict[str, Any]
Dispatch = DispatchContext[TransportContext]
Handler = Callable[[Dispatch, Json], Awaitable[Json]]

VERSIONS: dict[Era, str] = {"handshake": "2025-11-25", "modern": "2026-07-28"}

FULL_CAPABILITIES: Json = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "completions": {},
    "logging": {},
}


class RawServer:
    """A server of one era that answers from a table and remembers what it was asked."""

    def __init__(self, era: Era, **handlers: Handler) -> None:
        self.era: Era = era
        self.capabilities = FULL_CAPABILITIES
        self.tools: list[Json] = []
        self.prompts: list[Json] = []
        self.resources: list[Json] = []
        self.templates: list[Json] = []
        self.handlers = {name.replace("__", "/"): handler for name, handler in handlers.items()}
        self.received: list[tuple[str, Json]] = []
        self.client: Json = {}
        self.asked = anyio.Event()
        self.cancelled = anyio.Event()
        self._dispatcher: JSONRPCDispatcher[TransportContext] | None = None
        self._write: Any = None
        self._listening: dict[Any, Dispatch] = {}

    @property
    def connect(self) -> Connect:
        return self._connect

    def tool(self, name: str, handler: Handler, **definition: Any) -> None:
        """Offer a tool."""
        self.tools.append({"name": name, "inputSchema": {"type": "object"}, **definition})
        self.handlers[f"tools/call {name}"] = handler

    def methods(self) -> list[str]:
        """Return what was asked, in order."""
        return [method for method, _params in self.received]

    async def ask(self, method: str, params: Json) -> Json:
        """Ask the client something; as on a pipe, nothing says for which of its requests."""
        assert self._dispatcher is not None
        return await self._dispatcher.send_raw_request(method, params)

    async def say(self, method: str, params: Json) -> None:
        """Tell the client something, in the same way."""
        assert self._dispatcher is not None
        await self._dispatcher.notify(method, params)

    async def write(self, message: types.JSONRPCMessage) -> None:
        """Send a message that no dispatcher would."""
        await self._write.send(SessionMessage(message))

    async def change(self, method: str, params: Json | None = None) -> None:
        """Tell of a change in the way of the era."""
        if self.era == "handshake":
            assert self._dispatcher is not None
            await self._dispatcher.notify(method, params)
        for number, context in list(self._listening.items()):
            meta = {SUBSCRIPTION_ID_META_KEY: number}
            await context.notify(method, {**(params or {}), "_meta": meta})

    @asynccontextmanager
    async def _connect(self) -> AsyncGenerator[Transport, None]:
        async with self.streams() as streams:
            yield StreamTransport(streams)

    @asynccontextmanager
    async def streams(self) -> AsyncGenerator[Any, None]:
        """Serve whoever holds the streams that this gives."""
        async with (
            create_client_server_memory_streams() as (ours, (read, write)),
            anyio.create_task_group() as group,
        ):
            self._write = write
            self._dispatcher = JSONRPCDispatcher[TransportContext](read, write)
            await group.start(self._dispatcher.run, self._on_request, self._on_notify)
            yield ours
            group.cancel_scope.cancel()

    async def _on_notify(
        self, _context: Dispatch, method: str, params: Mapping[str, Any] | None
    ) -> None:
        self.received.append((method, dict(params or {})))

    async def _on_request(
        self, context: Dispatch, method: str, params: Mapping[str, Any] | None
    ) -> Json:
        given = dict(params or {})
        self.received.append((method, given))
        self.asked.set()
        named = self.handlers.get(f"{method} {given.get('name')}") or self.handlers.get(method)
        if named is not None:
            return self._enveloped(await named(context, given))
        return self._enveloped(await self._usual(context, method, given))

    async def _usual(self, context: Dispatch, method: str, params: Json) -> Json:
        match method:
            case "initialize" if self.era == "handshake":
                self.client = params
                return {
                    "protocolVersion": "2025-11-25",
                    "capabilities": self.capabilities,
                    "serverInfo": {"name": "raw", "version": "1"},
                    "instructions": "Be raw",
                }
            case "server/discover" if self.era == "modern":
                return {
                    "supportedVersions": ["2026-07-28"],
                    "capabilities": self.capabilities,
                    "instructions": "Be raw",
                }
            case "subscriptions/listen" if self.era == "modern":
                return await self._listen(context, params)
            case "resources/subscribe" | "resources/unsubscribe" | "logging/setLevel":
                return {}
            case _:
                return self._listed(method)

    def _listed(self, method: str) -> Json:
        match method:
            case "tools/list":
                return {"tools": self.tools}
            case "prompts/list":
                return {"prompts": self.prompts}
            case "resources/list":
                return {"resources": self.resources}
            case "resources/templates/list":
                return {"resourceTemplates": self.templates}
            case _:
                raise MCPError(types.METHOD_NOT_FOUND, f"No {method} here")

    async def _listen(self, context: Dispatch, params: Json) -> Json:
        meta = {SUBSCRIPTION_ID_META_KEY: context.request_id}
        self._listening[context.request_id] = context
        try:
            await context.notify(
                "notifications/subscriptions/acknowledged", {**params, "_meta": meta}
            )
            await anyio.sleep_forever()
        finally:
            del self._listening[context.request_id]
        return {}

    def _enveloped(self, result: Json) -> Json:
        return {"resultType": "complete", **result} if self.era == "modern" else result


class RawClient:
    """A client of one era that sees results as they come over the wire."""

    def __init__(
        self, era: Era, streams: Any, capabilities: Json, name: str = "raw client"
    ) -> None:
        self.era: Era = era
        self.name = name
        self.capabilities = capabilities
        self.answers: dict[str, Callable[[Json], Json]] = {}
        self.questions: list[tuple[str, Json]] = []
        self.heard: list[tuple[str, Json]] = []
        self.news = anyio.Event()
        self.server: Json = {}
        self._dispatcher = JSONRPCDispatcher[TransportContext](*streams)

    async def request(self, method: str, params: Json | None = None, **meta: Any) -> Json:
        """Ask something; `meta` goes into `_meta`."""
        given = dict(params or {})
        carried = {**given.get("_meta", {}), **meta}
        if self.era == "modern":
            carried |= {
                types.PROTOCOL_VERSION_META_KEY: "2026-07-28",
                types.CLIENT_INFO_META_KEY: {"name": self.name, "version": "1"},
                types.CLIENT_CAPABILITIES_META_KEY: self.capabilities,
            }
        if carried:
            given["_meta"] = carried
        options: CallOptions = {}
        return await self._dispatcher.send_raw_request(method, given, options)

    async def notify(self, method: str) -> None:
        """Tell something."""
        await self._dispatcher.notify(method, None)

    async def until_heard(self, method: str) -> Json:
        """Wait for a notification, and return what it says."""
        with anyio.fail_after(patience()):
            while True:
                news = self.news
                for heard, params in self.heard:
                    if heard == method:
                        return params
                await news.wait()

    async def run(self, *, task_status: Any = anyio.TASK_STATUS_IGNORED) -> None:
        await self._dispatcher.run(
            self._on_request, self._ignore, self._hear, task_status=task_status
        )

    async def open(self) -> None:
        if self.era == "modern":
            self.server = await self.request("server/discover")
            return
        self.server = await self.request(
            "initialize",
            {
                "protocolVersion": "2025-11-25",
                "capabilities": self.capabilities,
                "clientInfo": {"name": self.name, "version": "1"},
            },
        )
        await self._dispatcher.notify("notifications/initialized", None)

    async def _on_request(
        self, _context: Dispatch, method: str, params: Mapping[str, Any] | None
    ) -> Json:
        self.questions.append((method, dict(params or {})))
        if method not in self.answers:
            raise MCPError(types.METHOD_NOT_FOUND, f"No {method} here")
        return self.answers[method](dict(params or {}))

    def _hear(self, method: str, params: Mapping[str, Any] | None) -> bool:
        self.heard.append((method, dict(params or {})))
        news, self.news = self.news, anyio.Event()
        news.set()
        return True

    async def _ignore(
        self, _context: Dispatch, _method: str, _params: Mapping[str, Any] | None
    ) -> None:
        """Everything is heard in order already."""


@asynccontextmanager
async def raw_client(
    upstream: Upstream,
    era: Era,
    capabilities: Json | None = None,
    visitor: Visitor | None = None,
    name: str = "raw client",
) -> AsyncGenerator[RawClient, None]:
    """Be a raw client of the aggregator, on a stream."""
    async with (
        way().streams(upstream, visitor) as streams,
        anyio.create_task_group() as group,
    ):
        client = RawClient(era, streams, capabilities or {}, name)
        await group.start(client.run)
        await client.open()
        yield client
        group.cancel_scope.cancel()


@asynccontextmanager
async def on_pipes(
    upstream: Upstream, era: Era, capabilities: Json | None = None
) -> AsyncGenerator[RawClient, None]:
    """Be a raw client of the aggregator on two pipes, that has fetched its list."""
    asked, answered = os.pipe(), os.pipe()

    async def serve() -> None:
        async with standard_streams(asked[0], answered[1], stop=anyio.Event()) as streams:
            modern = await streams[0].opens_modern()
            await serve_client(upstream, streams, opens_modern=modern)

    try:
        async with anyio.create_task_group() as group:
            group.start_soon(serve)
            async with piped(answered[0], asked[1]) as streams:
                client = RawClient(era, streams, capabilities or {})
                await group.start(client.run)
                await client.open()
                await client.request("tools/list")
                yield client
            group.cancel_scope.cancel()
    finally:
        os.close(asked[0])
        os.close(answered[1])


@asynccontextmanager
async def direct_client(
    server: RawServer, capabilities: Json | None = None
) -> AsyncGenerator[RawClient, None]:
    """Be a raw client of a server itself."""
    async with server.streams() as streams, anyio.create_task_group() as group:
        client = RawClient(server.era, streams, capabilities or {})
        await group.start(client.run)
        await client.open()
        yield client
        group.cancel_scope.cancel()


def without_envelope(result: Json) -> Json:
    """Leave out of a result what belongs to one hop."""
    bare = {key: value for key, value in result.items() if key != "resultType"}
    meta = {
        key: value
        for key, value in bare.pop("_meta", {}).items()
        if not key.startswith("io.modelcontextprotocol/")
    }
    return {**bare, "_meta": meta} if meta else bare
