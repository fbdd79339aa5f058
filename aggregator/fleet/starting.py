"""Until when a server that is not there is worth waiting for: arithmetic on times passed in."""

from collections.abc import Iterable
from math import inf

from aggregator.catalog import Failed, Pending, Ready, ServerState

GRACE = 3.0
"""Seconds after its start began for which questions about everything wait for a server."""


def is_forgotten(state: ServerState, time: float) -> bool:
    """Whether a server has been away for so long that what it offered no longer counts."""
    return isinstance(state, Pending) and state.known is not None and time >= state.until


def next_forgotten(states: Iterable[ServerState]) -> float:
    """Return when the first of those that are away has been so for too long."""
    away = (each.until for each in states if isinstance(each, Pending) and each.known)
    return min(away, default=inf)


def is_starting(state: ServerState) -> bool:
    """Whether a server is being connected to, and not waiting for another attempt."""
    return isinstance(state, Pending) and state.phase == "starting"


def is_first_try(state: ServerState) -> bool:
    """Whether a server is being connected to, and has not failed since it was last there."""
    return isinstance(state, Pending) and state.reason is None and is_starting(state)


def due(state: ServerState, kind: str) -> float:
    """Return until when to wait for what a server lists of this kind; the past if it is known.

    One that has failed to start is not waited for again before it has been ready.
    """
    if isinstance(state, Ready):
        return state.since + GRACE if kind in state.offers.unlisted else -inf
    is_hopeful = isinstance(state, Pending) and is_first_try(state) and state.lacks(kind)
    return state.since + GRACE if is_hopeful else -inf


def is_settled(state: ServerState, before: ServerState) -> bool:
    """Whether waiting any longer is pointless: it is there, or another attempt has failed."""
    if isinstance(state, Ready):
        return True
    is_cooling = isinstance(state, Pending) and state.phase == "cooling down"
    return (isinstance(state, Failed) or is_cooling) and state is not before
