"""Wait for processes to end, by what the kernel tells of them."""

import os
import select
import time
from collections.abc import Iterable
from contextlib import ExitStack, suppress

import anyio


def await_ends(pids: Iterable[int], patience: float) -> None:
    """Wait until all of these processes have ended, or for so long."""
    deadline = time.monotonic() + patience
    with ExitStack() as stack:
        for descriptor in _descriptors(pids, stack):
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            poll.poll(1000 * max(0.0, deadline - time.monotonic()))


async def ended(pids: Iterable[int]) -> None:
    """Wait until all of these processes have ended."""
    with ExitStack() as stack:
        for descriptor in _descriptors(pids, stack):
            await anyio.wait_readable(descriptor)


def _descriptors(pids: Iterable[int], stack: ExitStack) -> list[int]:
    """Return something to wait on for each that is still there."""
    found = list[int]()
    for pid in pids:
        with suppress(ProcessLookupError):
            found.append(os.pidfd_open(pid))
            stack.callback(os.close, found[-1])
    return found
