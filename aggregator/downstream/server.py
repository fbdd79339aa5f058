"""One server, one task: connect, list, watch, redial."""

import logging
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from math import inf
from typing import Any

import anyio
from mcp.shared.exceptions import MCPError

from aggregator.catalog import NOTHING_BESIDES, Failed, Idle, Pending, Phase, Ready, ServerState
from aggregator.config import ServerConfig
from aggregator.downstream.attempt import Attempt, until_remedied
from aggregator.downstream.envelope import NOTHING_MIRRORED
from aggregator.downstream.eras import Eras
from aggregator.downstream.failure import (
    FAILURES,
    Failure,
    explain,
    log_bug,
    most_telling,
    undelivered,
)
from aggregator.downstream.inflight import Caller, ClientCall, Patience
from aggregator.downstream.introduction import Ourselves
from aggregator.downstream.inventory import BESIDES, Inventory, complain, list_tools
from aggregator.downstream.link import Link, open_link
from aggregator.downstream.need import Need
from aggregator.downstream.news import LinkNews, ServerEvents
from aggregator.downstream.places import Places
from aggregator.downstream.questions import Questions
from aggregator.downstream.relisting import RELIST_PAUSE, list_anew, longer
from aggregator.downstream.review import Review, reviewed, reviewing
from aggregator.downstream.slipway import Berth, Slipway, Start
from aggregator.downstream.subscribing import Subscribing
from aggregator.downstream.supervision import Supervision
from aggregator.downstream.tongue import Tongue
from aggregator.downstream.transport import Connect, ConnectionClosedError, UndeliveredError
from aggregator.errors import (
    BusyError,
    CallTimeoutError,
    ServerLostError,
    ServerUnavailableError,
    WrongEraError,
)
from aggregator.names import ServerName
from aggregator.secrecy import Redaction
from aggregator.turns import in_turns

logger = logging.getLogger(__name__)

TIMEOUTS_TOLERATED = 3
"""Calls in a row that may time out before the server is taken to be stuck."""
AWAY = 20.0
"""Seconds for which a server that has gone away still counts as having what it offered."""
REST = 0.5
"""Seconds between two attempts after a failure at the least, however many ask for the server."""


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
        known: Ready | None = None,
        berth: Berth | None = None,
    ) -> None:
        self._server = server
        self._connect = connect
        self._events = events
        self._ours = ours
        self._questions = Questions(server.name, events.asked)
        self._supervision = Supervision(jitter)
        self._tongue = Tongue(server, eras)
        self._subscribing = Subscribing(server, watched)
        self._link: Link | None = None
        self._current: Attempt | None = None
        self._news: LinkNews | None = None
        self._mirrored = NOTHING_MIRRORED
        self._places = Places(server.max_in_flight, server.max_queued)
        self._need = Need()
        self._berth = berth or Slipway(1).berth()
        self._review = anyio.Event()
        self._retired = False
        self._timeouts = 0
        self._answered = 0
        self._is_outdated = False
        self._reason: str | None = None
        self._ready = known
        """What it offers, or did before it went away, or in another run."""
        self._until = inf
        """When it has been away for too long for that to hold."""
        self._unmatched: tuple[str, ...] = ()
        self._last_words: tuple[str, ...] = ()

    @property
    def name(self) -> ServerName:
        """The server's name in servers.yaml."""
        return self._server.name

    @property
    def server(self) -> ServerConfig:
        """The server as it is configured now."""
        return self._server

    @property
    def noise_count(self) -> int:
        """How many lines that are no messages it has written since it was started."""
        return self._link.transport.noise_count if self._link else 0

    @property
    def offered(self) -> Ready | None:
        """What it offers, or did when that was last known."""
        return self._ready

    @property
    def last_use(self) -> float:
        """When it was last of use to somebody."""
        return self._need.last_use

    @property
    def is_queued(self) -> bool:
        """Whether it is to start, and it is not its turn yet."""
        return self._berth.is_queued

    @property
    def lost_time(self) -> float:
        """Seconds, in all, in which it was to start and could not: others had their turn."""
        return self._berth.lost

    def reconfigure(self, server: ServerConfig, known: Review | None = None) -> None:
        """Treat the same process, or the same address, as another configuration says."""
        self._places.resize(server.max_in_flight, server.max_queued)
        self._server = server
        self._subscribing.reconfigure(server)
        if self._current is not None:
            self._current.allow(server.connect_timeout)
        # What it forbids holds at once; what it allows anew only the server can tell.
        ready = reviewed(server, self._ready, known) if self._ready else None
        self._need.look()
        if ready is None or self._news is None:
            self._ready = ready
            if self._need.is_resting and ready is not None and self._need.is_lazy(server):
                self._say(Idle(ready, anyio.current_time()))
                return
            if ready is not None:
                self._wait(self._reason)
            self.wake()
            return
        self._say(ready)
        self._news.changed(("tools", "prompts"))
        self._review.set()

    async def run(self) -> None:
        """Keep the server connected for as long as this task lives, and somebody needs it."""
        while True:
            await self._need.until_needed()
            self._wait(self._reason, last_words=self._last_words)
            failure = await self._live()
            if self._need.is_visited:
                # Nobody has asked for it, and what it offered is known as before.
                logger.info("could not be asked what it offers: %s", failure.reason)
                self._rest()
            if not self._need.is_resting:
                await self._recover(failure)

    def wake(self) -> None:
        """Cut short a wait for the next attempt, because somebody needs the server now."""
        self._need.wake()

    @contextmanager
    def awaited(self) -> Generator[None]:
        """Keep the server for the length of the block, since somebody waits to use it."""
        self._need.enter()
        self._berth.look()
        try:
            yield
        finally:
            self._need.leave()

    async def visit(self) -> None:
        """Start a server that rests, see what it offers now, and let it rest unless it is used."""
        self._need.visit()
        await self._need.until_visited()

    def recall(self, known: Ready, *, is_current: bool) -> None:
        """Take note, before it runs, of all that it offered in another run."""
        self._ready = known
        if self._need.recall(self._server, is_current=is_current):
            self._rest()

    def silence(self) -> None:
        """Report nothing more, since somebody else has the name now, or nobody."""
        self._retired = True
        self._need.end_visit()

    async def retire(self, patience: float) -> None:
        """Wait, within bounds, for the requests under way."""
        with anyio.move_on_after(patience):
            await self._need.until_free()

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
        if self._places.turns_away(caller.party):
            raise BusyError(self.name)
        began = anyio.current_time()
        self._need.enter()
        try:
            with anyio.CancelScope() as scope:
                server = self._server
                patience = Patience(
                    scope, between=server.call_timeout, altogether=server.max_call_time
                )
                call = ClientCall(caller, patience)
                async with self._places.taken(caller.party):
                    if caller.log_level is not None:
                        await link.lower_level(caller.log_level)
                    result = await link.request(method, params, call=call, mirrored=self._mirrored)
                self._timeouts = 0
                self._check_era(link, result)
                self._answered += 1
                return result
        except ConnectionClosedError as error:
            await link.until_ended()
            raise ServerLostError(self.name) from error
        except UndeliveredError as error:
            raise undelivered(self.name, error.undelivered, self._redact) from error
        except MCPError as error:
            self._check_era(link, error.message)
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
        if uris and (self._need.is_resting or self._need.is_visited):
            self.wake()
        self._need.look()
        await self._subscribing.want(frozenset(uris), self._link)

    async def tell_roots_changed(self) -> None:
        """Tell the server, if it is there, that the roots of its client have changed."""
        if self._link is not None:
            await self._link.tell_roots_changed()

    def _leave(self) -> None:
        """Count one request less."""
        self._need.leave()
        if not self._need.requests and self._is_outdated and self._link is not None:
            self._part(self._link, "it needs the handshake era to ask its questions")

    def _part(self, link: Link, reason: str) -> None:
        """End a connection on which nothing is under way; who calls from here on waits."""
        self._link = self._news = None
        self._reason = reason
        self._until = self._away()
        self._wait(reason)
        link.give_up(reason)

    def _check_era(self, link: Link, outcome: Mapping[str, Any] | str) -> None:
        """Notice a server that could not ask its question, and speak the older era with it.

        Raises:
            WrongEraError: It is one.
        """
        if self._tongue.misses_questions(link.peer.era, outcome):
            # A process holds what calls have made of it; elsewhere, this era has no state.
            is_fresh = self._server.type != "stdio" or not self._answered
            self._is_outdated = self._is_outdated or is_fresh
            raise WrongEraError(self.name, is_mended=self._is_outdated)

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
        came = anyio.current_time()
        async with self._berth.taken(self._urgency) as start:
            if anyio.current_time() > came:
                self._wait(self._reason, last_words=self._last_words)
            return await self._connected(start)

    def _urgency(self) -> int:
        """Say how soon it is to be its turn to start, among others whose turn it is not yet."""
        if self._need.requests:
            return 0
        return 1 if self._server.always_load else 2

    async def _connected(self, start: Start) -> Failure:
        """Connect, make way for others as soon as it is ready, and return what ended it."""
        attempt = self._current = Attempt(self._server.connect_timeout, self._berth)
        failure = Failure("it is gone")
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(attempt.expire)
                failure = await self._attempt(attempt, start)
                group.cancel_scope.cancel()
        except* FAILURES as failures:
            failure = self._explain(most_telling(failures))
        except* Exception as bugs:  # noqa: BLE001 - the boundary between one server and all others
            failure = log_bug(self.name, bugs)
        failure = attempt.complete(failure)
        return replace(failure, reason=self._redact(failure.reason))

    async def _attempt(self, attempt: Attempt, start: Start) -> Failure:
        news = LinkNews(self.name, self._events, self._questions)
        with anyio.fail_after(None) as patience:
            attempt.limit(patience)
            async with self._connect() as transport:
                attempt.connected(transport)
                async with open_link(
                    transport,
                    ours=self._ours,
                    era=self._tongue.era,
                    events=news,
                    answer=self._questions.answer,
                    server=self.name,
                ) as link:
                    self._tongue.met(link.peer.era)
                    news.open()
                    server = self._server
                    offered = self._ready.offers if self._ready else NOTHING_BESIDES
                    inventory = await list_tools(server, link, offered)
                    attempt.became_ready()
                    start.end()
                    return await self._serve(link, inventory, news, server)
        raise AssertionError  # pragma: no cover - the block returns or raises

    async def _serve(
        self, link: Link, inventory: Inventory, news: LinkNews, listed: ServerConfig
    ) -> Failure:
        """Be ready, follow the server's changes, and return when the link is over."""
        began = anyio.current_time()
        self._link, self._mirrored = link, inventory.mirrored
        self._reason, self._timeouts, self._answered, self._until = None, 0, 0, inf
        self._is_outdated = False
        logger.info(
            "ready with %d tools", len(inventory.state.entries), extra={"server": self.name}
        )
        self._news = news
        self._need.stir()
        self._say(inventory.state)
        if listed is not self._server:
            self.reconfigure(self._server)
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._follow, link, news)
                group.start_soon(self._end_unused, link)
                await link.ended.wait()
                group.cancel_scope.cancel()
        finally:
            self._link = self._news = None
        ready_for = anyio.current_time() - began
        if self._need.is_resting:
            return Failure("nobody needs it", ready_for=ready_for)
        self._need.forget_calls()
        # To close what is left of it takes a while; who calls meanwhile has to wait for the next.
        self._reason = self._redact(link.fault or link.transport.describe_end())
        self._until = self._away()
        self._wait(self._reason)
        return Failure(self._reason, ready_for=ready_for)

    async def _end_unused(self, link: Link) -> None:
        """Have the server end once nobody has needed it for as long as it is kept."""
        await self._need.until_unused(self._patience)
        logger.info("stopped, since nobody needs it", extra={"server": self.name})
        self._link = self._news = None
        self._rest()
        link.give_up("nobody needs it")

    def _rest(self, reason: str | None = None, last_words: tuple[str, ...] = ()) -> None:
        """Wait from here on until somebody needs the server."""
        self._need.rest()
        self._reason, self._until = None, inf
        if self._ready is not None:
            self._say(Idle(self._ready, anyio.current_time(), reason, last_words))

    @property
    def _may_rest(self) -> bool:
        """Whether a server that is not there is tried again only when somebody needs it."""
        is_known = self._ready is not None and not self._subscribing.is_needed
        return is_known and self._need.is_lazy(self._server)

    def _away(self) -> float:
        """Return until when what it offered counts if it is not there: it may as well rest."""
        return inf if self._may_rest else anyio.current_time() + AWAY

    def _patience(self) -> float:
        """Return how long the server is kept without being used, as things are now."""
        is_watched = self._subscribing.is_needed
        return inf if is_watched else self._need.patience(self._server, self._ready or Ready())

    def _complain(self, unmatched: tuple[str, ...]) -> None:
        """Log what of its configuration holds for no tool, once and not at each connection."""
        if unmatched != self._unmatched:
            self._unmatched = unmatched
            # Whoever wrote a rule relies on it; without anybody asking, only errors are told.
            complain(self._server, unmatched, logging.ERROR)

    async def _follow(self, link: Link, news: LinkNews) -> None:
        """List again whenever the server says that something changed, within reason."""
        await self._subscribing.begin(link)
        for kind in BESIDES:
            await self._list(link, [kind])
        pause = RELIST_PAUSE
        while True:
            stale = await news.take_stale()
            # Whoever has news of itself may have more.
            self._need.stir()
            self._review = anyio.Event()
            is_changed = await self._list(link, stale)
            pause = RELIST_PAUSE if is_changed else longer(pause)
            with anyio.move_on_after(pause):
                await self._review.wait()

    async def _list(self, link: Link, kinds: Collection[str]) -> bool:
        """List these kinds and report what differs; say whether anything does."""
        server, state = self._server, self._ready or Ready()
        for kind in kinds:
            known = Inventory(state, self._mirrored)
            inventory = await list_anew(self._server, link, known, kind)
            state, self._mirrored = inventory.state, inventory.mirrored
        while server is not self._server:
            server = self._server
            state = await in_turns(reviewing(server, state))
        before = self._ready or state
        if link is not self._link or replace(state, since=before.since) == before:
            return False
        self._say(state)
        self._need.look()
        return True

    @cached_property
    def _redact(self) -> Redaction:
        """What takes out of a sentence about it what it was given in confidence."""
        return Redaction(self._server.given())

    def _explain(self, error: Exception) -> Failure:
        """Say in words what stood in the way, and doubt the era that the server was taken for."""
        self._tongue.doubt(error)
        return explain(error, self._server.connect_timeout)

    async def _recover(self, failure: Failure) -> None:
        """Wait as long as is reasonable before the next attempt."""
        reason = self._reason = failure.reason
        self._until = min(self._until, self._away())
        if failure.ready_for is None:
            self._need.forget_calls()
        about = {"server": self.name}
        if failure.is_hopeless:
            waits_for = "the configuration to change" if failure.remedy is None else "a login"
            logger.warning("%s; waiting for %s", reason, waits_for, extra=about)
            self._ready = None
            remedy = failure.remedy
            login, scope = (remedy.command, remedy.scope) if remedy else (None, "")
            self._say(Failed(reason, anyio.current_time(), failure.last_words, login, scope))
            await until_remedied(remedy, self._need.until_woken)
            return
        retry = self._supervision.failed(ready_for=failure.ready_for)
        delay = max(retry.delay, failure.retry_after)
        logger.warning("%s; retrying in %.1f s", reason, delay, extra=about)
        self._last_words = failure.last_words
        if not delay:
            return
        phase = "cooling down" if retry.cooling else "retrying"
        self._wait(reason, phase, failure.last_words)
        with anyio.move_on_after(delay):
            await anyio.sleep(min(delay, REST))
            if not self._may_rest:
                await self._need.until_woken()
            elif not await self._need.until_called_or_left():
                # Nobody waits for it, and the next call is soon enough for another attempt.
                self._rest(reason, failure.last_words)

    def _wait(
        self, reason: str | None, phase: Phase = "starting", last_words: tuple[str, ...] = ()
    ) -> None:
        """Say that it is not there, and what it is known to offer."""
        since = anyio.current_time()
        self._say(Pending(reason, since, phase, last_words, self._ready, self._until))

    def _say(self, state: ServerState) -> None:
        if isinstance(state, Ready):
            self._ready = state
            self._complain(state.unmatched)
        if not self._retired:
            self._events.reported(self.name, state)

    def __repr__(self) -> str:
        link = self._link or self._reason or "starting"
        return f"<Downstream {self.name} {link} {self._need.requests} requested>"
