"""Messages to a server that nobody waits for: a few at a time, each on a connection of its own.

A server may ask thousands of questions in one answer; without a limit, each would get its answer
on one more connection.
"""

from collections import deque
from collections.abc import Awaitable, Callable

import anyio.abc

AT_ONCE = 8
"""Messages on their way to one server at a time."""
MAX_WAITING = 256
"""Messages that may wait behind them; more are dropped, as for a child that does not read."""

Task = Callable[[], Awaitable[None]]


class Background:
    """Runs tasks in the order they came, so many at a time."""

    def __init__(self, group: anyio.abc.TaskGroup) -> None:
        self._group = group
        self._running = 0
        self._waiting = deque[Task]()

    def run(self, task: Task) -> None:
        """Run a task now or later, unless too many wait already."""
        if self._running < AT_ONCE:
            self._running += 1
            self._group.start_soon(self._work, task)
        elif len(self._waiting) < MAX_WAITING:
            self._waiting.append(task)

    async def _work(self, task: Task) -> None:
        try:
            await task()
            while self._waiting:
                await self._waiting.popleft()()
        finally:
            self._running -= 1
