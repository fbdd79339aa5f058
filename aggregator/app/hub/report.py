"""What the hub says of itself: fleets, who uses them, and why some have one of their own."""

import os
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from aggregator import __version__
from aggregator.app.hub.shared_fleet import SharedFleet

PROC = Path("/proc")
PARENT, PAGES = 1, 21
"""Where `/proc/<pid>/stat` has these, counted from behind the name."""


def report(fleets: Sequence[SharedFleet], since: float, log: str) -> dict[str, Any]:
    """Return all of it as a document."""
    return {
        "version": __version__,
        "process": os.getpid(),
        "since": since,
        "memory": memory_of(os.getpid()),
        "log": log,
        "fleets": [_fleet(shared, fleets[:number]) for number, shared in enumerate(fleets)],
    }


def _fleet(shared: SharedFleet, before: Sequence[SharedFleet]) -> dict[str, Any]:
    alike = next((each for each in before if shared.resolved.is_of_same_file(each.resolved)), None)
    apart = (
        [] if alike is None else list(dict.fromkeys(shared.resolved.differences(alike.resolved)))
    )
    return {
        "config": str(shared.resolved.config.path),
        "since": shared.since,
        "servers": _servers(shared),
        "clients": _clients(shared),
        "apart": apart,
    }


def _servers(shared: SharedFleet) -> dict[str, str]:
    """Return the state of each server."""
    if shared.upstream is None:
        return {}
    states = shared.upstream.fleet.now.catalog.servers
    return {str(name): type(state).__name__.lower() for name, state in states.items()}


def _clients(shared: SharedFleet) -> list[dict[str, Any]]:
    conversations = () if shared.upstream is None else shared.upstream.conversations
    names = {each.visitor: each.client for each in conversations if each.client}
    return [
        {
            "name": names.get(session.visitor, session.title),
            "process": session.process,
            "directory": session.hello.directory,
            "since": session.since,
        }
        for session in shared.sessions
    ]


def memory_of(process: int) -> int | None:
    """Return the bytes that a process and all that it has started hold, where the system says."""
    children = defaultdict[int, list[int]](list)
    pages: dict[int, int] = {}
    for entry in PROC.iterdir() if PROC.is_dir() else ():
        if not entry.name.isdigit():
            continue
        with suppress(OSError, ValueError, IndexError):
            fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
            children[int(fields[PARENT])].append(int(entry.name))
            pages[int(entry.name)] = int(fields[PAGES])
    family, waiting = 0, [process]
    while waiting:
        each = waiting.pop()
        family += pages.get(each, 0)
        waiting += children[each]
    return family * os.sysconf("SC_PAGE_SIZE") or None
