"""What an identity has asked of several replicas, counted together: on the virtual clock."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from aggregator.basics.json import JsonObject
from aggregator.config.http import CallLimits
from aggregator.errors import OverLimitError
from aggregator.upstream.allowances import PERIOD, Allowances
from aggregator.upstream.http.replicas.counting import Counting
from aggregator.upstream.http.replicas.mail import Mail
from aggregator.upstream.other_replicas import HEARD, MINUTE

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


class Street:
    """A store that only passes on what is told, to those who are there."""

    def __init__(self) -> None:
        self.is_up = True
        self.told: list[JsonObject] = []
        self.houses: dict[str, Counting] = {}

    def keep(self, key: str, value: str, seconds: float, /) -> None:
        raise NotImplementedError

    async def put(self, key: str, value: str, seconds: float, /) -> None:
        raise NotImplementedError

    async def look(self, *keys: str) -> Sequence[str | None]:
        raise NotImplementedError

    async def learn(self, *keys: str) -> Sequence[str | None]:
        raise NotImplementedError

    async def claim(self, key: str, holder: str, seconds: float, /) -> str | None:
        raise NotImplementedError

    async def release(self, key: str, holder: str, /) -> None:
        raise NotImplementedError

    async def run(
        self, hear: Callable[[JsonObject], Awaitable[None]], catch_up: Callable[[], Awaitable[None]]
    ) -> None:
        raise NotImplementedError

    def tell(self, **message: Any) -> bool:
        self.told.append(message)
        for name, house in self.houses.items():
            if name != message["from"]:
                house.hear(message)
        return True

    def move_in(self, name: str) -> tuple[Allowances, Counting]:
        allowances = Allowances(is_shared=True)
        counting = self.houses[name] = Counting(Mail(self, name), allowances)
        return allowances, counting


def call(allowances: Allowances, limits: CallLimits, times: int = 1) -> list[int | None]:
    """Make calls that are over at once; return how long to wait for each that was refused."""
    found = list[int | None]()
    for _ in range(times):
        try:
            with allowances.spent("anna", limits):
                found.append(None)
        except OverLimitError as error:
            found.append(error.seconds)
    return found


async def test_what_one_has_let_through_another_counts_a_second_later() -> None:
    street, limits = Street(), CallLimits(per_minute=100)
    (one, first), (two, second) = street.move_in("one"), street.move_in("two")
    async with anyio.create_task_group() as group:
        group.start_soon(first.run)
        group.start_soon(second.run)
        assert call(one, limits, 10) == [None] * 10
        await anyio.sleep(10)
        assert call(two, limits, 91) == [None] * 90 + [51]
        await anyio.sleep(10)
        assert call(one, limits) == [40]
        await anyio.sleep(MINUTE - 20 + PERIOD)
        # What was let through first counts no longer, with either.
        assert call(one, limits) == call(two, limits) == [None]
        group.cancel_scope.cancel()


async def test_a_call_tells_nobody_anything() -> None:
    """What is told is told once a second, however many calls there were."""
    street, limits = Street(), CallLimits(per_minute=10_000, in_flight=100)
    one, first = street.move_in("one")
    async with anyio.create_task_group() as group:
        group.start_soon(first.run)
        await anyio.lowlevel.checkpoint()
        for _ in range(1_000):
            assert call(one, limits) == [None]
            await anyio.lowlevel.checkpoint()
        assert street.told == []
        await anyio.sleep(3 * PERIOD)
        group.cancel_scope.cancel()

    (message,) = street.told
    assert message["holders"] == {"anna": [0, [[0.0, 1_000]], False]}


async def test_a_burst_at_all_exceeds_a_limit_by_an_eighth_for_each_other_at_the_most() -> None:
    street, limits = Street(), CallLimits(per_minute=80)
    houses = [street.move_in(name) for name in ("one", "two", "three")]
    passed = 0
    async with anyio.create_task_group() as group:
        for _, counting in houses:
            group.start_soon(counting.run)
        await anyio.lowlevel.checkpoint()
        for _ in range(80):
            passed += sum(call(allowances, limits) == [None] for allowances, _ in houses)
            for _ in range(3):
                await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()

    assert 80 <= passed <= 80 + 2 * 10


async def test_calls_under_way_elsewhere_count_until_they_end_or_their_replica_does() -> None:
    street, limits = Street(), CallLimits(in_flight=4)
    (one, first), (two, _) = street.move_in("one"), street.move_in("two")
    async with anyio.create_task_group() as group:
        group.start_soon(first.run)
        with ExitStack() as calls:
            for _ in range(3):
                calls.enter_context(one.spent("anna", limits))
            await anyio.sleep(60)
            assert call(two, limits) == [None]
            with two.spent("anna", limits):
                assert call(two, limits) == [1]
        await anyio.sleep(2 * PERIOD)
        with ExitStack() as calls:
            for _ in range(4):
                calls.enter_context(two.spent("anna", limits))
            assert call(two, limits) == [1]
        with ExitStack() as calls:
            for _ in range(4):
                calls.enter_context(one.spent("anna", limits))
            await anyio.sleep(PERIOD)
            assert call(two, limits) == [1]
            # It is killed, and ends nothing.
            group.cancel_scope.cancel()
    with anyio.CancelScope():
        await anyio.sleep(HEARD)
        assert call(two, limits) == [None]


async def test_who_comes_later_or_comes_back_learns_of_the_last_minute_once() -> None:
    street, limits = Street(), CallLimits(per_minute=10)
    (one, first), (two, second) = street.move_in("one"), street.move_in("two")
    async with anyio.create_task_group() as group:
        group.start_soon(first.run)
        group.start_soon(second.run)
        call(one, limits, 2)
        await anyio.sleep(5)
        call(one, limits, 2)
        call(two, limits, 1)
        await anyio.sleep(5)
        three, third = street.move_in("three")
        third.introduce()
        assert call(three, limits, 6) == [None] * 5 + [50]
        # The store is lost for a while: each counts by itself, and is told afterwards.
        street.is_up = False
        told = len(street.told)
        await anyio.sleep(5)
        assert call(two, limits, 1) == [None]
        await anyio.sleep(5)
        assert len(street.told) == told
        street.is_up = True
        for each in (second, first, third):
            each.introduce()
        assert call(one, limits) == call(three, limits) == [40]
        group.cancel_scope.cancel()


async def test_what_is_odd_counts_for_nothing() -> None:
    one, first = Street().move_in("one")
    several: list[Any] = [[], [1], [1, [[1]], True], ["x", [], True], None, [1, [["x", 1]], False]]
    for odd in several:
        with pytest.raises((TypeError, ValueError)):
            first.hear({"kind": "spent", "from": "two", "holders": {"anna": odd}})
    first.hear({"kind": "spent", "from": "two", "holders": {"anna": [-5, [[-9, -9]], True]}})

    assert call(one, CallLimits(per_minute=1, in_flight=1), 2) == [None, 60]
