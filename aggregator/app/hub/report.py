"""What the hub says of itself: fleets, who uses them, and why some have one of their own."""

import os
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from aggregator import __version__
from aggregator.app.hub.pier import Pier

PROC = Path("/proc")
PARENT, PAGES = 1, 21
"""Where `/proc/<pid>/stat` has these, counted from behind the name."""


def report(piers: Sequence[Pier], since: float, log: str) -> dict[str, Any]:
    """Return all of it as a document."""
    return {
        "version": __version__,
        "process": os.getpid(),
        "since": since,
        "memory": memory_of(os.getpid()),
        "log": log,
        "fleets": [_fleet(pier, piers[:number]) for number, pier in enumerate(piers)],
    }


def _fleet(pier: Pier, before: Sequence[Pier]) -> dict[str, Any]:
    alike = next((each for each in before if pier.resolved.is_of_same_file(each.resolved)), None)
    apart = [] if alike is None else list(dict.fromkeys(pier.resolved.differences(alike.resolved)))
    return {
        "config": str(pier.resolved.config.path),
        "since": pier.since,
        "servers": _servers(pier),
        "clients": _clients(pier),
        "apart": apart,
    }


def _servers(pier: Pier) -> dict[str, str]:
    """Return the state of each server."""
    if pier.upstream is None:
        return {}
    states = pier.upstream.fleet.now.catalog.servers
    return {str(name): type(state).__name__.lower() for name, state in states.items()}


def _clients(pier: Pier) -> list[dict[str, Any]]:
    conversations = () if pier.upstream is None else pier.upstream.conversations
    names = {each.visitor: each.client for each in conversations if each.client}
    return [
        {
            "name": names.get(session.visitor, session.title),
            "process": session.process,
            "directory": session.hello.directory,
            "since": session.since,
        }
        for session in pier.sessions
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
