"""Become another program under limits: a program of its own, started in place of a server.

    python limited.py MEMORY PROCESSES FILES COMMAND [ARGUMENT ...]

Limits cannot be set between fork and exec of a parent with threads, and set from outside they
come too late for what the program does first. An empty word is no limit.
"""

import os
import resource
import sys

KINDS = (resource.RLIMIT_AS, resource.RLIMIT_NPROC, resource.RLIMIT_NOFILE)


def main(limits: list[str], command: list[str]) -> None:
    """Limit this process, and all that it will start, and become the command."""
    for kind, limit in zip(KINDS, limits, strict=True):
        if limit:
            restrict(kind, int(limit))
    os.execvp(command[0], command)  # noqa: S606 - a list, never a shell


def restrict(kind: int, limit: int) -> None:
    """Set a limit for good, but never a higher one than there is."""
    _, hard = resource.getrlimit(kind)
    most = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(kind, (most, most))


if __name__ == "__main__":
    main(sys.argv[1:4], sys.argv[4:])
