"""One server, one task: connect, list, watch, redial."""

import logging
import math
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
import mcp_types as types
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError

from aggregator.catalog import Failed, JsonObject, Pending, Ready, ServerState
from aggregator.config import ServerConfig
from aggregator.connect import Connect, Era, EraUnclearError, Link, Undone, open_link, refuse
from aggregator.errors import (
    BusyError,
    CallError,
    CallTimeoutError,
    ServerLostError,
    ServerUnavailableError,
    TurnedAwayError,
)
from aggregator.intake import take_in
from aggregator.names import ServerName
from aggregator.supervision import Supervision

logger = logging.getLogger(__name__)

Report = Callable[[ServerName, ServerState], None]
"""Takes note of a server's new state; must not block."""

FAILURES = (OSError, TimeoutError, MCPError, EraUnclearError, ValueError, anyio.BrokenResourceError)
"""What a server can do to us. Anything else is a bug of ours and must be seen."""

MAX_PAGES = 64
"""Pages of a listing that are asked for."""
LISTING_PATIENCE = 15.0
"""Seconds that listing again may take before the earlier listing is kept."""
RELIST_PAUSE = 1.0
"""Seconds between two listings of a server that keeps saying it changed."""
RELIST_PAUSE_MAX = 30.0
"""The same for a server whose listing turns out not to have changed."""
TIMEOUTS_TOLERATED = 3
"""Calls in a row that may time out before the server is taken to be stuck."""


@dataclass(frozen=True, slots=True)
class Loss:
    """How a connection, or the attempt at one, came to its end."""

    reason: str
    ready_for: float | None = None
    """Seconds the server had been ready, `None` if it never was."""
    hopeless: bool = False
    """Whether trying again is pointless until something changes."""
    retry_after: float = 0.0
    """Seconds it asked to be left alone."""


class Downstream:
    """One server: its connection, its state and the calls to it."""

    def __init__(
        self,
        server: ServerConfig,
        *,
        connect: Connect,
        report: Report,
        jitter: Callable[[], float],
        identity: JsonObject,
    ) -> None:
        self._server = server
        self._connect = connect
        self._report = report
        self._identity = identity
        self._supervision = Supervision(jitter)
        self._era: Era | None = None
        self._link: Link | None = None
        self._woken = anyio.Event()
        self._slots = anyio.Semaphore(server.max_in_flight)
        self._timeouts = 0
        self._reason: str | None = None

    @property
    def name(self) -> ServerName:
        """The server's name in servers.yaml."""
        return self._server.name

    async def run(self) -> None:
        """Keep the server connected for as long as this task lives."""
        while True:
            self._say(Pending(self._reason, anyio.current_time()))
            loss = await self._live()
            await self._recover(loss)

    def wake(self) -> None:
        """Cut short a wait for the next attempt, because somebody needs the server now."""
        self._woken.set()

    async def call(
        self,
        params: Mapping[str, Any],
        *,
        on_progress: ProgressFnT,
        capabilities: JsonObject | None = None,
    ) -> dict[str, Any]:
        """Call one of the server's tools and return the result as it came.

        Raises:
            CallError: The call could not be completed.
            MCPError: The server answered with an error of its own.
        """
        link = self._link
        if link is None:
            raise ServerUnavailableError(self.name, self._reason)
        began = anyio.current_time()
        latest = began + self._server.max_call_time
        with anyio.move_on_after(
            min(self._server.call_timeout, self._server.max_call_time)
        ) as wait:

            async def progressed(progress: float, total: float | None, message: str | None) -> None:
                wait.deadline = min(anyio.current_time() + self._server.call_timeout, latest)
                await on_progress(progress, total, message)

            async with self._slot():
                result = await self._ask(link, params, progressed, capabilities)
            self._timeouts = 0
            return result
        self._timed_out(link)
        raise CallTimeoutError(self.name, round(anyio.current_time() - began, 1))

    async def _ask(
        self,
        link: Link,
        params: Mapping[str, Any],
        on_progress: ProgressFnT,
        capabilities: JsonObject | None,
    ) -> dict[str, Any]:
        try:
            return await link.request(
                "tools/call", params, on_progress=on_progress, capabilities=capabilities
            )
        except MCPError as error:
            if await link.was_lost(error):
                raise ServerLostError(self.name) from error
            if isinstance(error.data, Undone):
                raise self._translated(error.data) from error
            raise

    def _translated(self, undone: Undone) -> CallError:
        """Say to the caller what its transport says of a call."""
        if undone.may_have_run:
            return ServerLostError(self.name, undone.reason)
        return TurnedAwayError(self.name, undone.reason)

    @asynccontextmanager
    async def _slot(self) -> AsyncGenerator[None, None]:
        """Take one of the calls that may be in flight, or wait in a queue of bounded length."""
        if self._slots.statistics().tasks_waiting >= self._server.max_queued:
            raise BusyError(self.name)
        async with self._slots:
            yield

    def _timed_out(self, link: Link) -> None:
        """Give up a server that no longer reads, or that has left too much unanswered."""
        self._timeouts += 1
        if link.is_stuck():
            link.give_up("it stopped reading what it is sent")
        elif self._timeouts >= TIMEOUTS_TOLERATED:
            link.give_up(f"it did not answer {self._timeouts} calls in a row")

    async def _live(self) -> Loss:
        """Connect and stay connected until the server is lost."""
        if self._server.problem is not None:
            return Loss(self._server.problem, hopeless=True)
        ready_at: list[float] = []
        try:
            return await self._connected(ready_at)
        except* FAILURES as failures:
            loss = self._explain(failures)
        if ready_at:
            return Loss(loss.reason, ready_for=anyio.current_time() - ready_at[0])
        return loss

    async def _connected(self, ready_at: list[float]) -> Loss:
        with anyio.fail_after(self._server.connect_timeout) as patience:
            async with open_link(
                self._connect, identity=self._identity, era=self._era, answer=refuse
            ) as link:
                self._era = link.peer.era
                state = await self._listed(link)
                patience.deadline = math.inf
                ready_at.append(anyio.current_time())
                return await self._serve(link, state)
        raise AssertionError  # pragma: no cover - the block returns or raises

    async def _serve(self, link: Link, state: Ready) -> Loss:
        """Be ready, follow the server's changes, and return when the link is over."""
        began = anyio.current_time()
        self._link, self._reason, self._timeouts = link, None, 0
        self._say(state)
        try:
            await self._follow(link, state)
        finally:
            self._link = None
        return Loss(
            link.fault or link.describe_end(),
            ready_for=anyio.current_time() - began,
            hopeless=link.is_barred(),
        )

    async def _follow(self, link: Link, state: Ready) -> None:
        """List again whenever the server says that its tools changed, within reason."""
        pause = RELIST_PAUSE
        while True:
            await link.news.wait()
            if link.ended.is_set():
                return
            link.listing()
            listed = await self._relisted(link) or state
            if listed.entries != state.entries or listed.refused != state.refused:
                state, pause = listed, RELIST_PAUSE
                self._say(state)
            else:
                pause = min(pause * 2, RELIST_PAUSE_MAX)
            with anyio.move_on_after(pause):
                await link.ended.wait()

    async def _relisted(self, link: Link) -> Ready | None:
        """List again; `None` if that fails, since what was known still stands."""
        try:
            with anyio.fail_after(LISTING_PATIENCE):
                return await self._listed(link)
        except FAILURES as error:
            logger.warning(
                "%s: could not be listed again (%s); keeping the tools known so far",
                self.name,
                _words(error),
            )
            return None

    async def _listed(self, link: Link) -> Ready:
        """List the server's tools and make a state of them."""
        link.listing()
        tools, refused = await list_all(link)
        entries, more = take_in(self._server, tools)
        for sentence in (*refused, *more):
            logger.warning("%s: %s", self.name, sentence)
        return Ready(
            entries=tuple(entries),
            since=anyio.current_time(),
            era=link.peer.protocol_version,
            version=f"{link.peer.name} {link.peer.version}".strip(),
            instructions=link.peer.instructions,
            refused=(*refused, *more),
        )

    def _explain(self, failures: BaseExceptionGroup[Exception]) -> Loss:
        """Say in words what stood in the way of a connection."""
        error = _first(failures)
        if isinstance(error, EraUnclearError):
            self._era = "handshake" if self._era is None else None
            return Loss("it closed the connection while it was asked who it is")
        if isinstance(error, MCPError) and isinstance(undone := error.data, Undone):
            return Loss(undone.reason, hopeless=undone.is_barred, retry_after=undone.retry_after)
        if isinstance(error, TimeoutError):
            return Loss(f"it was not ready within {self._server.connect_timeout:g} s")
        hopeless = isinstance(error, FileNotFoundError | PermissionError | NotADirectoryError)
        return Loss(_words(error), hopeless=hopeless)

    async def _recover(self, loss: Loss) -> None:
        """Wait as long as is reasonable before the next attempt."""
        self._reason = loss.reason
        self._woken = anyio.Event()
        if loss.hopeless:
            logger.warning(
                "%s: %s; waiting for the configuration to change", self.name, loss.reason
            )
            self._say(Failed(loss.reason, anyio.current_time()))
            await self._woken.wait()
            return
        retry = self._supervision.failed(ready_for=loss.ready_for)
        delay = max(retry.delay, loss.retry_after)
        logger.warning("%s: %s; retrying in %.1f s", self.name, loss.reason, delay)
        phase = "cooling down" if retry.cooling else "retrying"
        self._say(Pending(loss.reason, anyio.current_time(), phase))
        with anyio.move_on_after(delay):
            await self._woken.wait()

    def _say(self, state: ServerState) -> None:
        self._report(self.name, state)


async def list_all(link: Link) -> tuple[list[object], list[str]]:
    """Ask for every page of a server's tools; also say what was wrong with the listing."""
    if link.peer.capabilities and "tools" not in link.peer.capabilities:
        return [], []
    tools: list[object] = []
    cursor: object = None
    asked: set[object] = set()
    while len(asked) < MAX_PAGES:
        result = await link.request("tools/list", None if cursor is None else {"cursor": cursor})
        page: object = result.get("tools")
        if not isinstance(page, list):
            raise MCPError(types.INTERNAL_ERROR, "it answered `tools/list` without a list of tools")
        tools.extend(page)  # pyright: ignore[reportUnknownArgumentType] - checked by `take_in`
        cursor = result.get("nextCursor")
        if not isinstance(cursor, str):
            return tools, []
        if cursor in asked:
            return tools, ["Its listing repeats a page; it is taken to end there"]
        asked.add(cursor)
    return tools, [f"Its listing has more than {MAX_PAGES} pages; the rest is left out"]


def _first(failures: BaseExceptionGroup[Exception]) -> Exception:
    """Return the failure that says most: the deepest first one that is not just a broken pipe."""
    leaves = list(_leaves(failures))
    telling = [each for each in leaves if not isinstance(each, anyio.BrokenResourceError)]
    return (telling or leaves)[0]


def _leaves(failures: BaseExceptionGroup[Exception]) -> list[Exception]:
    found: list[Exception] = []
    for each in failures.exceptions:
        found.extend(_leaves(each) if isinstance(each, BaseExceptionGroup) else [each])
    return found


def _words(error: BaseException) -> str:
    """Put an error into words that fit behind a server's name."""
    if isinstance(error, TimeoutError):
        return "it took too long"
    text = str(error).strip().splitlines()
    return text[0] if text else type(error).__name__
