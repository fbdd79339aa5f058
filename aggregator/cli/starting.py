"""Show how servers start: live on a terminal, one plain line for each otherwise."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from aggregator.cli.environment import Environment
from aggregator.cli.peer import Peer
from aggregator.inspection import SERVERS_URI

INTERVAL = 0.05
"""Seconds between two looks at servers that are starting."""

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
    progress = _Progress(environment, quiet=quiet)
    deadline = time.monotonic() + wait
    try:
        while True:
            servers: list[Server] = peer.read(SERVERS_URI)["servers"]
            progress.show(servers, peer.seconds)
            starting = [server for server in servers if is_starting(server)]
            if not starting or enough(servers) or time.monotonic() >= deadline:
                return servers
            time.sleep(INTERVAL)
    finally:
        clear_line(environment)


def is_starting(server: Server) -> bool:
    """Return whether a server is on its way for the first time, or again."""
    return server["state"] == "pending" and server["phase"] == "starting"


def tell_progress(environment: Environment, params: Mapping[str, Any]) -> None:
    """Say how far a call has come."""
    done, total, message = (params.get(key) for key in ("progress", "total", "message"))
    far = f"{done:g} of {total:g}" if total else f"{done:g}"
    line = f"{far}: {message}" if message else far
    if environment.stderr.isatty():
        print(f"\r\x1b[K{line[:99]}", end="", file=environment.stderr, flush=True)
    else:
        environment.note(line)


def clear_line(environment: Environment) -> None:
    """Take a live line away."""
    if environment.stderr.isatty():
        print("\r\x1b[K", end="", file=environment.stderr, flush=True)


class _Progress:
    """What has been said about servers so far."""

    def __init__(self, environment: Environment, *, quiet: bool) -> None:
        self._environment = environment
        self._live = environment.stderr.isatty()
        self._quiet = quiet
        self._settled: set[str] = set()

    def show(self, servers: Sequence[Server], seconds: float) -> None:
        """Say what is new."""
        if self._live:
            self._redraw(servers, seconds)
            return
        for server in () if self._quiet else servers:
            if not is_starting(server) and server["name"] not in self._settled:
                self._settled.add(server["name"])
                self._environment.note(_line(server, seconds))

    def _redraw(self, servers: Sequence[Server], seconds: float) -> None:
        names = [server["name"] for server in servers if is_starting(server)]
        shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if names[4:] else "")
        done = len(servers) - len(names)
        line = f"{done} of {len(servers)} servers started ({seconds:.1f} s); starting {shown}"
        print(f"\r\x1b[K{line[:99]}", end="", file=self._environment.stderr, flush=True)


def _line(server: Server, seconds: float) -> str:
    if server["state"] == "ready":
        after = max(0.0, seconds - server["seconds"])
        return f"{server['name']}: ready after {after:.1f} s with {server['tools']} tools"
    what = "failed" if server["state"] == "failed" else server["phase"]
    return f"{server['name']}: {what}: {server['reason'] or 'no reason given'}"
