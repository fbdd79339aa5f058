"""Open a link to one server: its transport, the handshake of either era, one stream of changes.

The link speaks to the SDK's dispatcher and not to its `ClientSession`: a session validates and
re-models every result, and what a server answers must reach the client unchanged.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import anyio
import anyio.abc
import mcp_types as types
from mcp.client import Transport
from mcp.shared.dispatcher import CallOptions, DispatchContext, ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import NAME_BEARING_METHODS, encode_header_value
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from mcp_types.version import (
    HANDSHAKE_PROTOCOL_VERSIONS,
    LATEST_HANDSHAKE_VERSION,
    MODERN_PROTOCOL_VERSIONS,
)

from aggregator.catalog import JsonObject, as_object

Era = Literal["handshake", "modern"]

Connect = Callable[[], AbstractAsyncContextManager["Wire"]]
"""Opens the transport to one server; entered and left by one task."""

Answer = Callable[[str, Mapping[str, Any] | None], Awaitable[dict[str, Any]]]
"""Answers a request that a server makes of us: `(method, params) -> result`."""

PROBE_HEAD_START = 3.0
"""Seconds `server/discover` may go unanswered before `initialize` is sent beside it.

A server that is merely slow to start answers the first; one that ignores what it does not know
answers the second. Nothing is concluded from silence.
"""

LISTEN_PATIENCE = 5.0
"""Seconds to wait for a modern server to acknowledge that it will tell of changes."""


END_PATIENCE = 0.1
"""Seconds that a connection which seems to be over has to be really over."""


@dataclass(frozen=True, slots=True)
class Undone:
    """Why a request got no answer, from the transport that carried it.

    It travels as the `data` of an error, where nothing that a server sends can be taken for it.
    """

    reason: str
    may_have_run: bool = True
    """Whether the server may have acted on the request all the same."""
    retry_after: float = 0.0
    """Seconds the server asks to be left alone."""
    is_barred: bool = False
    """Whether trying again is pointless until something changes."""


@dataclass(frozen=True, slots=True)
class Wire:
    """A transport's two streams, and what is known of the process behind them."""

    streams: Any
    describe_end: Callable[[], str] = lambda: "the connection closed"
    """Says, once the streams have ended, how it came to that."""
    is_stuck: Callable[[], bool] = lambda: False
    """Says whether what was written is not being read."""
    is_barred: Callable[[], bool] = lambda: False
    """Says whether a new connection would be pointless until something changes."""
    last_words: Callable[[], Sequence[str]] = tuple
    """The last lines of its standard error, safe to show."""


@dataclass(frozen=True, slots=True)
class Peer:
    """What a server said of itself when the link was opened."""

    era: Era
    protocol_version: str
    name: str = ""
    version: str = ""
    capabilities: JsonObject = field(default_factory=dict[str, Any])
    instructions: str = ""

    def announces(self, kind: str) -> bool:
        """Whether the server says it tells of changes to its list of `kind`."""
        return as_object(self.capabilities.get(kind)).get("listChanged") is True


class EraUnclearError(Exception):
    """The server closed the connection on `server/discover`: an old one may need `initialize`."""


class Link:
    """An open connection to one server."""

    def __init__(self, wire: Wire, identity: JsonObject) -> None:
        read, write = wire.streams
        self._dispatcher = JSONRPCDispatcher[TransportContext](read, write)
        self.describe_end = wire.describe_end
        self.is_stuck = wire.is_stuck
        self.is_barred = wire.is_barred
        self._identity = identity
        self._acknowledged = anyio.Event()
        self.peer = Peer("handshake", LATEST_HANDSHAKE_VERSION)
        self.ended = anyio.Event()
        """Set as soon as the connection is over, or is to be given up."""
        self.news = anyio.Event()
        """Set when the tools changed or the link ended; `listing` begins anew."""
        self.fault = ""
        """Why the link is to be given up, if its owner or its caller decided so."""

    def listing(self) -> None:
        """Note that the tools are about to be listed: what changes from here on is news."""
        if not self.ended.is_set():
            self.news = anyio.Event()

    def give_up(self, fault: str) -> None:
        """Have the link's owner close it, because it is of no use any more."""
        self.fault = fault
        self._end()

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        on_progress: ProgressFnT | None = None,
        capabilities: JsonObject | None = None,
    ) -> dict[str, Any]:
        """Send a request and return its result as it came.

        Raises:
            MCPError: The server answered with an error, or the connection closed.
        """
        options: CallOptions = {"headers": self._headers(method, params)}
        if on_progress is not None:
            options["on_progress"] = on_progress
        stamped = self._stamped(params, capabilities or {})
        return await self._dispatcher.send_raw_request(method, stamped, options)

    async def was_lost(self, error: MCPError) -> bool:
        """Whether an error means that the connection is gone, and is not the server's own.

        A server may use the same code; and callers hear of the end before the link itself does.
        """
        if error.code != types.CONNECTION_CLOSED or error.message != "Connection closed":
            return False
        with anyio.move_on_after(END_PATIENCE):
            await self.ended.wait()
        return self.ended.is_set()

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification; a connection that is gone swallows it."""
        await self._dispatcher.notify(method, params)

    async def run(self, answer: Answer, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        """Read what the server sends until the connection ends."""

        async def on_request(
            _context: DispatchContext[TransportContext],
            method: str,
            params: Mapping[str, Any] | None,
        ) -> dict[str, Any]:
            return await answer(method, params)

        try:
            await self._dispatcher.run(
                on_request, _ignore_notification, self._hear, task_status=task_status
            )
        finally:
            self._end()

    async def negotiate(self, era: Era | None) -> None:
        """Find the server's era, unless it is known, and introduce ourselves in it."""
        if era == "handshake":
            self.peer = await self._initialize()
        elif era == "modern":
            self.peer = await self._discover()
        else:
            self.peer = await self._probe()

    async def listen(self) -> None:
        """Hold a modern server's stream of changes open for as long as the link lives."""
        wanted = {"notifications": {"toolsListChanged": True}}
        while not self.ended.is_set():
            try:
                await self.request("subscriptions/listen", wanted)
            except MCPError as error:
                # A stream that broke is opened again; one that was refused is not offered.
                if not isinstance(error.data, Undone):
                    return
            finally:
                self._acknowledged.set()
            await anyio.sleep(LISTEN_PATIENCE)

    async def listening(self) -> None:
        """Wait, within bounds, until the server has acknowledged `listen`."""
        with anyio.move_on_after(LISTEN_PATIENCE):
            await self._acknowledged.wait()

    async def _probe(self) -> Peer:
        """Ask in both eras, the modern one first, and take the first good answer."""
        found: list[Peer] = []
        refused = anyio.Event()
        errors: list[MCPError] = []

        async def modern() -> None:
            try:
                found.append(await self._discover())
                group.cancel_scope.cancel()
            except MCPError as error:
                errors.append(error)
                refused.set()

        async def handshake() -> None:
            with anyio.move_on_after(PROBE_HEAD_START):
                await refused.wait()
            if self.ended.is_set():
                return
            try:
                found.append(await self._initialize())
                group.cancel_scope.cancel()
            except MCPError as error:
                errors.append(error)

        async with anyio.create_task_group() as group:
            group.start_soon(modern)
            group.start_soon(handshake)
        if found:
            return found[0]
        if self.ended.is_set() and not any(isinstance(each.data, Undone) for each in errors):
            raise EraUnclearError
        raise errors[-1]

    async def _discover(self) -> Peer:
        version = MODERN_PROTOCOL_VERSIONS[-1]
        self.peer = Peer("modern", version)
        options: CallOptions = {
            "cancel_on_abandon": False,
            "headers": self._headers("server/discover", None),
        }
        result = await self._dispatcher.send_raw_request(
            "server/discover", self._stamped({}, {}), options
        )
        offered = result.get("supportedVersions")
        mutual = [each for each in MODERN_PROTOCOL_VERSIONS if each in (offered or ())]
        if not mutual:
            raise MCPError(types.UNSUPPORTED_PROTOCOL_VERSION, "No modern version in common")
        stamp = as_object(result.get("_meta")).get(types.SERVER_INFO_META_KEY)
        return _peer("modern", mutual[-1], stamp, result)

    async def _initialize(self) -> Peer:
        result = await self._dispatcher.send_raw_request(
            "initialize",
            {
                "protocolVersion": LATEST_HANDSHAKE_VERSION,
                "capabilities": {},
                "clientInfo": self._identity,
            },
            {"cancel_on_abandon": False},
        )
        version = result.get("protocolVersion")
        if version not in HANDSHAKE_PROTOCOL_VERSIONS:
            raise MCPError(
                types.UNSUPPORTED_PROTOCOL_VERSION, f"It speaks the unknown protocol {version!r}"
            )
        await self._dispatcher.notify("notifications/initialized", None)
        return _peer("handshake", str(version), result.get("serverInfo"), result)

    def _stamped(
        self, params: Mapping[str, Any] | None, capabilities: JsonObject
    ) -> Mapping[str, Any] | None:
        """Add what every request of the modern era must carry."""
        if self.peer.era == "handshake":
            return params
        meta = {
            **as_object((params or {}).get("_meta")),
            types.PROTOCOL_VERSION_META_KEY: self.peer.protocol_version,
            types.CLIENT_INFO_META_KEY: self._identity,
            types.CLIENT_CAPABILITIES_META_KEY: capabilities,
        }
        return {**(params or {}), "_meta": meta}

    def _headers(self, method: str, params: Mapping[str, Any] | None) -> dict[str, str]:
        """Return what Streamable HTTP repeats of a request in its headers."""
        headers = {"mcp-protocol-version": self.peer.protocol_version}
        if self.peer.era == "modern":
            headers["mcp-method"] = method
            name = (params or {}).get(NAME_BEARING_METHODS.get(method, ""))
            if isinstance(name, str):
                headers["mcp-name"] = encode_header_value(name)
        return headers

    def _end(self) -> None:
        self.ended.set()
        self.news.set()

    def _hear(self, method: str, _params: Mapping[str, Any] | None) -> bool:
        """Take a notification in the order it came; a storm of them is one change."""
        if method == "notifications/tools/list_changed":
            self.news.set()
        elif method == "notifications/subscriptions/acknowledged":
            if self._acknowledged.is_set():
                # What changed while the stream of changes was interrupted has gone untold.
                self.news.set()
            self._acknowledged.set()
        return True


@asynccontextmanager
async def open_link(
    connect: Connect, *, identity: JsonObject, era: Era | None, answer: Answer
) -> AsyncGenerator[Link, None]:
    """Open a link to one server and keep it for the length of the block."""
    async with connect() as wire:
        link = Link(wire, identity)
        async with anyio.create_task_group() as group:
            await group.start(link.run, answer)
            try:
                await link.negotiate(era)
                if link.peer.era == "modern" and link.peer.announces("tools"):
                    group.start_soon(link.listen)
                    await link.listening()
                yield link
            finally:
                group.cancel_scope.cancel()


@asynccontextmanager
async def over(transport: Transport) -> AsyncGenerator[Wire, None]:
    """Make a wire of any of the SDK's transports."""
    async with transport as streams:
        yield Wire(streams)


async def refuse(method: str, _params: Mapping[str, Any] | None) -> dict[str, Any]:
    """Answer a server that asks something of us: only `ping` is served."""
    if method == "ping":
        return {}
    raise MCPError(types.METHOD_NOT_FOUND, f"`{method}` is not served here")


async def _ignore_notification(
    _context: DispatchContext[TransportContext], _method: str, _params: Mapping[str, Any] | None
) -> None:
    """Drop what `_hear` did not take."""


def _peer(era: Era, version: str, info: object, result: Mapping[str, Any]) -> Peer:
    """Read what a server says of itself, whatever shape it has."""
    described = as_object(info)
    instructions = result.get("instructions")
    return Peer(
        era=era,
        protocol_version=version,
        name=str(described.get("name") or ""),
        version=str(described.get("version") or ""),
        capabilities=as_object(result.get("capabilities")),
        instructions=instructions if isinstance(instructions, str) else "",
    )
