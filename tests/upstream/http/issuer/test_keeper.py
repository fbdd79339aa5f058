"""When the keys of an issuer are fetched, and for how long they count: on the virtual clock."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest

from aggregator.upstream.http.issuer.keeper import APART, FRESH, LONGEST, PATIENCE, PAUSE, Keeper
from aggregator.upstream.http.issuer.keyset import Key, KeysError, KeySet
from aggregator.upstream.http.issuer.reading import Claim

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


def claim(name: str) -> Claim:
    return Claim("ES256", name)


class World:
    """An issuer that can be reached, or not, and takes its time."""

    def __init__(self) -> None:
        self.names = ["one"]
        self.is_there = True
        self.takes = 0.0
        self.fetched = 0
        self.keeper = Keeper("https://issuer.example", self._fetch)

    async def _fetch(self) -> KeySet:
        self.fetched += 1
        await anyio.sleep(self.takes)
        if not self.is_there:
            raise KeysError("connection refused")
        return KeySet(tuple(Key(name, "ES256", None) for name in self.names))

    async def knows(self, name: str) -> bool | None:
        """Say whether a key is known; nothing if nobody can say."""
        keys = await self.keeper.keys_for(claim(name))
        return None if keys is None else keys.find(claim(name)) is not None


@asynccontextmanager
async def kept() -> AsyncGenerator[World, None]:
    world = World()
    async with anyio.create_task_group() as group:
        group.start_soon(world.keeper.run)
        yield world
        world.keeper.retire()


async def test_keys_are_fetched_once_for_all_who_wait() -> None:
    async with kept() as world:
        world.takes = 1.0
        found: list[bool | None] = []

        async def ask() -> None:
            found.append(await world.knows("one"))

        async with anyio.create_task_group() as group:
            for _ in range(50):
                group.start_soon(ask)

    assert found == [True] * 50
    assert world.fetched == 1


async def test_a_key_that_is_not_known_is_asked_for_once_a_minute() -> None:
    async with kept() as world:
        assert await world.knows("one")
        assert await world.knows("two") is False
        await anyio.sleep(APART)
        world.names.append("two")
        assert await world.knows("two")
        for _ in range(100):
            assert await world.knows("three") is False

    assert world.fetched == 2


async def test_while_nothing_is_known_of_an_issuer_nobody_is_let_in() -> None:
    async with kept() as world:
        world.is_there = False
        found = [await world.knows("one") for _ in range(10)]
        assert world.fetched == 1
        world.is_there = True
        await anyio.sleep(PAUSE)
        found.append(await world.knows("one"))

    assert found == [None] * 10 + [True]


async def test_nobody_waits_long_for_an_issuer_that_hangs() -> None:
    async with kept() as world:
        world.takes = 60.0
        began = anyio.current_time()
        assert await world.knows("one") is None
        assert anyio.current_time() - began == pytest.approx(PATIENCE)
        # The fetch goes on, and whoever comes once it has ended is answered.
        await anyio.sleep(60)
        assert await world.knows("one")

    assert world.fetched == 1


async def test_an_issuer_that_is_away_takes_nothing_from_those_who_are_known_for_an_hour() -> None:
    async with kept() as world:
        assert await world.knows("one")
        world.is_there = False
        await anyio.sleep(LONGEST - 1)
        assert await world.knows("one")
        assert world.keeper.current is not None
        # Of another key it cannot be said whether it is one.
        await anyio.sleep(0.5)
        assert await world.knows("two") is None
        await anyio.sleep(1)
        assert world.keeper.current is None
        assert await world.knows("one") is None


async def test_a_key_that_is_withdrawn_opens_nothing_after_a_while() -> None:
    async with kept() as world:
        assert await world.knows("one")
        world.names = ["two"]
        await anyio.sleep(FRESH)
        # Whoever comes first is not kept waiting for the others.
        assert await world.knows("one")
        await anyio.sleep(1)
        assert await world.knows("one") is False

    assert world.fetched == 2
