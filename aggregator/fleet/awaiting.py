"""Wait for one server that somebody needs now."""

from collections.abc import Callable

import anyio

from aggregator.catalog import Failed, Idle, Ready, ServerState
from aggregator.downstream.server import Downstream
from aggregator.errors import ServerUnavailableError
from aggregator.fleet.starting import is_settled
from aggregator.signals import Signal


async def until_ready(
    downstream: Downstream, state: Callable[[], ServerState], changed: Signal
) -> None:
    """Wake a server that is not there and wait for it, as long as it may take to start.

    The time in which it could not start, since others had their turn, does not count.

    Raises:
        ServerUnavailableError: It did not become ready.
    """
    before = state()
    downstream.wake()
    patience = downstream.server.connect_timeout
    overdue = anyio.current_time() + patience - downstream.lost_time
    with downstream.awaited():
        while not is_settled(state(), before):
            until = overdue + downstream.lost_time
            if until <= anyio.current_time():
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
