"""A client is told whenever a list it would get is not the one it knows of, and only then."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import pairwise

import anyio
import anyio.lowlevel
import pytest

from aggregator.basics.signals import Signal
from aggregator.upstream.announcing import GATHERING, RESTING, Queue, Shown, Subject, announce

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


class World:
    """Lists that change, and what is told of them."""

    def __init__(self) -> None:
        self.lists = {"tools": ["a"], "prompts": ["p"]}
        self.told: list[tuple[str, float]] = []
        self.changed = Signal()
        self.shown = Shown()

    def subject(self, name: str, shown: Shown | None = None) -> Subject:
        async def tell() -> None:
            self.told.append((name, round(anyio.current_time() - self.began, 3)))

        return Subject(lambda: list(self.lists[name]), tell, shown or Shown())

    def change(self, name: str, *items: str) -> None:
        self.lists[name] = list(items)
        self.changed.send()

    @asynccontextmanager
    async def announcing(self) -> AsyncGenerator[None, None]:
        self.began = anyio.current_time()
        subjects = [self.subject("tools", self.shown), self.subject("prompts")]
        async with anyio.create_task_group() as group:
            group.start_soon(announce, self.changed.wait, subjects, Queue())
            await anyio.wait_all_tasks_blocked()
            yield
            await anyio.sleep(5)
            group.cancel_scope.cancel()


async def test_the_list_as_it_is_at_the_start_is_no_news() -> None:
    world = World()
    async with world.announcing():
        world.changed.send()

    assert world.told == []


async def test_a_burst_of_changes_is_told_once_for_each_list() -> None:
    world = World()
    async with world.announcing():
        world.change("tools", "a", "b")
        world.change("prompts")
        world.change("tools", "a", "b", "c")

    assert world.told == [("tools", GATHERING), ("prompts", GATHERING)]


async def test_a_change_that_was_taken_back_is_not_told() -> None:
    world = World()
    async with world.announcing():
        world.change("tools", "a", "b")
        world.change("tools", "a")

    assert world.told == []


async def test_two_announcements_are_some_time_apart_and_the_last_state_is_told() -> None:
    world = World()
    async with world.announcing():
        world.change("tools", "b")
        await anyio.sleep(GATHERING + 0.05)
        world.change("tools", "c")

    assert world.told == [("tools", GATHERING), ("tools", round(GATHERING + RESTING, 3))]


async def test_what_the_client_has_fetched_meanwhile_is_not_told() -> None:
    world = World()
    async with world.announcing():
        world.change("tools", "a", "b")
        world.shown.show(["a", "b"])

    assert world.told == []


async def test_others_have_their_turn_while_a_thousand_are_told() -> None:
    changed, queue, lists = Signal(), Queue(), ["a"]
    told, seen = [0], [0]
    began, number = anyio.Event(), 1000

    async def tell() -> None:
        told[0] += 1
        began.set()

    async def look() -> None:
        await began.wait()
        while told[0] < number:
            seen.append(told[0])
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as group:
        for _ in range(number):
            subjects = [Subject(lambda: list(lists), tell)]
            group.start_soon(announce, changed.wait, subjects, queue)
        await anyio.wait_all_tasks_blocked()
        lists.append("b")
        changed.send()
        await look()
        group.cancel_scope.cancel()

    assert max(after - before for before, after in pairwise(seen)) <= 2
