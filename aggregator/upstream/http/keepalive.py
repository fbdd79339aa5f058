"""Keeps connections open on which nothing is said for long: gateways close those that are silent.

One task looks at all of them now and then, so that a request which is answered at once costs
nothing more than its place in a dictionary.
"""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Protocol

import anyio

from aggregator.basics.signals import Signal

TICK = 5.0
"""Seconds between two looks."""
SILENCE = 3
"""Ticks without a word after which a client is sent something that means nothing."""


class KeptAlive(Protocol):
    """What somebody waits for."""

    async def beat(self) -> None:
        """Let whoever waits know that it is not forgotten."""
        ...


class Keepalive:
    """Knows who waits for an answer, and since when."""

    def __init__(self) -> None:
        self._replies: dict[KeptAlive, int] = {}
        self._ticks = 0
        self._rests = False
        self._wanted = Signal()

    @contextmanager
    def keeping(self, reply: KeptAlive) -> Generator[None, None, None]:
        """Keep the connection of a reply for the length of the block."""
        self.keep(reply)
        try:
            yield
        finally:
            self.release(reply)

    def keep(self, reply: KeptAlive) -> None:
        """Look after a reply from now on."""
        self._replies[reply] = self._ticks
        if self._rests:
            self._rests = False
            self._wanted.send()

    def release(self, reply: KeptAlive) -> None:
        """Look after it no longer."""
        self._replies.pop(reply, None)

    async def run(self) -> None:
        """Look after all of them, for as long as there is anybody."""
        async with anyio.create_task_group() as group:
            while True:
                while not self._replies:
                    self._rests = True
                    await self._wanted.wait()
                await anyio.sleep(TICK)
                self._ticks += 1
                for reply, since in tuple(self._replies.items()):
                    if self._ticks - since >= SILENCE:
                        self._replies[reply] = self._ticks
                        # Who does not read what it is sent holds up nobody else.
                        group.start_soon(reply.beat)
