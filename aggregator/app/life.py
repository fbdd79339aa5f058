"""Puts the rooms together: the order of `async with` is the order of start and stop."""

import logging
import os
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import anyio
import anyio.abc
from anyio import to_thread
from mcp.server.runner import serve_dual_era_loop, serve_loop
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher

from aggregator import __version__
from aggregator.basics import garbage
from aggregator.basics.shutdown_notice import ShutdownNotice
from aggregator.basics.signals import Signal
from aggregator.config import Config
from aggregator.downstream.login.home import login_home
from aggregator.downstream.processors import processors, share_of_one
from aggregator.downstream.reach import way_to
from aggregator.downstream.start_queue import PLACES_EACH, StartQueue
from aggregator.downstream.stdio.watchdog import Watchdog
from aggregator.entry.ahead import Herald, Lead
from aggregator.entry.shim import has_terminal
from aggregator.fleet.approving import lock_path
from aggregator.fleet.fleet import Fleet
from aggregator.fleet.last_known import open_last_known
from aggregator.fleet.reloading import Foresee, Reloading, foresee_nothing
from aggregator.fleet.remembering import save_news
from aggregator.memory import open_memory, state_path
from aggregator.records.events import Stream
from aggregator.records.keeping import keep_stats, keep_to_ourselves, stats_path
from aggregator.records.learning import keep_learning
from aggregator.records.tracing import keep_sending, open_tracer
from aggregator.search.hits import Experience
from aggregator.search.semantic.meaning import open_meaning
from aggregator.upstream.client_memory import ClientMemory
from aggregator.upstream.connected_clients import ConnectedClients
from aggregator.upstream.keeping import Keeping
from aggregator.upstream.opening import Opening
from aggregator.upstream.replica import ALONE, Replica
from aggregator.upstream.server import Upstream
from aggregator.upstream.stdio import ClientWriter, claimed, standard_streams
from aggregator.upstream.streamed import Streamed
from aggregator.upstream.takeover import Takeover
from aggregator.upstream.tracing import serving
from aggregator.upstream.visitor import Visitor

logger = logging.getLogger(__name__)

IDENTITY = {"name": "mcp-tool-aggregator", "version": __version__}
"""What servers are told of us."""

HEAD_START = 0.3
"""Seconds that a client has to fetch its first list before many servers want the processor."""

SILENCE = 0.5
"""Seconds after which whoever stops us wonders what is waited for."""

REFRESH_DELAY = 10.0
"""Seconds after a client's first question before servers are started for nobody's sake."""

WARM_UP_DELAY = 2.0
"""Seconds after which what the first misspelt query needs is loaded, if none has come."""


Expect = Callable[[Config], None]
"""Told of each later configuration before it is applied."""


class Orders:
    """What the world outside may ask of us by signals."""

    def __init__(
        self,
        expect: Expect = lambda _config: None,
        foresee: Foresee = foresee_nothing,
        say_when_told: Callable[[str], None] | None = None,
    ) -> None:
        self.stop = anyio.Event()
        self.shutdown_notice = ShutdownNotice(logger.warning, say_when_told)
        self.expect = expect
        self.foresee = foresee
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

    async def serve(
        self, upstream: Upstream, stop: anyio.Event, shutdown_notice: ShutdownNotice, /
    ) -> None:
        """Serve clients until told to stop; say meanwhile what that waits for."""
        ...


async def serve_standard_streams(
    config: Config,
    variables: Mapping[str, str],
    expect: Expect = lambda _config: None,
    herald: Herald | None = None,
    profile: str | None = None,
    *,
    say_when_told: Callable[[str], None] | None = None,
) -> None:
    """Serve one client on our standard streams until it leaves or we are told to stop.

    `herald` is whoever answers it until then, and `profile` what it is to see. What is waited for
    at the end is logged, but `say_when_told` tells whoever stops us by a signal.
    """
    orders = Orders(expect, say_when_told=say_when_told)
    lead = Lead() if herald is None else herald.take_over()
    takeover, opening = Takeover(lead), Opening()
    keeping = Keeping(opening, lead.basis, config, variables)
    with claimed() as (stdin, stdout):
        async with anyio.create_task_group() as group:
            await group.start(_heed_signals, orders)
            async with (
                running_fleet(config, variables, orders) as server,
                standard_streams(
                    stdin,
                    stdout,
                    stop=orders.stop,
                    takeover=takeover,
                    opening=opening,
                    shutdown_notice=orders.shutdown_notice,
                ) as (reader, writer),
                keeping.kept(server.fleet.changed.wait, server.again),
            ):
                server.acknowledge(takeover.lists)
                modern = await reader.opens_modern()
                visitor = profile and Visitor.of_process(profile)
                await serve_client(server, (reader, writer), visitor or None, opens_modern=modern)
            group.cancel_scope.cancel()


async def serve_http(
    config: Config,
    variables: Mapping[str, str],
    door: Door,
    expect: Expect = lambda _config: None,
    replica: Replica = ALONE,
) -> None:
    """Serve all clients that come in by a door until we are told to stop."""
    orders = Orders(expect)
    garbage.give_back()
    async with anyio.create_task_group() as group:
        await group.start(_heed_signals, orders)
        async with running_fleet(
            config, variables, orders, is_shared=True, replica=replica
        ) as server:
            await door.serve(server, orders.stop, orders.shutdown_notice)
        group.cancel_scope.cancel()


@asynccontextmanager
async def running_fleet(
    config: Config,
    variables: Mapping[str, str],
    orders: Orders,
    *,
    is_shared: bool = False,
    replica: Replica = ALONE,
) -> AsyncGenerator[Upstream, None]:
    """Run all servers and whatever tells clients of them, for the length of the block.

    `variables` are those that the configuration was read with; `is_shared` says whether several
    clients are to be expected.
    """
    async with (
        _shutdown_notice() as shutdown_notice,
        Watchdog() as watchdog,
        anyio.create_task_group() as group,
    ):
        settings = config.settings
        news = Signal()
        memory = open_memory(variables, enabled=settings.state, on_news=news.send)
        state = state_path(variables) if settings.state else None
        # To forget them is nothing that `state: false` asks for: they are not what was learned.
        logins = login_home(variables, config.path, replica.shared_renewal)
        meaning = open_meaning(state, wanted=settings.semantic)
        connected = ConnectedClients(is_shared=is_shared)
        last_known = open_last_known(state_path(variables), config)
        # Of the process, and not of one client: whoever exports reads nothing else.
        tracer = open_tracer(os.environ)
        fleet = Fleet(
            config,
            connect=lambda server: way_to(server, watchdog, logins),
            identity=IDENTITY,
            memory=memory,
            meaning=meaning,
            events=connected,
            lock=lock_path(config.path),
            last_known=last_known,
            stream=Stream(tracer),
            start_queue=StartQueue(PLACES_EACH * processors(), share_of_one, is_open=False),
            is_shared=is_shared,
        )
        if settings.audit is not None:
            # Only who wants it waits for it to be loaded.
            from aggregator.records.auditing import Auditing  # noqa: PLC0415 - see above

            auditing = Auditing(settings.audit, fleet.redact, fleet.report_trouble)
            await auditing.prepare()
            group.start_soon(auditing.keep, fleet.stream)
        client_memory = ClientMemory(memory, config.path)
        server = Upstream(fleet, connected, client_memory, logins, replica)
        if tracer is not None:
            server.middleware.insert(0, serving(fleet, tracer))
            group.start_soon(keep_sending, tracer)
        group.start_soon(save_news, memory, news)
        group.start_soon(last_known.keep)
        if state is not None and settings.stats:
            share = keep_to_ourselves if replica.post is None else replica.post.counted
            directory, redact = stats_path(state), fleet.redact
            group.start_soon(keep_stats, fleet.stream, directory, config.path, redact, share)
            group.start_soon(_learn, fleet, stats_path(state), config.path)
        if settings.tokens is not None:
            # And so is this.
            from aggregator.fleet.counting import open_counting  # noqa: PLC0415 - see above

            counting = open_counting(settings.tokens, memory)
            counting.recall(fleet)
            group.start_soon(_count_after_first_list, counting.keep, fleet, server)
        group.start_soon(_refresh_after_first_list, fleet, server)
        group.start_soon(meaning.run)
        group.start_soon(fleet.run)
        group.start_soon(fleet.approving.follow, server.asked, fleet.compare_again)
        group.start_soon(_hasten_after_first_list, fleet, server)
        group.start_soon(server.announce_changes)
        group.start_soon(_put_aside_what_stays, fleet)
        reloading = Reloading(fleet, variables, orders.expect, orders.foresee)
        group.start_soon(_reload_when_told, reloading, orders)
        if config.settings.watch:
            group.start_soon(reloading.follow)
        yield server
        shutdown_notice.start_soon(_tell_of_the_rest, fleet, orders.shutdown_notice)
        group.cancel_scope.cancel()


@asynccontextmanager
async def _shutdown_notice() -> AsyncGenerator[anyio.abc.TaskGroup, None]:
    """Yield a place for tasks that go on while servers end, and not for longer."""
    async with anyio.create_task_group() as group:
        yield group
        group.cancel_scope.cancel()


async def _tell_of_the_rest(fleet: Fleet, shutdown_notice: ShutdownNotice) -> None:
    """Say which servers keep whoever stops us waiting."""
    await anyio.sleep(SILENCE)
    if names := fleet.living:
        shutdown_notice.wait_for_servers(names)


async def _reload_when_told(reloading: Reloading, orders: Orders) -> None:
    while True:
        await orders.until_reload()
        await reloading.renew()


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
    visitor: Visitor | None = None,
    *,
    opens_modern: bool | None = None,
) -> None:
    """Serve one client on a pair of the SDK's streams until it leaves.

    Whom it is, is to be said where it is not the only one. Where it is known whether its first
    request is of the modern era, the SDK need not relay every message through a stream that
    finds it out.
    """
    options = server.create_initialization_options()
    # A list that grows with each search is legal only where there are sessions.
    needs_session = server.grows_lists(visitor and visitor.profile)
    try:
        if opens_modern is None and not needs_session:
            await serve_dual_era_loop(
                server, *streams, lifespan_state=visitor, init_options=options
            )
            return
        async with _without_plain_calls(server, streams, visitor) as (read, write):
            if opens_modern and not needs_session:
                await Streamed(server, JSONRPCDispatcher(read, write), visitor).run()
            else:
                await serve_loop(server, read, write, lifespan_state=visitor, init_options=options)
    finally:
        if visitor is not None:
            server.change_listeners.forget(visitor)


@asynccontextmanager
async def _without_plain_calls(
    server: Upstream, streams: tuple[Any, Any], visitor: Visitor | None
) -> AsyncGenerator[tuple[Any, Any], None]:
    """Have calls be sent on past the SDK where streams are our own."""
    read, write = streams
    if not isinstance(write, ClientWriter):
        yield read, write
        return
    async with server.stream_fast_path(read, write, visitor) as rest:
        yield rest, write


async def _hasten_after_first_list(fleet: Fleet, server: Upstream) -> None:
    """Let one server after the other start until the client's first question is answered."""
    with anyio.move_on_after(HEAD_START):
        await server.asked.wait()
    fleet.hasten()
    await anyio.sleep(WARM_UP_DELAY)
    garbage.give_back()
    # A thread or a file that cannot be had now is no reason to end: the first search tries again.
    with suppress(OSError, RuntimeError, ImportError):
        await to_thread.run_sync(_prepare_for_searches)


def _prepare_for_searches() -> None:
    # The first list does not wait for what only searches take.
    from aggregator.search.index import warm_up  # noqa: PLC0415 - see above

    warm_up()
    import_module("aggregator.upstream.searching")


async def _learn(fleet: Fleet, stats: Path, config: Path) -> None:
    """Have the index follow what is called; there is none before it is needed first."""

    def teach(learned: Experience) -> None:
        fleet.index.learn(learned)

    await keep_learning(stats, config, teach)


async def _refresh_after_first_list(fleet: Fleet, server: Upstream) -> None:
    """See what servers offer that rest, once there is a client that may want it."""
    await server.asked.wait()
    await anyio.sleep(REFRESH_DELAY)
    await fleet.refresh()


async def _count_after_first_list(
    keep: Callable[[Fleet], Awaitable[None]], fleet: Fleet, server: Upstream
) -> None:
    """Have it counted what definitions cost, once the client has what it waits for."""
    await server.asked.wait()
    await keep(fleet)


async def _heed_signals(
    orders: Orders, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    """Stop when told to; when told twice, leave it to the watchdog to clean up."""
    # Who is started with `nohup` is to outlive the terminal.
    follows_terminal = has_terminal() and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
        task_status.started()
        async for number in signals:
            is_hung_up = follows_terminal and not has_terminal()
            if number == signal.SIGHUP and not is_hung_up:
                orders.reload()
            elif number == signal.SIGHUP:
                # The system may say so, and the shell as well.
                logger.info("the terminal is closed: stopping")
                orders.stop.set()
            elif orders.stop.is_set():
                os._exit(128 + number)
            else:
                logger.info("%s: stopping", signal.Signals(number).name)
                orders.shutdown_notice.told_by(number)
                orders.stop.set()
