"""Puts the rooms together: the order of `async with` is the order of start and stop."""

import logging
import os
import signal
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Protocol

import anyio
import anyio.abc
from anyio import to_thread
from mcp.server.runner import serve_loop

from aggregator import __version__, garbage
from aggregator.config import Config
from aggregator.downstream.reach import way_to
from aggregator.downstream.stdio.watchdog import Watchdog
from aggregator.fleet.fleet import Fleet
from aggregator.fleet.reloading import Reloading
from aggregator.fleet.remembering import save_news
from aggregator.memory import open_memory, state_path
from aggregator.search.semantic.meaning import open_meaning
from aggregator.signals import Signal
from aggregator.upstream.audience import Audience
from aggregator.upstream.recollection import Recollection
from aggregator.upstream.server import Upstream
from aggregator.upstream.stdio import claimed, standard_streams

logger = logging.getLogger(__name__)

IDENTITY = {"name": "mcp-tool-aggregator", "version": __version__}
"""What servers are told of us."""

HEAD_START = 0.3
"""Seconds that a client has to fetch its first list before the servers compete for the machine."""

WARM_UP_DELAY = 2.0
"""Seconds after which what the first misspelt query needs is loaded, if none has come."""


Expect = Callable[[Config], None]
"""Told of each later configuration before it is applied."""


class Orders:
    """What the world outside may ask of us by signals."""

    def __init__(self, expect: Expect = lambda _config: None) -> None:
        self.stop = anyio.Event()
        self.expect = expect
        self._is_reload_due = False
        self._reload = Signal()

    def reload(self) -> None:
        """Have the file read again."""
        self._is_reload_due = True
        self._reload.send()

    async def until_reload(self) -> None:
        """Wait until the file is to be read again."""
        while not self._is_reload_due:
            await self._reload.wait()
        self._is_reload_due = False


class Door(Protocol):
    """Where clients come in that do not come by our standard streams."""

    async def serve(self, upstream: Upstream, stop: anyio.Event, /) -> None:
        """Serve clients until told to stop."""
        ...


async def serve_standard_streams(
    config: Config, variables: Mapping[str, str], expect: Expect = lambda _config: None
) -> None:
    """Serve one client on our standard streams until it leaves or we are told to stop."""
    orders = Orders(expect)
    with claimed() as (stdin, stdout):
        async with anyio.create_task_group() as group:
            await group.start(_heed_signals, orders)
            async with (
                running_fleet(config, variables, orders) as server,
                standard_streams(stdin, stdout, stop=orders.stop) as (reader, writer),
            ):
                modern = await reader.opens_modern()
                await serve_client(server, (reader, writer), handshake_only=not modern)
            group.cancel_scope.cancel()


async def serve_http(
    config: Config,
    variables: Mapping[str, str],
    door: Door,
    expect: Expect = lambda _config: None,
) -> None:
    """Serve all clients that come in by a door until we are told to stop."""
    orders = Orders(expect)
    async with anyio.create_task_group() as group:
        await group.start(_heed_signals, orders)
        async with running_fleet(config, variables, orders) as server:
            await door.serve(server, orders.stop)
        group.cancel_scope.cancel()


@asynccontextmanager
async def running_fleet(
    config: Config, variables: Mapping[str, str], orders: Orders
) -> AsyncGenerator[Upstream, None]:
    """Run all servers and whatever tells clients of them, for the length of the block.

    `variables` are those that the configuration was read with.
    """
    async with Watchdog() as watchdog, anyio.create_task_group() as group:
        settings = config.settings
        news = Signal()
        memory = open_memory(variables, enabled=settings.state, on_news=news.send)
        state = state_path(variables) if settings.state else None
        meaning = open_meaning(state, wanted=settings.semantic)
        audience = Audience()
        fleet = Fleet(
            config,
            connect=lambda server: way_to(server, watchdog),
            identity=IDENTITY,
            memory=memory,
            meaning=meaning,
            events=audience,
        )
        recollection = Recollection(memory, config.path)
        server = Upstream(fleet, audience, recollection)
        group.start_soon(save_news, memory, news)
        group.start_soon(meaning.run)
        group.start_soon(_run_after_first_list, fleet, server)
        group.start_soon(server.announce_changes)
        group.start_soon(_put_aside_what_stays, fleet)
        reloading = Reloading(fleet, variables, orders.expect)
        group.start_soon(_reload_when_told, reloading, orders)
        if config.settings.watch:
            group.start_soon(reloading.follow)
        yield server
        group.cancel_scope.cancel()


async def _reload_when_told(reloading: Reloading, orders: Orders) -> None:
    while True:
        await orders.until_reload()
        reloading.reload()


async def _put_aside_what_stays(fleet: Fleet) -> None:
    """Keep the catalog out of the search for garbage as it grows."""
    known = 0
    while True:
        await fleet.changed.wait()
        if len(fleet.now.catalog.entries) >= known + garbage.GROWTH:
            known = len(fleet.now.catalog.entries)
            garbage.put_aside()


async def serve_client(
    server: Upstream,
    streams: tuple[Any, Any],  # the SDK names their types only for itself
    *,
    handshake_only: bool = False,
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
