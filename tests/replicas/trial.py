"""Many clients of several replicas, while something happens to one of these or to all."""

import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

import anyio

from tests.replicas.cluster import Cluster
from tests.replicas.guest import Account, Guest

Event = Callable[[Cluster], Awaitable[None]]
"""What happens in the middle."""


class Trial:
    """What came of it."""

    def __init__(self) -> None:
        self.account = Account()
        self.seconds = 0.0
        self.moment = 0.0
        """When it happened, by the same clock as failures."""

    @property
    def rate(self) -> float:
        """Requests that were answered in a second."""
        return self.account.done.total() / self.seconds

    @property
    def beyond(self) -> int:
        """How many have failed that were not under way when it happened."""
        return len(self.account.beyond(self.moment))

    def examples(self) -> list[str]:
        """Return some of what went wrong, with when, counted from the moment that it happened."""
        account = self.account
        failures = [*account.beyond(self.moment), *account.failures][:3]
        told = [
            f"{each.what}, {each.began - self.moment:.3f} to {each.ended - self.moment:.3f} s"
            for each in failures
        ]
        return [*told, *account.crossed[:3]]

    def line(self) -> str:
        """Show it to a person."""
        account = self.account
        return (
            f"{account.done.total():,} requests ({account.done['calls']:,} calls) in "
            f"{self.seconds:.1f} s, {self.rate:.0f} a second: {len(account.failures)} failed, "
            f"{self.beyond} of them not under way when it happened, "
            f"{len(account.crossed)} crossed, {account.told} told to send again, "
            f"{account.announced} announcements"
        )


async def nothing(_running: Cluster) -> None:
    """Let it go on."""


async def edits(running: Cluster) -> None:
    """Change lists."""
    running.edit()


async def kills(running: Cluster) -> None:
    """End one without a word."""
    running.replicas[0].kill()


async def restarts(running: Cluster) -> None:
    """Replace all, one after the other."""
    await running.restart_all()


async def loses_store(running: Cluster) -> None:
    """End the store without a word, and start an empty one in its place."""
    assert running.store is not None
    running.store.stop()
    await anyio.sleep(1)
    await running.store.start()


async def trial(running: Cluster, clients: int, steps: int, happens: Event = nothing) -> Trial:
    """Have so many clients do so much each, with something in the middle of it."""
    found = Trial()
    found.account.mark = clients * steps // 3
    over = anyio.Event()
    async with AsyncExitStack() as stack:
        guests = [Guest(number, running.url, found.account) for number in range(clients)]
        for guest in guests:
            await stack.enter_async_context(guest.present())
        began = time.monotonic()
        async with anyio.create_task_group() as group:
            for guest in guests:
                group.start_soon(guest.work, steps, over)
            await found.account.marked.wait()
            found.moment = time.monotonic()
            await happens(running)
            over.set()
        found.seconds = time.monotonic() - began
    return found
