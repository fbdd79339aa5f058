"""Wait, within bounds, for a server that somebody needs now, and for what many of them offer."""

from collections.abc import Callable, Collection
from math import inf

import anyio

from aggregator.basics.signals import Signal
from aggregator.catalog import Failed, Idle, Ready, ServerState
from aggregator.downstream.server import Downstream
from aggregator.errors import ServerUnavailableError
from aggregator.fleet.approving import Approving
from aggregator.fleet.indexing import Indexing
from aggregator.fleet.now import Now
from aggregator.fleet.profile_views import ProfileViews
from aggregator.fleet.starting import GRACE, due, is_settled, is_starting
from aggregator.names import ServerName

HOPELESS = 3
"""Attempts in a row that have failed, after which whoever calls is told why and waits no more."""
HOPE = 5.0
"""Seconds for which a call waits for one attempt more at a server that keeps failing."""


class Awaiting:
    """Lets requests wait for what a moment may bring."""

    def __init__(
        self,
        now: Callable[[], Now],
        changed: Signal,
        *,
        queued: Callable[[], Collection[ServerName]],
        indexing: Indexing,
        profile_views: ProfileViews,
        approving: Approving,
    ) -> None:
        self._now = now
        self._changed = changed
        self._queued = queued
        """Returns the servers that are to start, and it is not their turn yet."""
        self._indexing = indexing
        self._profile_views = profile_views
        self._approving = approving

    async def until_settled(self, servers: Collection[ServerName], patience: float) -> None:
        """Wait, within bounds, until none of these servers is on its way any more."""
        with anyio.move_on_after(patience):
            while any(is_starting(self._now().state(name)) for name in servers):
                await self._changed.wait()

    async def until_started(
        self, concerned: Callable[[Now], Collection[ServerName]], kind: str = "tools"
    ) -> bool:
        """Wait while servers that are concerned are in the first seconds of their start.

        Return whether that took time.
        """
        has_waited = False
        with anyio.move_on_after(GRACE):
            while (until := self._due(concerned(self._now()), kind)) > anyio.current_time():
                has_waited = True
                with anyio.CancelScope(deadline=until):
                    await self._changed.wait()
        return has_waited

    async def until_read(self, servers: Collection[ServerName], profile: str | None = None) -> None:
        """Wait, within bounds, until what is known of servers can be found by some clients."""
        profile_views = [self._profile_views.of(each) for each in dict.fromkeys((None, profile))]
        with anyio.move_on_after(GRACE):
            while not all(profile_view.is_read(servers) for profile_view in profile_views):
                await self._changed.wait()

    async def until_compared(self) -> None:
        """Wait, within bounds, until what is shown has been compared with what was approved."""
        with anyio.move_on_after(GRACE):
            while self._approving.is_awaited or not self._indexing.is_checked:
                await self._changed.wait()

    async def until_followed(self, server: ServerName) -> None:
        """Wait, within bounds, until what was approved of a server a moment ago is offered."""
        with anyio.move_on_after(GRACE):
            while self._approving.is_behind or not self._indexing.is_at_rest(server):
                await self._changed.wait()

    def _due(self, servers: Collection[ServerName], kind: str) -> float:
        """Return until when to wait for these servers; whose turn has not come begins later."""
        now = self._now()
        if not (set(self._queued()) - now.catalog.known.keys()).isdisjoint(servers):
            return inf
        return max((due(now.state(name), kind) for name in servers), default=-inf)


async def until_ready(
    downstream: Downstream, state: Callable[[], ServerState], changed: Signal
) -> None:
    """Wake a server that is not there and wait for it, as long as it may take to start.

    The time in which it could not start, since others had their turn, does not count. One that
    keeps failing is not waited for through all its attempts: why it fails is known.

    Raises:
        ServerUnavailableError: It did not become ready.
    """
    before, vain = state(), downstream.vain_attempts
    downstream.wake()
    came = anyio.current_time() - downstream.lost_time
    with downstream.awaited():
        while not is_settled(state(), before):
            has_failed = downstream.vain_attempts != vain
            is_hopeless = downstream.vain_attempts >= HOPELESS
            patience = downstream.server.connect_timeout
            if has_failed or is_hopeless:
                patience = min(HOPE, patience)
            until = came + patience + downstream.lost_time
            if until <= anyio.current_time() or (has_failed and is_hopeless):
                break
            with anyio.CancelScope(deadline=until):
                await changed.wait()
    if not isinstance(state(), Ready):
        raise unavailable(downstream, state())


def unavailable(downstream: Downstream, state: ServerState) -> ServerUnavailableError:
    """Say why a server cannot be used."""
    login = state.login if isinstance(state, Failed) else None
    reason = None if isinstance(state, Idle | Ready) else state.reason
    return ServerUnavailableError(downstream.name, reason, login=login)
