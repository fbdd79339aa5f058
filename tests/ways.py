"""How a client of a story comes to the aggregator: in this process, or through a hub.

A story does not say; whoever runs it does. Through a hub, a real client starts a real process that
hands its streams to a real hub, which serves it from the story's own servers. On the virtual clock
there is no process to wait for: there its descriptors are handed over from within.
"""

import json
import os
import socket
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Literal

import anyio
import trio
from mcp import StdioServerParameters, stdio_client
from mcp.shared.memory import create_client_server_memory_streams
from trio.testing import MockClock

from aggregator.app.hub.connection import HubConnection
from aggregator.app.hub.hello import Hello
from aggregator.app.hub.hub import Hub
from aggregator.app.hub.session import Session
from aggregator.app.life import serve_client
from aggregator.entry.hub_socket import open_hub_socket
from aggregator.entry.shim import BEGUN, SERVE, begin
from aggregator.jsonrpc.decoding import Noise
from aggregator.jsonrpc.pipes import MessageReader, MessageWriter
from aggregator.upstream.server import Upstream
from aggregator.upstream.visitor import Visitor
from tests.app.hub.hub_setup import PROGRAM
from tests.patience import PATIENCE

MAX_BYTES = 1 << 26

WayName = Literal["in process", "hub"]
WAYS: tuple[WayName, ...] = ("in process", "hub")


class InProcess:
    """A client is served where it is."""

    is_shared = False

    @asynccontextmanager
    async def open(self, _upstream: Upstream) -> AsyncGenerator[None, None]:
        """Let clients come for the length of the block."""
        yield

    @asynccontextmanager
    async def streams(
        self, upstream: Upstream, visitor: Visitor | None = None
    ) -> AsyncGenerator[Any, None]:
        """Yield what a client reads from and writes to."""
        async with (
            create_client_server_memory_streams() as (ours, theirs),
            anyio.create_task_group() as group,
        ):
            group.start_soon(serve_client, upstream, theirs, visitor)
            yield ours
            group.cancel_scope.cancel()


class ThroughHub:
    """Clients are served by a hub, each on descriptors that were handed over."""

    is_shared = True

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._numbers = count(1)
        self._places: dict[int, Path] = {}

    @asynccontextmanager
    async def open(self, upstream: Upstream) -> AsyncGenerator[None, None]:
        """Have a hub with these servers for the length of the block."""
        if _is_virtual():
            yield
            return
        place = self._directory / str(next(self._numbers))
        place.mkdir(mode=0o700)
        profiles = {
            name: dict[str, object]() for name in upstream.fleet.now.config.settings.profiles
        }
        written = json.dumps({"servers": {}, "profiles": profiles})
        (place / "servers.yaml").write_text(written, encoding="utf-8")
        hub_socket = open_hub_socket(_variables(place))
        lock = hub_socket.lock()
        assert lock is not None

        @asynccontextmanager
        async def launch(*_words: object, **_options: object) -> AsyncGenerator[Upstream, None]:
            yield upstream

        hub = Hub(hub_socket, lambda _config: None, launch)
        self._places[id(upstream)] = place
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(hub.run, lock)
                yield
                hub.stop()
        finally:
            del self._places[id(upstream)]
            hub_socket.close()

    @asynccontextmanager
    async def streams(
        self, upstream: Upstream, visitor: Visitor | None = None
    ) -> AsyncGenerator[Any, None]:
        """Yield what a client reads from and writes to."""
        number = next(self._numbers)
        if _is_virtual():
            whose = visitor or Visitor.of_process()
            async with _handed_over(upstream, whose, number) as streams:
                yield streams
            return
        place = self._places[id(upstream)]
        words = ["-c", PROGRAM.format(patience=10 * PATIENCE), "serve", "--shared"]
        words += ["--config", str(place / "servers.yaml")]
        if visitor is not None and visitor.profile is not None:
            words += ["--profile", visitor.profile]
        program = StdioServerParameters(command=sys.executable, args=words, env=_variables(place))
        with (place / "errors").open("a+") as errors:
            async with stdio_client(program, errors) as streams:
                yield streams
            errors.seek(0)
            assert "not shared" not in errors.read()


Way = InProcess | ThroughHub
_current: list[Way] = [InProcess()]


def way() -> Way:
    """Return how clients come now."""
    return _current[-1]


@contextmanager
def coming(name: WayName, directory: Path) -> Generator[None, None, None]:
    """Have clients come in one way for the length of the block."""
    _current.append(ThroughHub(directory) if name == "hub" else InProcess())
    try:
        yield
    finally:
        _current.pop()


@asynccontextmanager
async def _handed_over(
    upstream: Upstream, visitor: Visitor, number: int
) -> AsyncGenerator[Any, None]:
    """Serve a client on pipes as a hub does, once they have come by a socket as from a client."""
    asked, answered = os.pipe(), os.pipe()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    shim, connection = socket.socketpair()
    line = HubConnection(connection)
    connection.send(BEGUN)
    try:
        assert begin(shim, (asked[0], answered[1], nowhere))
        for each in (asked[0], answered[1], nowhere):
            os.close(each)
        await line.take_over()
        session = Session(number, _hello(visitor), line, visitor.process)
        async with anyio.create_task_group() as group:
            group.start_soon(_serve, session, line, upstream)
            async with piped(answered[0], asked[1]) as streams:
                yield streams
            shim.close()
    finally:
        shim.close()
        line.close()


async def _serve(session: Session, line: HubConnection, upstream: Upstream) -> None:
    await session.serve(upstream, lambda: None)
    line.let_go()


@asynccontextmanager
async def piped(read: int, write: int) -> AsyncGenerator[Any, None]:
    """Be at the client's end of two pipes."""

    async def leave() -> None:
        """Wait for nobody."""

    os.set_blocking(read, False)
    os.set_blocking(write, False)
    with os.fdopen(write, "wb", buffering=0) as pipe, os.fdopen(read, "rb", buffering=0):
        writer = MessageWriter(pipe)
        reader = MessageReader(read, MAX_BYTES, on_noise=_fail, on_end=leave)
        async with anyio.create_task_group() as group:
            group.start_soon(writer.run)
            yield reader, writer
            reader.end()
            writer.close()
            group.cancel_scope.cancel()


def _fail(noise: Noise) -> None:
    raise AssertionError(noise)


def _hello(visitor: Visitor) -> Hello:
    return Hello(SERVE, "", "", "servers.yaml", visitor.directory, {})


def _variables(place: Path) -> dict[str, str]:
    return {**os.environ, "HOME": str(place), "XDG_RUNTIME_DIR": str(place)}


def _is_virtual() -> bool:
    try:
        return isinstance(trio.lowlevel.current_clock(), MockClock)
    except RuntimeError:
        return False
