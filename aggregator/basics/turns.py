"""Do what takes long, and let others on the event loop have their turn meanwhile."""

from collections.abc import Generator
from typing import TypeVar

import anyio.lowlevel

T = TypeVar("T")


async def in_turns(steps: Generator[None, None, T]) -> T:
    """Take all steps of some work, others having their turn after each, and return its outcome."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value
        await anyio.lowlevel.checkpoint()
