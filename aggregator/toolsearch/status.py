"""What to say of servers that are not connected."""

from dataclasses import dataclass

from aggregator.catalog import Failed, Pending, Ready, ServerState
from aggregator.names import ServerName
from aggregator.toolsearch.view import View
from aggregator.toolsearch.wording import counted, fitting, one_line

MAX_REASON = 160
"""Characters of why a server is not connected."""
MAX_PROBLEM = 400
"""Characters of why the file cannot be used."""


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


def problem(view: View) -> list[str]:
    """Say, if it is so, that the configuration in use is not what the file says now."""
    if view.problem is None:
        return []
    return [f"{one_line(view.problem, MAX_PROBLEM)}; going on with the configuration in use."]


def overview(view: View, room: int) -> str:
    """Tell of each server what it is for and how many tools it has, in so many characters."""
    servers = view.catalog.servers.items()
    pages = [[_line(*each, view, limit) for each in servers] for limit in (200, 80, 40, 0)]
    fits = (lines for lines in pages if sum(map(len, lines)) + len(lines) <= room)
    return "\n".join(next(fits, None) or fitting(pages[-1], room))


def _line(name: ServerName, state: ServerState, view: View, limit: int) -> str:
    about = one_line(view.descriptions.get(name, ""), limit)
    told = one_line(_told(state, view), MAX_REASON)
    return f"- {name} ({told})" + (f": {about}" if about else "")


def _told(state: ServerState, view: View) -> str:
    if isinstance(state, Ready):
        return counted(len(state.entries), "tool")
    if isinstance(state, Failed):
        return f"failed: {state.reason}"
    because = f": {state.reason}" if state.reason else ""
    return f"{state.phase} for {_seconds(state, view)} s{because}"
