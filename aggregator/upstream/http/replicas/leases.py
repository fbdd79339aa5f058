"""What only one replica may have at a time, such as a client's own process of a server.

A lease is the store's word for whose it is. It is renewed for as long as what it is for is of use,
so that another may have it a while after its holder has gone without a word. Where the store cannot
say, it is as without one.
"""

from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Protocol

import anyio

from aggregator.fleet.client_processes import Tenure

LEASED = 15.0
"""Seconds after which another may have what a replica has that has gone without a word."""
RENEWED = LEASED / 3
AT_ONCE = 16
"""Leases that are renewed at a time: one by one, a slow store would have some of them run out."""
PARTING = 1.0
"""Seconds for all that is given back when we leave."""


class Registry(Protocol):
    """A store, as far as leases go."""

    async def claim(self, key: str, holder: str, seconds: float, /) -> str | None:
        """Have something if nobody else has; return who has it, if that can be known."""
        ...

    async def release(self, key: str, holder: str, /) -> None:
        """Let others have what is ours."""
        ...


class Leases:
    """What one replica has."""

    def __init__(self, registry: Registry, name: str) -> None:
        self._registry = registry
        self._name = name
        self._held: dict[str, Tenure] = {}

    async def lease(self, what: str, tenure: Tenure, home: str | None) -> str | None:
        """Have something unless another has it; return whose it is, if that can be known.

        Where the store does not say, it belongs where it is at home.
        """
        key = f"lease:{sha256(what.encode()).hexdigest()}"
        holder = await self._registry.claim(key, self._name, LEASED) or home
        if holder == self._name:
            self._held[key] = tenure
        return holder

    async def run(self) -> None:
        """Renew what is of use and give back what is not, until cancelled."""
        while True:
            await anyio.sleep(RENEWED)
            await self._each(self._look_after)

    async def let_go(self) -> None:
        """Let others have all of it at once."""
        with anyio.move_on_after(PARTING, shield=True):
            await self._each(lambda key: self._registry.release(key, self._name))

    async def _each(self, act: Callable[[str], Awaitable[None]]) -> None:
        """Do something with all that we have, some of it at a time."""
        limiter = anyio.CapacityLimiter(AT_ONCE)

        async def in_turn(key: str) -> None:
            async with limiter:
                await act(key)

        async with anyio.create_task_group() as group:
            for key in tuple(self._held):
                group.start_soon(in_turn, key)

    async def _look_after(self, key: str) -> None:
        if not self._held[key].is_used():
            del self._held[key]
            await self._registry.release(key, self._name)
            if key not in self._held:
                return
            # Somebody has come who needs it again.
        holder = await self._registry.claim(key, self._name, LEASED)
        if holder not in (None, self._name):
            self._held.pop(key).lose()
