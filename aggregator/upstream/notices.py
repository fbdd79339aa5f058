"""What one client is still to be told that belongs to none of its requests."""

from collections import deque
from collections.abc import Awaitable, Callable

import anyio

from aggregator.json import JsonObject

MAX_WAITING = 100
"""Notices kept for a client that does not take them; the oldest are dropped."""


class Notices:
    """A queue of notices to one client."""

    def __init__(self) -> None:
        self._waiting = deque[tuple[str, JsonObject]](maxlen=MAX_WAITING)
        self._stirred = anyio.Event()

    def put(self, method: str, params: JsonObject) -> None:
        """Have the client told."""
        self._waiting.append((method, params))
        self._stirred.set()

    async def run(self, tell: Callable[[str, JsonObject], Awaitable[None]]) -> None:
        """Tell the client, in order, until cancelled."""
        while True:
            await self._stirred.wait()
            self._stirred = anyio.Event()
            while self._waiting:
                await tell(*self._waiting.popleft())
