"""Tell clients that the list changed: one loop that serves a session of either era."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import anyio

from aggregator.json import JsonObject

GATHERING = 0.1
"""Seconds to wait for more changes before one is announced: servers start in bursts."""
RESTING = 0.3
"""Seconds between two announcements to the same client at the least."""


class Changing(Protocol):
    """Something that is replaced when it changes."""

    @property
    def changed(self) -> anyio.Event:
        """Set at the next change."""
        ...


class Shown:
    """The list a client was last told of, or has fetched."""

    def __init__(self, tools: Sequence[JsonObject]) -> None:
        self.tools = tools


async def announce(
    source: Changing,
    *,
    look: Callable[[], Sequence[JsonObject]],
    shown: Shown,
    tell: Callable[[], Awaitable[None]],
) -> None:
    """Tell a client whenever the list it would get is not the one it knows of.

    A level, not an edge: what is compared is the list itself, so a change that was taken back
    is not announced, and the last state always is.
    """
    while True:
        changed = source.changed
        tools = look()
        if tools == shown.tools:
            await changed.wait()
            await anyio.sleep(GATHERING)
        else:
            shown.tools = tools
            await tell()
            await anyio.sleep(RESTING)
