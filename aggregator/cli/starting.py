"""Show how servers start: live on a terminal, one plain line for each otherwise."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from aggregator.basics.glyphs import on_one_line
from aggregator.cli.environment import Environment
from aggregator.cli.live import LiveLine
from aggregator.cli.pages import counted, is_known, why_not
from aggregator.cli.peer import Peer
from aggregator.records.inspection import SERVERS_URI

INTERVAL = 0.05
"""Seconds between two looks at servers that are starting."""

COUNTING = 10.0
"""Seconds that are waited for tokens to be counted, where the file says by whom."""

TURNS = 4
"""Times as long as one server may take all have, whose turns come as the machine can bear it."""

Server = dict[str, Any]


def await_servers(
    peer: Peer,
    environment: Environment,
    wait: float,
    *,
    enough: Callable[[Sequence[Server]], bool] = lambda _servers: False,
    quiet: bool = False,
) -> list[Server]:
    """Wait until no server is on its way any more, or until it is enough, and say how it goes."""
    # Servers are started once a client has its first list.
    peer.request("tools/list", {})
    line = LiveLine(environment)
    progress = _Progress(environment, line, quiet=quiet)
    deadline = time.monotonic() + wait
    servers: list[Server] = []
    try:
        while True:
            known = peer.read(SERVERS_URI)
            servers = known["servers"]
            progress.show(servers, peer.seconds)
            starting = [server for server in servers if is_starting(server)]
            if not starting or enough(servers) or time.monotonic() >= deadline:
                return _await_counts(peer, known)
            time.sleep(INTERVAL)
    finally:
        line.clear()
        progress.conclude(servers)


def _await_counts(peer: Peer, known: Mapping[str, Any]) -> list[Server]:
    """Give whoever counts tokens a moment to do so."""
    deadline = time.monotonic() + COUNTING
    while known.get("counting") and time.monotonic() < deadline:
        time.sleep(INTERVAL)
        known = peer.read(SERVERS_URI)
    return known["servers"]


def is_starting(server: Server) -> bool:
    """Return whether a server is on its way for the first time, or again."""
    return server["state"] == "pending" and server["phase"] == "starting"


def how_far(params: Mapping[str, Any]) -> str:
    """Say how far a call has come."""
    done, total, message = (params.get(key) for key in ("progress", "total", "message"))
    far = f"{done:g} of {total:g}" if total else f"{done:g}"
    return on_one_line(f"{far}: {message}" if message else far)


class _Progress:
    """What has been said about servers so far."""

    def __init__(self, environment: Environment, line: LiveLine, *, quiet: bool) -> None:
        self._environment = environment
        self._line = line
        self._quiet = quiet
        self._settled: set[str] = set()

    def show(self, servers: Sequence[Server], seconds: float) -> None:
        """Say what is new."""
        if self._line.is_seen:
            self._redraw(servers, seconds)
            return
        for server in () if self._quiet else servers:
            is_news = not is_starting(server) and server["state"] != "idle"
            if is_news and server["name"] not in self._settled:
                self._settled.add(server["name"])
                self._environment.note(_line(server, seconds))

    def conclude(self, servers: Sequence[Server]) -> None:
        """Say what a person at the terminal would not see, as the result goes elsewhere."""
        if not self._line.is_seen or self._environment.stdout.isatty() or self._quiet:
            return
        for server in servers:
            if not is_known(server):
                self._environment.warn(f"{server['name']}: {why_not(server)}")

    def _redraw(self, servers: Sequence[Server], seconds: float) -> None:
        names = [server["name"] for server in servers if is_starting(server)]
        if not names:
            self._line.clear()
            return
        shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if names[4:] else "")
        # A narrow terminal shows the beginning, which is how far it is.
        self._line.show(f"{seconds:.0f} s: {_counted(servers)}starting {shown}")


def _counted(servers: Sequence[Server]) -> str:
    """Say how many of several servers have started, and how many will not."""
    if not servers[1:]:
        return ""
    states = [each["state"] for each in servers if not is_starting(each)]
    started = sum(state in ("ready", "idle") for state in states)
    failed, closed = states.count("failed") + states.count("pending"), states.count("needs login")
    parts = [f"{started} of {len(servers)} started"]
    parts += [f"{failed} failed"] if failed else []
    parts += [f"{closed} without a login"] if closed else []
    return f"{', '.join(parts)}; "


def _line(server: Server, seconds: float) -> str:
    if server["state"] == "ready":
        after = max(0.0, seconds - server["seconds"])
        return (
            f"{server['name']}: ready after {after:.1f} s with {counted(server['tools'], 'tool')}"
        )
    # Why it is so, the result says.
    what = server["phase"] if server["state"] == "pending" else server["state"]
    return f"{server['name']}: {what}"
