"""Puts the rooms together: the order of `async with` is the order of start and stop."""

import logging
import os
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, Protocol

import anyio
import anyio.abc
from anyio import to_thread
from mcp.server.runner import serve_loop

from aggregator import __version__, garbage
from aggregator.config import Config, ServerConfig
from aggregator.downstream.link import Connect, Wire
from aggregator.downstream.stdio.child import Child, ChildSpec, open_child
from aggregator.downstream.stdio.watchdog import Watchdog
from aggregator.fleet.fleet import Fleet
from aggregator.fleet.reloading import Reloading
from aggregator.memory import open_memory, state_path
from aggregator.search.semantic.meaning import open_meaning
from aggregator.upstream import Recollection, Upstream, make_server
from aggregator.upstream.stdio import claimed, standard_streams

logger = logging.getLogger(__name__)

IDENTITY = {"name": "mcp-tool-aggregator", "version": __version__}
"""What servers are told of us."""

HEAD_START = 0.3
"""Seconds that a client has to fetch its first list before the servers compete for the machine."""

WARM_UP_DELAY = 2.0
"""Seconds after which what the first misspelt query needs is loaded, if none has come."""

STUCK_AFTER = 1.0
"""Seconds a server may leave unread what was written to it before a time-out means it hangs."""


Expect = Callable[[Config], None]
"""Told of each later configuration before it is applied."""


class Orders:
    """What the world outside may ask of us by signals."""

    def __init__(self, expect: Expect = lambda _config: None) -> None:
        self.stop = anyio.Event()
        self.expect = expect
        self.reload: Callable[[], None] = lambda: None


class Door(Protocol):
    """Where clients come in that do not come by our standard streams."""

    async def serve(self, upstream: Upstream, stop: anyio.Event, /) -> None:
        """Serve clients until told to stop."""
        ...


async def serve_standard_streams(config: Config, expect: Expect = lambda _config: None) -> None:
    """Serve one client on our standard streams until it leaves or we are told to stop."""
    orders = Orders(expect)
    with claimed() as (stdin, stdout):
        async with anyio.create_task_group() as group:
            await group.start(_heed_signals, orders)
            async with (
                running_fleet(config, orders) as server,
                standard_streams(stdin, stdout, stop=orders.stop) as (reader, writer),
            ):
                modern = await reader.opens_modern()
                await serve_client(server, (reader, writer), handshake_only=not modern)
            group.cancel_scope.cancel()


async def serve_http(config: Config, door: Door, expect: Expect = lambda _config: None) -> None:
    """Serve all clients that come in by a door until we are told to stop."""
    orders = Orders(expect)
    async with anyio.create_task_group() as group:
        await group.start(_heed_signals, orders)
        async with running_fleet(config, orders) as server:
            await door.serve(server, orders.stop)
        group.cancel_scope.cancel()


@asynccontextmanager
async def running_fleet(config: Config, orders: Orders) -> AsyncGenerator[Upstream, None]:
    """Run all servers and whatever tells clients of them, for the length of the block."""
    async with Watchdog() as watchdog, anyio.create_task_group() as group:
        settings = config.settings
        memory = open_memory(os.environ, enabled=settings.state)
        state = state_path(os.environ) if settings.state else None
        meaning = open_meaning(state, wanted=settings.semantic)
        fleet = Fleet(
            config,
            connect=lambda server: way_to(server, watchdog),
            identity=IDENTITY,
            memory=memory,
            meaning=meaning,
        )
        recollection = Recollection(memory, config.path)
        server = make_server(fleet, recollection)
        group.start_soon(recollection.save_changes)
        group.start_soon(meaning.run)
        group.start_soon(_run_after_first_list, fleet, server)
        group.start_soon(server.announce_changes)
        group.start_soon(_put_aside_what_stays, fleet)
        reloading = Reloading(fleet, os.environ, orders.expect)
        orders.reload = reloading.reload
        if config.settings.watch:
            group.start_soon(reloading.follow)
        yield server
        group.cancel_scope.cancel()


async def _put_aside_what_stays(fleet: Fleet) -> None:
    """Keep the catalog out of the search for garbage as it grows."""
    known = 0
    while True:
        await fleet.changed.wait()
        if len(fleet.catalog.entries) >= known + garbage.GROWTH:
            known = len(fleet.catalog.entries)
            garbage.put_aside()


async def serve_client(
    server: Upstream, streams: tuple[Any, Any], *, handshake_only: bool = False
) -> None:
    """Serve one client on a pair of the SDK's streams until it leaves."""
    read, write = streams
    options = server.create_initialization_options()
    # A list that grows with each search is legal only where there are sessions. And where the
    # era is known, the SDK need not relay every message through a stream that finds it out.
    if handshake_only or server.grows_lists:
        await serve_loop(server, read, write, lifespan_state=None, init_options=options)
    else:
        await server.run(read, write, options)


def way_to(server: ServerConfig, watchdog: Watchdog) -> Connect:
    """Return how to connect to a server, by what its configuration names."""
    if server.type == "stdio":
        return child(server, watchdog)
    # Who has no servers over HTTP need not wait for what that takes.
    from aggregator.downstream.http.reach import reach  # noqa: PLC0415 - see above

    return reach(server)


def child(server: ServerConfig, watchdog: Watchdog) -> Connect:
    """Return how to start a server as a child process and talk to it over its pipes."""
    spec = ChildSpec(
        command=server.command or "",
        args=server.args,
        env=server.env,
        cwd=server.cwd,
        max_message_bytes=server.max_message_bytes,
    )

    def log(line: str) -> None:
        logger.info("%s: %s", server.name, line)

    @asynccontextmanager
    async def connect() -> AsyncGenerator[Wire, None]:
        async with open_child(spec, log=log, watchdog=watchdog) as process:
            yield Wire(
                process.streams,
                describe_end=process.describe_end,
                is_stuck=lambda: _is_stuck(process),
                last_words=process.stderr_tail,
            )

    return connect


def _is_stuck(process: Child) -> bool:
    since = process.write_blocked_since
    return since is not None and anyio.current_time() - since >= STUCK_AFTER


async def _run_after_first_list(fleet: Fleet, server: Upstream) -> None:
    """Answer the client's first questions before anything else wants the processor."""
    with anyio.move_on_after(HEAD_START):
        await server.listed.wait()
    async with anyio.create_task_group() as group:
        group.start_soon(fleet.run)
        await anyio.sleep(WARM_UP_DELAY)
        # The first list does not wait for what only searches take.
        from aggregator.search.index import warm_up  # noqa: PLC0415 - see above

        await to_thread.run_sync(warm_up)


async def _heed_signals(
    orders: Orders, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    """Stop when told to; when told twice, leave it to the watchdog to clean up."""
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
        task_status.started()
        async for number in signals:
            if number == signal.SIGHUP:
                orders.reload()
            elif orders.stop.is_set():
                os._exit(128 + number)
            else:
                logger.info("%s: stopping", signal.Signals(number).name)
                orders.stop.set()
