"""What one client is still to be told that belongs to none of its requests."""

from collections import deque
from collections.abc import Awaitable, Callable

from aggregator.basics.json import JsonObject
from aggregator.basics.signals import Signal

MAX_WAITING = 100
"""Notices kept for a client that does not take them; the oldest are dropped."""


class Notices:
    """A queue of notices to one client."""

    def __init__(self) -> None:
        self._waiting = deque[tuple[str, JsonObject]](maxlen=MAX_WAITING)
        self._added = Signal()

    def put(self, method: str, params: JsonObject) -> None:
        """Have the client told."""
        self._waiting.append((method, params))
        self._added.send()

    async def run(self, tell: Callable[[str, JsonObject], Awaitable[None]]) -> None:
        """Tell the client, in order, until cancelled."""
        while True:
            while self._waiting:
                await tell(*self._waiting.popleft())
            await self._added.wait()
