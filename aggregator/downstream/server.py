"""One server, one task: connect, list, watch, redial."""

import logging
from collections.abc import Callable, Collection, Coroutine, Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from math import inf
from typing import Any

import anyio

from aggregator.catalog import NOTHING_BESIDES, Ready
from aggregator.config import ServerConfig
from aggregator.downstream.attempt import Attempt
from aggregator.downstream.era_choice import EraChoice
from aggregator.downstream.eras import Eras
from aggregator.downstream.failure import (
    FAILURES,
    Failure,
    explain,
    log_bug,
    most_telling,
    shown,
)
from aggregator.downstream.inflight import Caller
from aggregator.downstream.introduction import Ourselves
from aggregator.downstream.inventory import Inventory, list_tools
from aggregator.downstream.link import Link, open_link
from aggregator.downstream.need import Need
from aggregator.downstream.news import LinkNews, ServerEvents
from aggregator.downstream.outage import Outage
from aggregator.downstream.questions import Questions
from aggregator.downstream.relisting import Following
from aggregator.downstream.requests import Requests
from aggregator.downstream.review import Review, reviewed
from aggregator.downstream.start_queue import Start, StartQueue, Ticket
from aggregator.downstream.status import ServerStatus
from aggregator.downstream.subscribing import Subscribing
from aggregator.downstream.transport import Connect
from aggregator.names import ServerName

logger = logging.getLogger(__name__)


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
        ticket: Ticket | None = None,
    ) -> None:
        self._server = server
        self._connect = connect
        self._events = events
        self._ours = ours
        self._questions = Questions(server.name, events.asked)
        self._era_choice = EraChoice(server, eras)
        self._subscribing = Subscribing(server, watched)
        self._status = ServerStatus(server, events, known)
        self._need = Need()
        self._outage = Outage(
            lambda: self._server, self._status, self._need, self._subscribing, jitter
        )
        self._requests = Requests(
            server,
            status=self._status,
            need=self._need,
            era_choice=self._era_choice,
            questions=self._questions,
            part=self._part,
        )
        self._current: Attempt | None = None
        self._following: Following | None = None
        self._ticket = ticket or StartQueue(1).ticket()

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
        link = self._requests.link
        return link.transport.noise_count if link else 0

    @property
    def offered(self) -> Ready | None:
        """What it offers, or did when that was last known."""
        return self._status.ready

    @property
    def last_use(self) -> float:
        """When it was last of use to somebody."""
        return self._need.last_use

    @property
    def vain_attempts(self) -> int:
        """How often in a row it has failed to become ready."""
        return self._outage.vain_attempts

    @property
    def is_queued(self) -> bool:
        """Whether it is to start, and it is not its turn yet."""
        return self._ticket.is_queued

    @property
    def lost_time(self) -> float:
        """Seconds, in all, in which it was to start and could not: others had their turn."""
        return self._ticket.lost

    def reconfigure(self, server: ServerConfig, known: Review | None = None) -> None:
        """Treat the same process, or the same address, as another configuration says."""
        self._server = server
        self._requests.reconfigure(server)
        self._subscribing.reconfigure(server)
        if self._current is not None:
            self._current.allow(server.connect_timeout)
        # What it forbids holds at once; what it allows anew only the server can tell.
        offered = self._status.ready
        ready = reviewed(server, offered, known) if offered else None
        self._need.look()
        if ready is None or self._following is None:
            self._status.know(ready)
            if self._need.is_resting and ready is not None and self._need.is_lazy(server):
                self._status.rest()
                return
            if ready is not None:
                self._status.wait()
            self.wake()
            return
        self._status.offer(ready)
        self._following.review()

    async def run(self) -> None:
        """Keep the server connected for as long as this task lives, and somebody needs it."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._requests.deadlines.run)
            await self._keep()

    async def _keep(self) -> None:
        while True:
            await self._need.until_needed()
            self._outage.wait()
            failure = await self._live()
            if self._need.is_visited:
                # Nobody has asked for it, and what it offered is known as before.
                logger.info("could not be asked what it offers: %s", failure.reason)
                self._outage.rest()
            if not self._need.is_resting:
                await self._outage.recover(failure)

    def wake(self) -> None:
        """Cut short a wait for the next attempt, because somebody needs the server now."""
        self._need.wake()

    @contextmanager
    def awaited(self) -> Generator[None]:
        """Keep the server for the length of the block, since somebody waits to use it."""
        self._need.enter()
        self._ticket.look()
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
        self._status.know(known)
        if self._need.recall(self._server, is_current=is_current):
            self._outage.rest()

    def silence(self) -> None:
        """Report nothing more, since somebody else has the name now, or nobody."""
        self._status.silence()
        self._need.end_visit()

    async def retire(self, patience: float) -> None:
        """Wait, within bounds, for the requests under way."""
        with anyio.move_on_after(patience):
            await self._need.until_free()

    def request(
        self, method: str, params: Mapping[str, Any], caller: Caller
    ) -> Coroutine[Any, Any, dict[str, Any]]:
        """Send a client's request and return the result as it came.

        Raises:
            CallError: The request could not be completed.
            MCPError: The server answered with an error of its own.
        """
        return self._requests.send(method, params, caller)

    @property
    def requests(self) -> Requests:
        """The way by which they are sent."""
        return self._requests

    async def watch(self, uris: Collection[str]) -> None:
        """Be told when these resources change, and no others, also after a new connection.

        Raises:
            NotWatchedError: The server refuses some of them, or does not answer in time.
        """
        if uris and (self._need.is_resting or self._need.is_visited):
            self.wake()
        self._need.look()
        await self._subscribing.want(frozenset(uris), self._requests.link)

    async def tell_roots_changed(self) -> None:
        """Tell the server, if it is there, that the roots of its client have changed."""
        if (link := self._requests.link) is not None:
            await link.tell_roots_changed()

    def _part(self, link: Link, reason: str) -> None:
        """End a connection on which nothing is under way; who calls from here on waits."""
        self._close()
        self._status.leave(reason, self._outage.until)
        link.give_up(reason)

    def _close(self) -> None:
        """Have requests wait, and nobody hear of the server, until there is another link."""
        self._requests.close()
        self._following = None

    async def _live(self) -> Failure:
        """Connect and stay connected until the server is lost."""
        if self._server.problem is not None:
            return Failure(self._server.problem, is_hopeless=True)
        came = anyio.current_time()
        async with self._ticket.taken(self._urgency) as start:
            if anyio.current_time() > came:
                self._outage.wait()
            return await self._connected(start)

    def _urgency(self) -> int:
        """Say how soon it is to be its turn to start, among others whose turn it is not yet."""
        if self._need.requests:
            return 0
        return 1 if self._server.always_load else 2

    async def _connected(self, start: Start) -> Failure:
        """Connect, make way for others as soon as it is ready, and return what ended it."""
        attempt = self._current = Attempt(self._server.connect_timeout, self._ticket)
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
        return replace(failure, reason=shown(failure.reason, self._status.redact))

    async def _attempt(self, attempt: Attempt, start: Start) -> Failure:
        news = LinkNews(self.name, self._events, self._questions)
        with anyio.fail_after(None) as patience:
            attempt.limit(patience)
            async with self._connect() as transport:
                attempt.connected(transport)
                async with open_link(
                    transport,
                    ours=self._ours,
                    era=self._era_choice.era,
                    events=news,
                    answer=self._questions.answer,
                    server=self.name,
                ) as link:
                    self._era_choice.met(link.peer.era)
                    news.open()
                    server, known = self._server, self._status.ready
                    offered = known.offers if known else NOTHING_BESIDES
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
        self._requests.open(link, inventory.mirrored)
        logger.info(
            "ready with %d tools", len(inventory.state.entries), extra={"server": self.name}
        )
        following = self._following = Following(
            link,
            news,
            configured=lambda: self._server,
            status=self._status,
            requests=self._requests,
            need=self._need,
        )
        self._need.stir()
        self._status.offer(inventory.state)
        if listed is not self._server:
            self.reconfigure(self._server)
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._follow, link, following)
                group.start_soon(self._end_unused, link)
                await link.ended.wait()
                group.cancel_scope.cancel()
        finally:
            self._close()
        ready_for = anyio.current_time() - began
        if self._need.is_resting:
            return Failure("nobody needs it", ready_for=ready_for)
        self._need.forget_calls()
        # To close what is left of it takes a while; who calls meanwhile has to wait for the next.
        reason = shown(link.fault or link.transport.describe_end(), self._status.redact)
        self._status.leave(reason, self._outage.until)
        return Failure(reason, ready_for=ready_for)

    async def _end_unused(self, link: Link) -> None:
        """Have the server end once nobody has needed it for as long as it is kept."""
        await self._need.until_unused(self._patience)
        logger.info("stopped, since nobody needs it", extra={"server": self.name})
        self._close()
        self._outage.rest()
        link.give_up("nobody needs it")

    def _patience(self) -> float:
        """Return how long the server is kept without being used, as things are now."""
        is_watched = self._subscribing.is_needed
        offered = self._status.ready or Ready()
        return inf if is_watched else self._need.patience(self._server, offered)

    async def _follow(self, link: Link, following: Following) -> None:
        """Have the server tell of what is wanted of it, and list what it says has changed."""
        await self._subscribing.begin(link)
        await following.run()

    def _explain(self, error: Exception) -> Failure:
        """Say in words what stood in the way, and doubt the era that the server was taken for."""
        self._era_choice.doubt(error)
        return explain(error, self._server.connect_timeout)

    def __repr__(self) -> str:
        link = self._requests.link or self._status.reason or "starting"
        return f"<Downstream {self.name} {link} {self._need.requests} requested>"
