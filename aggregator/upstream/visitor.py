"""The client at the other end of a stream: what tells it from others, and where it works.

In a process of its own it is the only one, and what is said of it is said of the process. Where
several share the servers, nothing of one client may be taken for another's.
"""

import os
from typing import NamedTuple


class Visitor(NamedTuple):
    """One client on a stream of its own."""

    key: str
    """What tells it from all others here; nothing where there can be no other."""
    directory: str
    """Where it works."""
    process: int
    """What it runs as: once that has ended, another may go on where it was."""
    profile: str | None = None
    """What it is to see, where whoever started it has chosen."""

    @classmethod
    def of_process(cls, profile: str | None = None) -> "Visitor":
        """Return the only client of this process."""
        try:
            directory = os.getcwd()  # noqa: PTH109 - a part of a key, no path
        except OSError:
            # It has been removed.
            directory = ""
        return cls("", directory, os.getpid(), profile)

    @property
    def is_only(self) -> bool:
        """Whether the servers are all its own."""
        return not self.key
