"""What to say of servers that are not connected."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from aggregator.catalog import (
    Failed,
    Idle,
    Pending,
    Ready,
    ServerState,
    ToolEntry,
    explain_unreachable,
)
from aggregator.names import ServerName
from aggregator.toolsearch.view import STANDING_BY, View
from aggregator.toolsearch.wording import counted, fitting, in_clauses, listed, one_line

MAX_REASON = 160
"""Characters of why a server is not connected."""
MAX_ADVICE = 320
"""The same, where it may be the answer and a person can do something about it."""
MAX_COMMAND = 600
"""The same, where the reason names a command to be run."""
MIN_NAMED = 120
"""Characters of the names of one server's tools that are told in any case."""
SHORTEST = 12
"""Characters that the line of a server has at the least."""
MAX_PROBLEM = 400
"""Characters of why the file cannot be used."""


class Unready(NamedTuple):
    """A server that is not connected."""

    name: ServerName
    state: str
    reason: str | None
    seconds: int
    """How long it has been so."""
    login: str | None = None
    """The command that logs in to it, if that is all it needs."""

    @property
    def is_starting(self) -> bool:
        """Whether a start is under way, which can be waited for."""
        return self.state == "starting"

    def __str__(self) -> str:
        return f"{self.name} ({self.state} for {self.seconds} s)"


def pending(view: View) -> list[Unready]:
    """Return the servers whose tools may still come."""
    return [
        Unready(
            name,
            state.phase,
            state.reason and in_clauses(state.reason, MAX_REASON),
            _seconds(state, view),
        )
        for name in view.catalog.pending
        if isinstance(state := view.catalog.servers[name], Pending) and not state.known
    ]


def failed(view: View) -> list[Unready]:
    """Return the servers that were given up on."""
    return [
        Unready(
            name,
            _given_up(state),
            in_clauses(state.reason, MAX_ADVICE),
            _seconds(state, view),
            state.login,
        )
        for name in view.catalog.failed
        if isinstance(state := view.catalog.servers[name], Failed)
    ]


def _given_up(state: Failed) -> str:
    return "failed" if state.login is None else "needs login"


def _seconds(state: Pending | Failed, view: View) -> int:
    return max(0, round(view.now - state.since))


def problem(view: View) -> list[str]:
    """Say, if it is so, that the configuration in use is not what the file says now."""
    if view.problem is None:
        return []
    return [f"{one_line(view.problem, MAX_PROBLEM)}; going on with the configuration in use."]


def overview(view: View, room: int) -> str:
    """Tell of each server what it is for and which tools it has, in so many characters."""
    told = "\n".join(_lines(view, room))
    left = room - len(told) - 2
    # A part of the names would only make believe that there are no others.
    entries = [*view.catalog.entries.values(), *view.shown.every_told()]
    if sum(len(entry.name) + 2 for entry in entries) > left:
        return told
    named = menu(entries, left)
    return "\n".join([told, "", *named]) if named else told


def _lines(view: View, room: int) -> list[str]:
    """Tell of each server on a line, at such length as there is room for."""
    servers = [*view.catalog.servers.items()]
    # What cannot be shown need not be written: there may be thousands.
    some = servers[: room // SHORTEST + 1]
    bare = [_line(*each, view, 0) for each in some]
    if len(some) < len(servers) or not _fits(bare, room):
        return fitting(bare, room, len(servers) - len(some))
    pages = ([_line(*each, view, limit) for each in servers] for limit in (200, 80, 40))
    return next((lines for lines in pages if _fits(lines, room)), bare)


def _fits(lines: Sequence[str], room: int) -> bool:
    return sum(map(len, lines)) + len(lines) <= room


def menu(entries: Iterable[ToolEntry], room: int) -> list[str]:
    """Name tools by what their names begin with, which is said once, in about so much room."""
    heads: dict[str, list[str]] = {}
    for entry in entries:
        head, sign, tail = entry.name.partition(":" if ":" in entry.name else "__")
        # What begins with nothing in common is named whole.
        lead, rest = (f"{head}{sign}".removesuffix(":"), tail) if sign else ("", entry.name)
        heads.setdefault(lead, []).append(rest)
    share = max(room // max(len(heads), 1), MIN_NAMED)
    whole = sum(len(tail) + 2 for tails in heads.values() for tail in tails) <= room
    limit = room if whole else share
    return [
        f"{head}: {listed(tails, limit)}" if head else listed(tails, limit)
        for head, tails in heads.items()
    ]


def _line(name: ServerName, state: ServerState, view: View, limit: int) -> str:
    about = one_line(view.descriptions.get(name, ""), limit)
    told = one_line(_told(name, state, view), MAX_REASON)
    why = None if isinstance(state, Ready) else state.reason
    # A command that is cut is of no use.
    needs_login = isinstance(state, Failed) and state.login is not None
    reason = in_clauses(why or "", MAX_COMMAND if needs_login else MAX_REASON)
    said = f"- {name} ({told})" + (f": {about}" if about else "")
    return f"{said} | {reason}" if reason else said


def _told(name: ServerName, state: ServerState, view: View) -> str:
    parts = [*_offered(name, state, view)]
    match state:
        case Failed():
            parts.append(_given_up(state))
        case Pending():
            parts.append(f"{state.phase} for {_seconds(state, view)} s")
        case Idle():
            parts.append(STANDING_BY)
        case Ready():
            pass
    return "; ".join(parts)


def _offered(name: ServerName, state: ServerState, view: View) -> Iterator[str]:
    if state.known is not None:
        yield counted(len(state.known.entries) - len(view.catalog.unreachable(name)), "tool")
        if withheld := len(state.known.whole) - len(state.known.entries):
            yield f"{withheld} withheld until approved"
        elif state.known.is_new:
            yield "not approved yet"
        elif differing := len(state.known.drift):
            yield f"{differing} changed since approved"
    if hidden := explain_unreachable(view.catalog, name):
        yield hidden
