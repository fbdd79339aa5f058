"""One server, one task: connect, list, watch, redial."""

import logging
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

import anyio
from mcp.shared.exceptions import MCPError

from aggregator.catalog import Failed, Pending, Ready, ServerState
from aggregator.config import ServerConfig
from aggregator.downstream.envelope import NOTHING_MIRRORED
from aggregator.downstream.eras import Eras
from aggregator.downstream.exchange import REQUEST_FAILURES
from aggregator.downstream.failure import FAILURES, Failure, explain, in_words, most_telling
from aggregator.downstream.inflight import Caller, ClientCall, Patience
from aggregator.downstream.introduction import EraUnclearError, LinkLostError, Ourselves
from aggregator.downstream.inventory import BESIDES, LISTING_PATIENCE, Inventory, list_tools
from aggregator.downstream.link import Link, open_link
from aggregator.downstream.news import LinkNews, ServerEvents
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
from aggregator.eras import Era
from aggregator.errors import (
    BusyError,
    CallError,
    CallTimeoutError,
    ServerLostError,
    ServerUnavailableError,
    TurnedAwayError,
)
from aggregator.names import ServerName
from aggregator.signals import Signal

logger = logging.getLogger(__name__)

RELIST_PAUSE = 1.0
"""Seconds between two listings of a server that keeps saying it changed."""
RELIST_PAUSE_MAX = 30.0
"""The same for a server whose listing turns out not to have changed."""
TIMEOUTS_TOLERATED = 3
"""Calls in a row that may time out before the server is taken to be stuck."""
REST = 0.5
"""Seconds between two attempts after a failure at the least, however many ask for the server."""


@dataclass(slots=True)
class _Attempt:
    """One connection, or the attempt at one, as far as it came."""

    transport: Transport | None = None
    ready_at: float | None = None

    def connected(self, transport: Transport) -> None:
        """Take note of what carries the messages: its last words are known only at its end."""
        self.transport = transport

    def became_ready(self) -> None:
        """Take note that the server is of use."""
        self.ready_at = anyio.current_time()

    def complete(self, failure: Failure) -> Failure:
        """Add to what went wrong what is known only when all is over."""
        if self.ready_at is not None and failure.ready_for is None:
            failure = replace(failure, ready_for=anyio.current_time() - self.ready_at)
        return failure.with_words(self.transport.last_words() if self.transport else ())


class Downstream:
    """One server: its connection, its state and the calls to it."""

    def __init__(
        self,
        server: ServerConfig,
        connect: Connect,
        events: ServerEvents,
        *,
        ours: Ourselves,
        eras: Eras,
        jitter: Callable[[], float],
        watched: frozenset[str] = frozenset(),
    ) -> None:
        self._server = server
        self._connect = connect
        self._events = events
        self._ours = ours
        self._eras = eras
        self._questions = Questions(server.name)
        self._supervision = Supervision(jitter)
        self._era: Era | None = eras.recall(server)
        self._subscribing = Subscribing(server, watched)
        self._link: Link | None = None
        self._mirrored = NOTHING_MIRRORED
        self._woken = anyio.Event()
        self._slots = anyio.Semaphore(server.max_in_flight, fast_acquire=True)
        self._requests = 0
        self._idle = Signal()
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
            await self._recover(await self._live())

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
        if not self._slots.value and self._queued >= self._server.max_queued:
            raise BusyError(self.name)
        began = anyio.current_time()
        self._requests += 1
        try:
            with anyio.CancelScope() as scope:
                server = self._server
                patience = Patience(
                    scope, between=server.call_timeout, altogether=server.max_call_time
                )
                call = ClientCall(caller, patience)
                async with self._slots:
                    if caller.log_level is not None:
                        await link.lower_level(caller.log_level)
                    result = await link.request(method, params, call=call, mirrored=self._mirrored)
                self._timeouts = 0
                return result
        except ConnectionClosedError as error:
            await link.until_ended()
            raise ServerLostError(self.name) from error
        except UndeliveredError as error:
            raise self._translate(error.undelivered) from error
        except MCPError as error:
            self._questions.note_refusal(error, caller)
            raise
        finally:
            self._leave()
        self._note_timeout(link)
        raise CallTimeoutError(self.name, round(anyio.current_time() - began, 1))

    async def watch(self, uris: Collection[str]) -> None:
        """Be told when these resources change, and no others, also after a new connection.

        Raises:
            NotWatchedError: The server refuses some of them, or does not answer in time.
        """
        await self._subscribing.want(frozenset(uris), self._link)

    @property
    def _queued(self) -> int:
        """How many calls wait until others have ended."""
        return self._slots.statistics().tasks_waiting

    def _leave(self) -> None:
        """Count one request less."""
        self._requests -= 1
        if not self._requests:
            self._idle.send()

    def _translate(self, undelivered: Undelivered) -> CallError:
        """Say to the caller what its transport says of a call."""
        if undelivered.may_have_run:
            return ServerLostError(self.name, undelivered.reason)
        return TurnedAwayError(self.name, undelivered.reason, is_barred=undelivered.is_barred)

    def _note_timeout(self, link: Link) -> None:
        """Give up a server that no longer reads, or that has left too much unanswered."""
        self._timeouts += 1
        if link.transport.is_stuck():
            link.give_up("it stopped reading what it is sent")
        elif self._timeouts >= TIMEOUTS_TOLERATED:
            link.give_up(f"it did not answer {self._timeouts} calls in a row")

    async def _live(self) -> Failure:
        """Connect and stay connected until the server is lost."""
        if self._server.problem is not None:
            return Failure(self._server.problem, is_hopeless=True)
        attempt = _Attempt()
        failure = Failure("it is gone")
        try:
            failure = await self._attempt(attempt)
        except* FAILURES as failures:
            failure = self._explain(most_telling(failures))
        except* Exception as bugs:  # noqa: BLE001 - the boundary between one server and all others
            failure = self._log_bug(bugs)
        return attempt.complete(failure)

    async def _attempt(self, attempt: _Attempt) -> Failure:
        news = LinkNews(self.name, self._events, self._questions)
        with anyio.fail_after(self._server.connect_timeout) as patience:
            async with self._connect() as transport:
                attempt.connected(transport)
                async with open_link(
                    transport,
                    ours=self._ours,
                    era=self._era,
                    events=news,
                    answer=self._questions.answer,
                ) as link:
                    self._note_era(link.peer.era)
                    news.open()
                    inventory = await list_tools(self._server, link)
                    patience.deadline = math.inf
                    attempt.became_ready()
                    return await self._serve(link, inventory, news)
        raise AssertionError  # pragma: no cover - the block returns or raises

    def _note_era(self, era: Era) -> None:
        """Take note of the era in which a server has introduced itself."""
        self._era = era
        self._eras.note(self._server, era)

    async def _serve(self, link: Link, inventory: Inventory, news: LinkNews) -> Failure:
        """Be ready, follow the server's changes, and return when the link is over."""
        began = anyio.current_time()
        self._link, self._mirrored = link, inventory.mirrored
        self._reason, self._timeouts = None, 0
        logger.info(
            "ready with %d tools", len(inventory.state.entries), extra={"server": self.name}
        )
        self._say(inventory.state)
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._follow, link, inventory.state, news)
                await link.ended.wait()
                group.cancel_scope.cancel()
        finally:
            self._link = None
            self._woken = anyio.Event()
        # To close what is left of it takes a while; who calls meanwhile has to wait for the next.
        self._reason = link.fault or link.transport.describe_end()
        self._say(Pending(self._reason, anyio.current_time()))
        return Failure(
            self._reason,
            ready_for=anyio.current_time() - began,
            is_hopeless=link.transport.is_barred(),
        )

    async def _follow(self, link: Link, state: Ready, news: LinkNews) -> None:
        """List again whenever the server says that something changed, within reason."""
        await self._subscribing.begin(link)
        state = self._report_change(state, await self._list(link, state, BESIDES))
        pause = RELIST_PAUSE
        while True:
            stale = await news.take_stale()
            before, after = state, await self._list(link, state, stale)
            state = self._report_change(before, after)
            pause = RELIST_PAUSE if state is not before else min(pause * 2, RELIST_PAUSE_MAX)
            await anyio.sleep(pause)

    def _report_change(self, before: Ready, after: Ready) -> Ready:
        """Report a state that differs from the one before; return the one that holds."""
        if (after.entries, after.refused, after.offers) == (
            before.entries,
            before.refused,
            before.offers,
        ):
            return before
        self._say(after)
        return after

    async def _list(self, link: Link, state: Ready, kinds: Collection[str]) -> Ready:
        """List these kinds; what cannot be listed stays as it was known."""
        for kind in kinds:
            try:
                with anyio.fail_after(LISTING_PATIENCE):
                    state = await self._list_kind(link, state, kind)
            except FAILURES as error:
                logger.warning(
                    "its %s could not be listed (%s); keeping those known so far",
                    kind,
                    in_words(error),
                    extra={"server": self.name},
                )
        return state

    async def _list_kind(self, link: Link, state: Ready, kind: str) -> Ready:
        if kind == "tools":
            inventory = await list_tools(self._server, link)
            self._mirrored = inventory.mirrored
            return replace(inventory.state, offers=state.offers)
        if kind not in link.peer.capabilities:
            return state
        return replace(state, offers=await BESIDES[kind](self._server, link, state.offers))

    def _explain(self, error: Exception) -> Failure:
        """Say in words what stood in the way, and doubt the era that the server was taken for."""
        if isinstance(error, EraUnclearError):
            self._era = "handshake" if self._era is None else None
        elif isinstance(error, (*REQUEST_FAILURES, LinkLostError)):
            # It may have been remembered to speak an era that it no longer does.
            self._era = None
        return explain(error, self._server.connect_timeout)

    def _log_bug(self, bugs: BaseExceptionGroup[Exception]) -> Failure:
        """Lose a server that we cannot handle; why is in the log, under a number."""
        number = uuid4().hex[:12]
        logger.error("internal error %s", number, exc_info=bugs, extra={"server": self.name})
        return Failure(f"the aggregator could not handle it (error {number}; its log says why)")

    async def _recover(self, failure: Failure) -> None:
        """Wait as long as is reasonable before the next attempt."""
        reason = self._reason = failure.reason
        if failure.ready_for is None:
            self._woken = anyio.Event()
        about = {"server": self.name}
        if failure.is_hopeless:
            logger.warning("%s; waiting for the configuration to change", reason, extra=about)
            self._say(Failed(reason, anyio.current_time(), failure.last_words))
            await self._woken.wait()
            return
        retry = self._supervision.failed(ready_for=failure.ready_for)
        delay = max(retry.delay, failure.retry_after)
        logger.warning("%s; retrying in %.1f s", reason, delay, extra=about)
        phase = "cooling down" if retry.cooling else "retrying"
        self._say(Pending(reason, anyio.current_time(), phase, failure.last_words))
        self._last_words = failure.last_words
        with anyio.move_on_after(delay):
            await anyio.sleep(min(delay, REST))
            await self._woken.wait()

    def _say(self, state: ServerState) -> None:
        if not self._retired:
            self._events.reported(self.name, state)

    def __repr__(self) -> str:
        link = self._link or self._reason or "starting"
        return f"<Downstream {self.name} {link} {self._requests} requested>"
