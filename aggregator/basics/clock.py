"""The clock of the event loop, found once by whoever asks it the time with every call."""

import asyncio  # noqa: TID251 - its loop is its own clock
from collections.abc import Callable

import anyio

Clock = Callable[[], float]
"""Tells the time that `anyio.current_time` tells."""


def running_clock() -> Clock:
    """Return the clock of the loop that runs us; without one, what looks for it each time.

    To find out which loop runs takes longer than much of what is done at that time.
    """
    loop = asyncio_loop()
    return anyio.current_time if loop is None else loop.time


def asyncio_loop() -> asyncio.AbstractEventLoop | None:
    """Return the loop that runs us, if it is one of asyncio."""
    try:
        return asyncio.get_running_loop() if asyncio.current_task() else None
    except RuntimeError:
        return None
