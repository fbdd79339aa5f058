"""How many files may be open at a time: more here than in what we start.

Programs that wait with `select` break on the 1,025th, so whoever is started by us gets the limit
that we were given, and not the one that we need.
"""

import sys
from contextlib import suppress

if sys.platform != "win32":
    import resource

WANTED = 16_384
"""Open files that we ask for: clients, and four for each server."""
HARMLESS = 1024
"""Open files that `select` can wait for; no more are asked for where children cannot be given back
what was before."""
UNKNOWN = 512
"""Open files taken for granted where the system does not say."""

_before: list[int] = []
"""What we were given, once we have asked for more."""


def raise_limit() -> None:
    """Let us have as many as we want, or as many as the system lets us have."""
    if sys.platform == "win32":
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED if hasattr(resource, "prlimit") else HARMLESS
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft in (resource.RLIM_INFINITY, -1) or soft >= wanted:
        return
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        _before.append(soft)


def limit() -> int:
    """Return how many there may be now."""
    if sys.platform == "win32":
        return UNKNOWN
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return WANTED if soft in (resource.RLIM_INFINITY, -1) else soft


def give_back(pid: int) -> None:
    """Give a process that we have just started the limit that we were given."""
    if sys.platform == "linux" and _before:
        # It may have ended by now, or be another user's.
        with suppress(OSError, ValueError):
            _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (_before[0], hard))
