"""Which profile an address stands for: `/mcp/<profile>`."""

from collections.abc import Collection
from typing import NamedTuple

from aggregator.upstream.http.binding import PROTOCOL


class Chosen(NamedTuple):
    """What was chosen by an address where clients come in."""

    profile: str | None
    """The name of a profile; nothing if none was."""


def profile_at(path: str, known: Collection[str], only: str | None = None) -> Chosen | None:
    """Return what an address stands for; nothing if it is none where clients come in.

    Where all clients are to have one profile there is an address of that, and of no other.
    """
    if path == PROTOCOL:
        return Chosen(only)
    name = path.removeprefix(f"{PROTOCOL}/")
    if name == path or name not in known or only not in (None, name):
        return None
    return Chosen(name)
