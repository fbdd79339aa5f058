"""Room for what outlives the request that began it, for as long as there is any."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import anyio.abc


class Background:
    """A group of tasks for the length of a block; before and after, there is none."""

    def __init__(self) -> None:
        self.group: anyio.abc.TaskGroup | None = None
        """Where tasks are begun, if there is room for them."""

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[None, None]:
        """Have room for the length of the block, and end what is left in it then."""
        async with anyio.create_task_group() as group:
            self.group = group
            try:
                yield
            finally:
                self.group = None
                group.cancel_scope.cancel()
