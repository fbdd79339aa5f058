"""Small real MCP servers and clients to connect to, and ways to connect late, never, or twice."""

from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import mcp_types as types
from mcp import Client
from mcp.server import NotificationOptions, Server, ServerRequestContext
from mcp.server.models import InitializationOptions
from mcp.server.runner import serve_loop
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.memory import create_client_server_memory_streams

from aggregator.app.life import IDENTITY
from aggregator.basics.eras import Era
from aggregator.basics.signals import Signal
from aggregator.catalog import Failed, Ready, ServerState
from aggregator.config import Config, ServerConfig, Settings
from aggregator.downstream.login.home import Home
from aggregator.downstream.transport import Connect, Transport
from aggregator.errors import ERROR_META
from aggregator.fleet.fleet import Fleet
from aggregator.fleet.last_known import LastKnown
from aggregator.memory import Memory, NoMemory
from aggregator.names import ServerName, prefixes
from aggregator.upstream.client_memory import ClientMemory
from aggregator.upstream.connected_clients import ConnectedClients
from aggregator.upstream.replica import ALONE, Replica
from aggregator.upstream.server import Upstream
from aggregator.upstream.visitor import Visitor
from tests.patience import patience
from tests.transports import Severable, StreamTransport
from tests.ways import way

Context = ServerRequestContext[Any, Any]

MODES: dict[Era, str] = {"handshake": "legacy", "modern": "auto"}
"""How the SDK's client is told to open each era."""

ERAS: tuple[Era, ...] = ("handshake", "modern")


class Peer(Server[Any]):
    """A server whose tools can be changed while it runs, and that counts what it is asked."""

    def __init__(self, *tools: str, **definitions: Any) -> None:
        self.bus = InMemorySubscriptionBus()
        super().__init__(
            "peer",
            version="1.0",
            on_subscriptions_listen=ListenHandler(self.bus),
        )
        self.add_request_handler("tools/list", types.PaginatedRequestParams, self._list)
        self.add_request_handler("tools/call", types.CallToolRequestParams, self._call)
        self.tools: dict[str, dict[str, Any]] = {
            name: {"description": f"Does {name}"} for name in tools
        } | definitions
        self.calls: list[tuple[str, Mapping[str, Any]]] = []
        self.lists = 0
        self.cancelled = anyio.Event()
        self.blocked = anyio.Event()
        self._sessions: list[Any] = []

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        return super().create_initialization_options(
            notification_options or NotificationOptions(tools_changed=True),
            experimental_capabilities,
            extensions,
        )

    async def change(self, **definitions: Any) -> None:
        """Replace tools and tell whoever listens, in the way of each era."""
        self.tools |= definitions
        await self.bus.publish(ToolsListChanged())
        for session in self._sessions:
            await session.send_tool_list_changed()

    async def _list(
        self, ctx: Context, _params: types.PaginatedRequestParams
    ) -> types.ListToolsResult:
        self.lists += 1
        self._sessions = [ctx.session]
        empty: dict[str, Any] = {"type": "object", "properties": {}}
        return types.ListToolsResult(
            tools=[
                types.Tool.model_validate({"name": name, "inputSchema": empty, **definition})
                for name, definition in self.tools.items()
            ]
        )

    async def _call(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        arguments = params.arguments or {}
        self.calls.append((params.name, arguments))
        if params.name == "block":
            self.blocked.set()
            try:
                await anyio.sleep_forever()
            finally:
                self.cancelled.set()
        if params.name == "count":
            for step in range(3):
                await ctx.session.report_progress(step, 3, f"step {step}")
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=f"{params.name}: {arguments}")]
        )


def connect_to(server: Server[Any], era: Era = "modern") -> Connect:
    """Connect to a server in memory; one of the handshake era does not know `server/discover`."""

    @asynccontextmanager
    async def connect() -> AsyncGenerator[Transport, None]:
        async with (
            create_client_server_memory_streams() as (ours, theirs),
            anyio.create_task_group() as group,
        ):
            group.start_soon(_run, server, theirs, era)
            yield StreamTransport(ours)
            group.cancel_scope.cancel()

    return connect


def afresh(make: Callable[[], Server[Any]], era: Era = "modern") -> Connect:
    """Connect to another server in memory each time, as a process that is started is another."""

    @asynccontextmanager
    async def connect() -> AsyncGenerator[Transport, None]:
        async with connect_to(make(), era)() as transport:
            yield transport

    return connect


def late(connect: Connect, seconds: float) -> Connect:
    """Connect only after a while."""

    @asynccontextmanager
    async def connect_late() -> AsyncGenerator[Transport, None]:
        await anyio.sleep(seconds)
        async with connect() as transport:
            yield transport

    return connect_late


def never() -> Connect:
    """Hang for ever."""

    @asynccontextmanager
    async def hang() -> AsyncGenerator[Transport, None]:
        await anyio.sleep_forever()
        yield StreamTransport(())

    return hang


def failing(error: Exception) -> Connect:
    """Fail every time."""

    @asynccontextmanager
    async def fail() -> AsyncGenerator[Transport, None]:
        raise error
        yield StreamTransport(())

    return fail


class Mortal:
    """A way to a server that can be cut, and that counts how often it was taken."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._latest: Severable | None = None
        self.opened: list[float] = []

    @asynccontextmanager
    async def __call__(self) -> AsyncGenerator[Transport, None]:
        self.opened.append(anyio.current_time())
        async with self._connect() as transport:
            self._latest = Severable(transport)
            yield self._latest

    def cut(self) -> None:
        if self._latest is not None:
            self._latest.cut()


async def _run(server: Server[Any], streams: Any, era: Era) -> None:
    read, write = streams
    options = server.create_initialization_options()
    if era == "modern":
        await server.run(read, write, options)
    else:
        await serve_loop(server, read, write, lifespan_state={}, init_options=options)


def configured(names: Mapping[str, Mapping[str, Any]], settings: Settings | None = None) -> Config:
    """Make the configuration of servers that are connected to by other means."""
    prefix = prefixes(list(names))
    servers = {
        name: replace(ServerConfig(name, prefix[name]), **options)
        for name, options in ((ServerName(name), options) for name, options in names.items())
    }
    return Config(Path("servers.yaml"), servers, settings or Settings())


@asynccontextmanager
async def aggregating(
    servers: Mapping[str, Connect],
    settings: Settings | None = None,
    memory: Memory | None = None,
    without: Collection[str] = (),
    *,
    is_shared: bool = False,
    last_known: LastKnown | None = None,
    logins: Home | None = None,
    replica: Replica = ALONE,
    **options: Mapping[str, Any],
) -> AsyncGenerator[Upstream, None]:
    """Run the aggregator in front of servers, but for some that only a later configuration has.

    `options` are those of single servers.
    """
    named = [name for name in servers if name not in without]
    config = configured({name: options.get(name, {}) for name in named}, settings)
    is_shared = is_shared or way().is_shared
    connected = ConnectedClients(is_shared=is_shared)
    fleet = Fleet(
        config,
        connect=lambda server: servers[server.name],
        identity=IDENTITY,
        jitter=lambda: 1.0,
        memory=memory,
        events=connected,
        last_known=last_known,
        is_shared=is_shared,
    )
    client_memory = ClientMemory(memory or NoMemory(), config.path)
    upstream = Upstream(fleet, connected, client_memory, logins, replica)
    async with anyio.create_task_group() as group:
        group.start_soon(fleet.run)
        group.start_soon(upstream.announce_changes)
        async with way().open(upstream):
            yield upstream
        group.cancel_scope.cancel()


def visiting(
    upstream: Upstream, era: Era, visitor: Visitor | None = None, **options: Any
) -> AbstractAsyncContextManager[Client]:
    """Be a client of the aggregator, on a stream as over stdio."""
    return Client(way().streams(upstream, visitor), mode=MODES[era], **options)


def text_of(result: types.CallToolResult) -> str:
    """Return what a model reads of a result."""
    return "\n".join(block.text for block in result.content if isinstance(block, types.TextContent))


def error_of(result: types.CallToolResult) -> Mapping[str, str]:
    """Return what a program reads of an error of ours; nothing if a result is none."""
    return (result.meta or {}).get(ERROR_META, {})


async def until(condition: Callable[[], bool], changed: Callable[[], Signal | anyio.Event]) -> None:
    """Wait until something holds that can only change when a signal is sent."""
    with anyio.fail_after(patience()):
        while not condition():
            await changed().wait()


async def ready(upstream: Upstream) -> None:
    """Wait until no server is pending, and all that they offer is known."""
    fleet = upstream.fleet

    def is_known(state: ServerState) -> bool:
        return isinstance(state, Failed) or (isinstance(state, Ready) and not state.offers.unlisted)

    await until(
        lambda: all(map(is_known, fleet.now.catalog.servers.values())), lambda: fleet.changed
    )


async def keep_listening(
    client: Client, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    """Hold a modern client's stream of changes open; its message handler hears them."""
    async with client.listen(tools_list_changed=True) as events:
        task_status.started()
        async for _event in events:
            pass
