"""One server, one task: connect, list, watch, redial."""

import logging
import math
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

import anyio
from mcp.shared.exceptions import MCPError

from aggregator.catalog import Failed, Pending, Ready, ServerState
from aggregator.config import ServerConfig
from aggregator.downstream.exchange import REQUEST_FAILURES
from aggregator.downstream.failure import FAILURES, Loss, explain, in_words, most_telling
from aggregator.downstream.inflight import Call, Caller, Era, Patience
from aggregator.downstream.inventory import BESIDES, LISTING_PATIENCE, list_tools
from aggregator.downstream.link import EraUnclearError, Link, LinkLostError, open_link
from aggregator.downstream.questions import Questions
from aggregator.downstream.subscribing import Subscribing
from aggregator.downstream.supervision import Supervision
from aggregator.downstream.transport import (
    Connect,
    ConnectionClosedError,
    Transport,
    Undelivered,
    UndeliveredError,
)
from aggregator.errors import (
    BusyError,
    CallError,
    CallTimeoutError,
    ServerLostError,
    ServerUnavailableError,
    TurnedAwayError,
)
from aggregator.json import JsonObject
from aggregator.names import ServerName

logger = logging.getLogger(__name__)

Report = Callable[[ServerName, ServerState], None]
"""Takes note of a server's new state; must not block."""

RELIST_PAUSE = 1.0
"""Seconds between two listings of a server that keeps saying it changed."""
RELIST_PAUSE_MAX = 30.0
"""The same for a server whose listing turns out not to have changed."""
TIMEOUTS_TOLERATED = 3
"""Calls in a row that may time out before the server is taken to be stuck."""
REST = 0.5
"""Seconds between two attempts after a failure at the least, however many ask for the server."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a server is told of the world, and the world of it."""

    report: Report
    identity: JsonObject
    """What servers are told of us."""
    capabilities: Callable[[], JsonObject] = dict[str, Any]
    """What our clients can be asked, as far as we know by now."""
    on_updated: Callable[[ServerName, str], None] = lambda _server, _uri: None
    """Takes note that a server says a resource has changed; must not block."""
    on_logged: Callable[[ServerName, JsonObject], None] = lambda _server, _params: None
    """Takes note of a log message that belongs to no call; must not block."""
    recall_era: Callable[[ServerConfig], Era | None] = lambda _server: None
    """Returns the era that a server spoke last time."""
    note_era: Callable[[ServerConfig, Era], None] = lambda _server, _era: None


class Downstream:
    """One server: its connection, its state and the calls to it."""

    def __init__(
        self,
        server: ServerConfig,
        *,
        connect: Connect,
        jitter: Callable[[], float],
        around: Surroundings,
        watched: frozenset[str] = frozenset(),
    ) -> None:
        self._server = server
        self._connect = connect
        self._around = around
        self._questions = Questions(server.name)
        self._supervision = Supervision(jitter)
        self._era: Era | None = around.recall_era(server)
        self._subscribing = Subscribing(server, watched)
        self._link: Link | None = None
        self._transport: Transport | None = None
        self._woken = anyio.Event()
        self._slots = anyio.Semaphore(server.max_in_flight, fast_acquire=True)
        self._requests = 0
        self._idle: anyio.Event | None = None
        self._retired = False
        self._timeouts = 0
        self._reason: str | None = None
        self._last_words: tuple[str, ...] = ()

    @property
    def name(self) -> ServerName:
        """The server's name in servers.yaml."""
        return self._server.name

    async def run(self) -> None:
        """Keep the server connected for as long as this task lives."""
        while True:
            self._say(Pending(self._reason, anyio.current_time(), last_words=self._last_words))
            loss = await self._live()
            await self._recover(loss)

    def wake(self) -> None:
        """Cut short a wait for the next attempt, because somebody needs the server now."""
        self._woken.set()

    def silence(self) -> None:
        """Report nothing more, since somebody else has the name now, or nobody."""
        self._retired = True

    async def retire(self, patience: float) -> None:
        """Wait, within bounds, for the requests under way."""
        with anyio.move_on_after(patience):
            while self._requests:
                self._idle = self._idle or anyio.Event()
                await self._idle.wait()

    async def request(
        self, method: str, params: Mapping[str, Any], caller: Caller
    ) -> dict[str, Any]:
        """Send a client's request and return the result as it came.

        Raises:
            CallError: The request could not be completed.
            MCPError: The server answered with an error of its own.
        """
        link = self._link
        if link is None:
            raise ServerUnavailableError(self.name, self._reason)
        began = anyio.current_time()
        with anyio.CancelScope() as scope:
            patience = Patience(
                scope, between=self._server.call_timeout, altogether=self._server.max_call_time
            )
            async with self._slot():
                result = await self._ask(link, method, params, Call(caller, patience))
            self._timeouts = 0
            return result
        self._timed_out(link)
        raise CallTimeoutError(self.name, round(anyio.current_time() - began, 1))

    async def watch(self, uris: Collection[str]) -> None:
        """Be told when these resources change, and no others, also after a new connection.

        Raises:
            NotWatchedError: The server refuses some of them, or does not answer in time.
        """
        await self._subscribing.want(frozenset(uris), self._link)

    async def _ask(
        self, link: Link, method: str, params: Mapping[str, Any], call: Call
    ) -> dict[str, Any]:
        try:
            if call.caller.log_level is not None:
                await link.lower_level(call.caller.log_level)
            return await link.request(method, params, call=call)
        except ConnectionClosedError as error:
            await link.end()
            raise ServerLostError(self.name) from error
        except UndeliveredError as error:
            raise self._translated(error.undelivered) from error
        except MCPError as error:
            self._questions.asked_by(error, call.caller)
            raise

    def _translated(self, undone: Undelivered) -> CallError:
        """Say to the caller what its transport says of a call."""
        if undone.may_have_run:
            return ServerLostError(self.name, undone.reason)
        return TurnedAwayError(self.name, undone.reason, is_barred=undone.is_barred)

    @asynccontextmanager
    async def _slot(self) -> AsyncGenerator[None, None]:
        """Take one of the calls that may be in flight, or wait in a queue of bounded length."""
        waiting = self._slots.statistics().tasks_waiting
        if not self._slots.value and waiting >= self._server.max_queued:
            raise BusyError(self.name)
        self._requests += 1
        try:
            async with self._slots:
                yield
        finally:
            self._requests -= 1
            if self._idle is not None and not self._requests:
                self._idle.set()
                self._idle = None

    def _timed_out(self, link: Link) -> None:
        """Give up a server that no longer reads, or that has left too much unanswered."""
        self._timeouts += 1
        if link.transport.is_stuck():
            link.give_up("it stopped reading what it is sent")
        elif self._timeouts >= TIMEOUTS_TOLERATED:
            link.give_up(f"it did not answer {self._timeouts} calls in a row")

    async def _live(self) -> Loss:
        """Connect and stay connected until the server is lost."""
        if self._server.problem is not None:
            return Loss(self._server.problem, hopeless=True)
        self._transport = None
        ready_at: list[float] = []
        loss = Loss("it is gone")
        try:
            loss = await self._connected(ready_at)
        except* FAILURES as failures:
            loss = self._explain(most_telling(failures))
        except* Exception as bugs:  # noqa: BLE001 - the boundary between one server and all others
            loss = self._puzzled(bugs)
        if ready_at and loss.ready_for is None:
            loss = replace(loss, ready_for=anyio.current_time() - ready_at[0])
        return loss.with_words(self._transport.last_words() if self._transport else ())

    @asynccontextmanager
    async def _wired(self) -> AsyncGenerator[Transport, None]:
        """Connect, and remember by what: its last words are known only when it has ended."""
        async with self._connect() as transport:
            self._transport = transport
            yield transport

    async def _connected(self, ready_at: list[float]) -> Loss:
        with anyio.fail_after(self._server.connect_timeout) as patience:
            async with open_link(
                self._wired,
                identity=self._around.identity,
                capabilities=self._around.capabilities,
                era=self._era,
                answer=self._questions.answer,
            ) as link:
                self._met(link)
                state = await list_tools(self._server, link)
                patience.deadline = math.inf
                ready_at.append(anyio.current_time())
                return await self._serve(link, state)
        raise AssertionError  # pragma: no cover - the block returns or raises

    def _met(self, link: Link) -> None:
        """Take note of a server that has introduced itself."""
        self._era = link.peer.era
        self._around.note_era(self._server, self._era)
        link.on_updated = lambda uri: self._around.on_updated(self.name, uri)
        link.on_logged = lambda params: self._around.on_logged(self.name, params)
        link.on_completed = self._questions.completed

    async def _serve(self, link: Link, state: Ready) -> Loss:
        """Be ready, follow the server's changes, and return when the link is over."""
        began = anyio.current_time()
        self._link, self._reason, self._timeouts = link, None, 0
        logger.info("ready with %d tools", len(state.entries), extra={"server": self.name})
        self._say(state)
        try:
            await self._follow(link, state)
        finally:
            self._link = None
            self._woken = anyio.Event()
        # To close what is left of it takes a while; who calls meanwhile has to wait for the next.
        self._reason = link.fault or link.transport.describe_end()
        self._say(Pending(self._reason, anyio.current_time()))
        return Loss(
            self._reason,
            ready_for=anyio.current_time() - began,
            hopeless=link.transport.is_barred(),
        )

    async def _follow(self, link: Link, state: Ready) -> None:
        """List again whenever the server says that something changed, within reason."""
        await self._subscribing.begin(link)
        state = self._changed(state, await self._listed(link, state, BESIDES))
        pause = RELIST_PAUSE
        while True:
            await link.news.wait()
            if link.ended.is_set():
                return
            before, state = (
                state,
                self._changed(state, await self._listed(link, state, link.take_stale())),
            )
            pause = RELIST_PAUSE if state is not before else min(pause * 2, RELIST_PAUSE_MAX)
            with anyio.move_on_after(pause):
                await link.ended.wait()

    def _changed(self, before: Ready, after: Ready) -> Ready:
        """Report a state that differs from the one before; return the one that holds."""
        if (after.entries, after.refused, after.offers) == (
            before.entries,
            before.refused,
            before.offers,
        ):
            return before
        self._say(after)
        return after

    async def _listed(self, link: Link, state: Ready, kinds: Collection[str]) -> Ready:
        """List these kinds; what cannot be listed stays as it was known."""
        for kind in kinds:
            try:
                with anyio.fail_after(LISTING_PATIENCE):
                    state = await self._listed_kind(link, state, kind)
            except FAILURES as error:
                logger.warning(
                    "its %s could not be listed (%s); keeping those known so far",
                    kind,
                    in_words(error),
                    extra={"server": self.name},
                )
        return state

    async def _listed_kind(self, link: Link, state: Ready, kind: str) -> Ready:
        if kind == "tools":
            return replace(await list_tools(self._server, link), offers=state.offers)
        if kind not in link.peer.capabilities:
            return state
        return replace(state, offers=await BESIDES[kind](self._server, link, state.offers))

    def _explain(self, error: Exception) -> Loss:
        """Say in words what stood in the way, and doubt the era that the server was taken for."""
        if isinstance(error, EraUnclearError):
            self._era = "handshake" if self._era is None else None
        elif isinstance(error, (*REQUEST_FAILURES, LinkLostError)):
            # It may have been remembered to speak an era that it no longer does.
            self._era = None
        return explain(error, self._server.connect_timeout)

    def _puzzled(self, bugs: BaseExceptionGroup[Exception]) -> Loss:
        """Lose a server that we cannot handle; why is in the log, under a number."""
        number = uuid4().hex[:12]
        logger.error("internal error %s", number, exc_info=bugs, extra={"server": self.name})
        return Loss(f"the aggregator could not handle it (error {number}; its log says why)")

    async def _recover(self, loss: Loss) -> None:
        """Wait as long as is reasonable before the next attempt."""
        self._reason = loss.reason
        if loss.ready_for is None:
            self._woken = anyio.Event()
        if loss.hopeless:
            logger.warning(
                "%s; waiting for the configuration to change",
                loss.reason,
                extra={"server": self.name},
            )
            self._say(Failed(loss.reason, anyio.current_time(), loss.last_words))
            await self._woken.wait()
            return
        retry = self._supervision.failed(ready_for=loss.ready_for)
        delay = max(retry.delay, loss.retry_after)
        about = {"server": self.name}
        logger.warning("%s; retrying in %.1f s", loss.reason, delay, extra=about)
        phase = "cooling down" if retry.cooling else "retrying"
        self._say(Pending(loss.reason, anyio.current_time(), phase, loss.last_words))
        self._last_words = loss.last_words
        with anyio.move_on_after(delay):
            await anyio.sleep(min(delay, REST))
            await self._woken.wait()

    def _say(self, state: ServerState) -> None:
        if not self._retired:
            self._around.report(self.name, state)
