"""What to say of servers that are not connected."""

from dataclasses import dataclass

from aggregator.catalog import Failed, Pending, Ready, ServerState
from aggregator.names import ServerName
from aggregator.toolsearch.view import View
from aggregator.toolsearch.wording import counted, fitting, one_line

MAX_REASON = 160
"""Characters of why a server is not connected."""


@dataclass(frozen=True, slots=True)
class Unready:
    """A server that is not connected."""

    name: ServerName
    state: str
    reason: str | None
    seconds: int
    """How long it has been so."""

    def __str__(self) -> str:
        because = f": {self.reason}" if self.reason else ""
        return f"{self.name} ({self.state} for {self.seconds} s{because})"


def pending(view: View) -> list[Unready]:
    """Return the servers whose tools may still come."""
    return [
        Unready(
            name,
            state.phase,
            state.reason and one_line(state.reason, MAX_REASON),
            _seconds(state, view),
        )
        for name, state in view.catalog.servers.items()
        if isinstance(state, Pending)
    ]


def failed(view: View) -> list[Unready]:
    """Return the servers that were given up on."""
    return [
        Unready(name, "failed", one_line(state.reason, MAX_REASON), _seconds(state, view))
        for name, state in view.catalog.servers.items()
        if isinstance(state, Failed)
    ]


def _seconds(state: Pending | Failed, view: View) -> int:
    return max(0, round(view.now - state.since))


def overview(view: View, room: int) -> str:
    """Tell of each server what it is for and how many tools it has, in so many characters."""
    lines: list[str] = []
    for limit in (200, 80, 40, 0):
        lines = [_line(name, state, view, limit) for name, state in view.catalog.servers.items()]
        if sum(map(len, lines)) + len(lines) <= room:
            break
    return "\n".join(fitting(lines, room))


def _line(name: ServerName, state: ServerState, view: View, limit: int) -> str:
    about = one_line(view.descriptions.get(name, ""), limit)
    match state:
        case Ready(entries=entries):
            told = counted(len(entries), "tool")
        case Pending(phase=phase, reason=reason):
            told = f"{phase} for {_seconds(state, view)} s" + (f": {reason}" if reason else "")
        case Failed(reason=reason):
            told = f"failed: {reason}"
    told = one_line(told, MAX_REASON)
    return f"- {name} ({told})" + (f": {about}" if about else "")
