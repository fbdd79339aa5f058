"""Open a link to one server: its transport, the handshake of either era, one stream of changes.

The link does without the SDK's `ClientSession`: a session validates and re-models every result,
and what a server answers must reach the client unchanged.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import anyio.abc
import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import NAME_BEARING_METHODS, encode_header_value, mcp_param_headers
from mcp_types.version import (
    HANDSHAKE_PROTOCOL_VERSIONS,
    LATEST_HANDSHAKE_VERSION,
    MODERN_PROTOCOL_VERSIONS,
)

from aggregator.downstream.exchange import REQUEST_FAILURES, Exchange, Rest
from aggregator.downstream.inflight import Call, Era, InFlight
from aggregator.downstream.listening import Listening
from aggregator.downstream.peer import Peer, describe
from aggregator.downstream.transport import (
    Connect,
    ConnectionClosedError,
    Transport,
    UndeliveredError,
)
from aggregator.json import JsonObject, as_object, items

Declare = Callable[[], JsonObject]
"""Says what our clients can be asked, as far as we know by then."""

Answer = Callable[[Call | None, str, Mapping[str, Any] | None], Awaitable[dict[str, Any]]]
"""Answers what a server asks: `(the call it belongs to, method, params) -> result`."""

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""The levels of log messages, the least first."""

KINDS = ("tools", "prompts", "resources")
"""What servers list, and tell of changes to."""

_LIST_CHANGED = {f"notifications/{kind}/list_changed": kind for kind in KINDS}

_INTRODUCTIONS = frozenset(("initialize", "server/discover"))
"""What only clients ask."""

PROBE_HEAD_START = 3.0
"""Seconds `server/discover` may go unanswered before `initialize` is sent beside it.

A server that is merely slow to start answers the first; one that ignores what it does not know
answers the second. Nothing is concluded from silence.
"""

END_PATIENCE = 0.1
"""Seconds that a connection which seems to be over has to be really over."""


class LinkLostError(Exception):
    """The connection ended before the server was of any use; says how."""


class EraUnclearError(LinkLostError):
    """The server closed the connection on `server/discover`: an old one may need `initialize`."""


class Link:
    """An open connection to one server."""

    def __init__(self, transport: Transport, identity: JsonObject, capabilities: Declare) -> None:
        self._exchange = Exchange(transport)
        self.transport = transport
        self._identity = identity
        self._capabilities = capabilities
        self._in_flight = InFlight()
        self._level: str | None = None
        self._answer: Answer = _refuse
        self.listening = Listening((), missed=self._missed)
        self.peer = Peer("handshake", LATEST_HANDSHAKE_VERSION)
        self.ended = anyio.Event()
        """Set as soon as the connection is over, or is to be given up."""
        self.news = anyio.Event()
        """Set when a list changed or the link ended; replaced when `stale` is taken."""
        self.stale = set[str]()
        """Which lists have changed since they were last taken."""
        self.on_updated: Callable[[str], None] = lambda _uri: None
        """Called with the URI of each resource that the server says has changed."""
        self.on_logged: Callable[[JsonObject], None] = lambda _params: None
        """Called with each log message that comes while no call is under way."""
        self.on_completed: Callable[[JsonObject], None] = lambda _params: None
        """Called when the server says that an elicitation elsewhere has come to its end."""
        self.mirrored: Mapping[object, Mapping[tuple[str, ...], str]] = {}
        """Which arguments of each tool are repeated in headers."""
        self.fault = ""
        """Why the link is to be given up, if its owner or its caller decided so."""

    def take_stale(self) -> frozenset[str]:
        """Return which lists have changed: what changes from here on is news."""
        stale = frozenset(self.stale)
        self.stale.clear()
        if not self.ended.is_set():
            self.news = anyio.Event()
        return stale

    def give_up(self, fault: str) -> None:
        """Have the link's owner close it, because it is of no use any more."""
        self.fault = fault
        self._end()

    async def request(
        self, method: str, params: Mapping[str, Any] | None = None, *, call: Call | None = None
    ) -> dict[str, Any]:
        """Send a request and return its result as it came.

        Raises:
            MCPError: The server answered with an error.
            UndeliveredError: The transport could not get an answer.
            ConnectionClosedError: The connection closed.
        """
        number = self._exchange.next_number()
        if call is None:
            return await self._send(number, method, self._stamped(params, None))
        with self._in_flight.entered(number, call):
            meta = {**as_object((params or {}).get("_meta")), "progressToken": number}
            stamped = self._stamped({**(params or {}), "_meta": meta}, call)
            try:
                return await self._send(number, method, stamped)
            finally:
                await call.deliver()

    async def _send(
        self, number: int | str, method: str, params: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        headers = self._headers(method, params)
        return await self._exchange.request(number, method, params, headers=headers)

    async def lower_level(self, level: str) -> None:
        """Have a server of the handshake era log at least from this level on."""
        if self.peer.era == "modern" or "logging" not in self.peer.capabilities:
            return
        if self._level is None or LEVELS.index(level) < LEVELS.index(self._level):
            self._level = level
            with suppress(MCPError, UndeliveredError):
                await self.request("logging/setLevel", {"level": level})

    async def end(self) -> None:
        """Wait, within bounds, for the end that callers may hear of before the link does."""
        with anyio.move_on_after(END_PATIENCE):
            await self.ended.wait()

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification; a connection that is gone swallows it."""
        await self._exchange.notify(method, params)

    async def run(self, answer: Answer, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        """Read what the server sends until the connection ends."""
        self._answer = answer
        try:
            await self._exchange.run(self, task_status=task_status)
        finally:
            self._end()

    async def answer(
        self, related: types.RequestId | None, method: str, params: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """Answer what the server asks, for the call that it belongs to."""
        if method in _INTRODUCTIONS:
            # It sends this back, too, as an answer to what we asked, so it is what we read.
            problem = "it sends back what it is sent, so it is no MCP server"
            raise MCPError(types.METHOD_NOT_FOUND, problem)
        return await self._answer(self._in_flight.meant(related), method, params)

    async def negotiate(self, era: Era | None) -> None:
        """Find the server's era, unless it is known, and introduce ourselves in it."""
        if era == "handshake":
            self.peer = await self._initialize()
        elif era == "modern":
            self.peer = await self._discover()
        else:
            self.peer = await self._probe()

    def attend(self) -> None:
        """Want to be told of every list that the server says it tells of."""
        kinds = [kind for kind in KINDS if self.peer.announces(kind)]
        self.listening = Listening(kinds, missed=self._missed)

    async def listen(self) -> None:
        """Hold a modern server's stream of changes open for as long as the link lives."""

        async def open_stream(number: str, params: JsonObject) -> dict[str, Any]:
            return await self._send(number, "subscriptions/listen", self._stamped(params, None))

        await self.listening.run(open_stream)

    async def _probe(self) -> Peer:
        """Ask in both eras, the modern one first, and take the first good answer."""
        found: list[Peer] = []
        refused = anyio.Event()
        errors: list[Exception] = []

        async def modern() -> None:
            try:
                found.append(await self._discover())
                group.cancel_scope.cancel()
            except REQUEST_FAILURES as error:
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
            except REQUEST_FAILURES as error:
                errors.append(error)

        async with anyio.create_task_group() as group:
            group.start_soon(modern)
            group.start_soon(handshake)
        if found:
            return found[0]
        if not self.ended.is_set():
            raise errors[-1]
        # What the transport says of the end tells more than that it has come.
        unclear = EraUnclearError(self.transport.describe_end())
        raise next((each for each in errors if isinstance(each, UndeliveredError)), unclear)

    async def _discover(self) -> Peer:
        """Ask in the modern era; again in another version of it if the server wants that."""
        try:
            return await self._discover_in(MODERN_PROTOCOL_VERSIONS[-1])
        except MCPError as error:
            supported = items(as_object(error.data).get("supported"))
            mutual = [each for each in MODERN_PROTOCOL_VERSIONS if each in supported]
            if error.code != types.UNSUPPORTED_PROTOCOL_VERSION or not mutual:
                raise
            return await self._discover_in(mutual[-1])

    async def _discover_in(self, version: str) -> Peer:
        self.peer = Peer("modern", version)
        result = await self._exchange.request(
            self._exchange.next_number(),
            "server/discover",
            self._stamped({}, None),
            headers=self._headers("server/discover", None),
            cancellable=False,
        )
        offered = items(result.get("supportedVersions"))
        mutual = [each for each in MODERN_PROTOCOL_VERSIONS if each in offered]
        if not mutual:
            raise MCPError(types.UNSUPPORTED_PROTOCOL_VERSION, "No modern version in common")
        stamp = as_object(result.get("_meta")).get(types.SERVER_INFO_META_KEY)
        return describe("modern", mutual[-1], stamp, result)

    async def _initialize(self) -> Peer:
        result = await self._exchange.request(
            self._exchange.next_number(),
            "initialize",
            {
                "protocolVersion": LATEST_HANDSHAKE_VERSION,
                "capabilities": self._capabilities(),
                "clientInfo": self._identity,
            },
            cancellable=False,
        )
        version = str(result.get("protocolVersion"))
        if version not in HANDSHAKE_PROTOCOL_VERSIONS:
            raise MCPError(
                types.UNSUPPORTED_PROTOCOL_VERSION,
                f"It speaks the unknown protocol {version[:40]!r}",
            )
        await self._exchange.notify("notifications/initialized")
        return describe("handshake", version, result.get("serverInfo"), result)

    def _stamped(
        self, params: Mapping[str, Any] | None, call: Call | None
    ) -> Mapping[str, Any] | None:
        """Add what every request of the modern era must carry."""
        if self.peer.era == "handshake":
            return params
        meta: dict[str, Any] = {
            **as_object((params or {}).get("_meta")),
            types.PROTOCOL_VERSION_META_KEY: self.peer.protocol_version,
            types.CLIENT_INFO_META_KEY: self._identity,
            types.CLIENT_CAPABILITIES_META_KEY: call.caller.capabilities if call else {},
        }
        if call and (level := call.log_level):
            meta[types.LOG_LEVEL_META_KEY] = level
        return {**(params or {}), "_meta": meta}

    def _headers(self, method: str, params: Mapping[str, Any] | None) -> dict[str, str]:
        """Return what Streamable HTTP repeats of a request in its headers."""
        headers = {"mcp-protocol-version": self.peer.protocol_version}
        if self.peer.era == "modern":
            headers["mcp-method"] = method
            name = (params or {}).get(NAME_BEARING_METHODS.get(method, ""))
            if isinstance(name, str):
                headers["mcp-name"] = encode_header_value(name)
            if method == "tools/call" and name in self.mirrored:
                arguments = as_object((params or {}).get("arguments"))
                headers |= mcp_param_headers(self.mirrored[name], arguments)
        return headers

    def _end(self) -> None:
        self.ended.set()
        self.news.set()

    def hear(
        self, related: types.RequestId | None, method: str, params: Mapping[str, Any] | None
    ) -> Rest | None:
        """Take a notification in the order it came; a storm of changes is one change."""
        if (call := self._concerned(related, method, params)) is not None:
            # One task for each call passes on what is heard: a storm must not become as many.
            return None if call.hear(method, params or {}) else call.deliver
        if (kind := _LIST_CHANGED.get(method)) is not None:
            self._changed(kind)
        elif method == "notifications/resources/updated":
            self.on_updated(str((params or {}).get("uri")))
        elif method == "notifications/subscriptions/acknowledged":
            self.listening.acknowledged(params or {})
        elif method == "notifications/elicitation/complete":
            self.on_completed(params or {})
        elif method == "notifications/message" and self._in_flight.is_idle:
            self.on_logged(params or {})
        return None

    def _concerned(
        self, related: types.RequestId | None, method: str, params: Mapping[str, Any] | None
    ) -> Call | None:
        """Return the call that a notification belongs to, if it belongs to one."""
        if method == "notifications/progress":
            return self._in_flight.progressing((params or {}).get("progressToken"))
        if method == "notifications/message":
            return self._in_flight.meant(related)
        return None

    def _changed(self, *kinds: str) -> None:
        self.stale.update(kinds)
        self.news.set()

    def _missed(self) -> None:
        """Take every list to have changed while nobody told."""
        self._changed(*(kind for kind in KINDS if kind in self.peer.capabilities))


@asynccontextmanager
async def open_link(
    connect: Connect,
    *,
    identity: JsonObject,
    capabilities: Declare,
    era: Era | None,
    answer: Answer,
) -> AsyncGenerator[Link, None]:
    """Open a link to one server and keep it for the length of the block.

    Raises:
        LinkLostError: The connection ended while something was asked in the block.
        MCPError: The server answered with an error.
    """
    async with connect() as transport:
        link = Link(transport, identity, capabilities)
        async with anyio.create_task_group() as group:
            await group.start(link.run, answer)
            try:
                await link.negotiate(era)
                if link.peer.era == "modern":
                    link.attend()
                    group.start_soon(link.listen)
                    await link.listening.settled()
                yield link
            except ConnectionClosedError as error:
                await link.end()
                raise LinkLostError(transport.describe_end()) from error
            finally:
                group.cancel_scope.cancel()


async def _refuse(
    _call: Call | None, method: str, _params: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Answer a server before anybody is there who could."""
    raise MCPError(types.METHOD_NOT_FOUND, f"`{method}` is not served here")
