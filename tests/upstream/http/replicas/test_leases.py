"""What only one replica has at a time, and who has it next: on the virtual clock."""

import anyio
import pytest

from aggregator.upstream.http.replicas.leases import LEASED, RENEWED, Leases

pytestmark = pytest.mark.anyio

PAD = "pad of anna"


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


class Register:
    """A store that knows whose something is, and for how long."""

    def __init__(self) -> None:
        self.is_up = True
        self.kept: dict[str, tuple[str, float]] = {}
        self.asked = 0

    async def claim(self, key: str, holder: str, seconds: float, /) -> str | None:
        self.asked += 1
        now = anyio.current_time()
        if not self.is_up:
            return None
        owner, until = self.kept.get(key, ("", 0.0))
        if until <= now or owner == holder:
            owner = holder
            self.kept[key] = holder, now + seconds
        return owner

    async def release(self, key: str, holder: str, /) -> None:
        if self.is_up and self.kept.get(key, ("",))[0] == holder:
            del self.kept[key]


class Process:
    """What a lease is for."""

    def __init__(self) -> None:
        self.runs = True
        self.is_lost = False

    def is_used(self) -> bool:
        return self.runs

    def lose(self) -> None:
        self.runs, self.is_lost = False, True


async def test_one_has_it_for_as_long_as_it_is_used_and_then_another() -> None:
    register = Register()
    one, two = Leases(register, "one"), Leases(register, "two")
    process = Process()
    async with anyio.create_task_group() as group:
        group.start_soon(one.run)
        assert await one.lease(PAD, process, None) == "one"
        assert await one.lease(PAD, process, "two") == "one"
        await anyio.sleep(100 * LEASED)
        assert await two.lease(PAD, Process(), "two") == "one"
        process.runs = False
        await anyio.sleep(RENEWED + 1)
        assert register.kept == {}
        assert await two.lease(PAD, Process(), "one") == "two"
        group.cancel_scope.cancel()


async def test_of_one_that_has_gone_without_a_word_another_takes_over() -> None:
    register = Register()
    one, two = Leases(register, "one"), Leases(register, "two")
    async with anyio.create_task_group() as group:
        group.start_soon(one.run)
        await one.lease(PAD, Process(), None)
        await anyio.sleep(LEASED)
        group.cancel_scope.cancel()
    assert await two.lease(PAD, Process(), None) == "one"
    await anyio.sleep(LEASED)
    assert await two.lease(PAD, Process(), None) == "two"


async def test_who_leaves_in_good_order_leaves_nothing_to_wait_for() -> None:
    register = Register()
    one, two = Leases(register, "one"), Leases(register, "two")
    await one.lease(PAD, Process(), None)
    await one.let_go()

    assert await two.lease(PAD, Process(), None) == "two"


async def test_without_the_store_it_is_at_home_and_who_comes_too_late_gives_it_up() -> None:
    register = Register()
    one, two = Leases(register, "one"), Leases(register, "two")
    process = Process()
    register.is_up = False
    assert await two.lease(PAD, Process(), "one") == "one"
    assert await two.lease(PAD, Process(), None) is None
    assert await one.lease(PAD, process, "one") == "one"
    async with anyio.create_task_group() as group:
        group.start_soon(one.run)
        await anyio.sleep(LEASED)
        assert process.runs
        register.is_up = True
        assert await two.lease(PAD, Process(), "one") == "two"
        await anyio.sleep(RENEWED + 1)
        group.cancel_scope.cancel()

    # Of two there is one again.
    assert process.is_lost


async def test_who_comes_back_while_it_is_given_up_has_it() -> None:
    process, again = Process(), Process()

    class Slow(Register):
        async def release(self, key: str, holder: str, /) -> None:
            await one.lease(PAD, again, None)
            await super().release(key, holder)

    slow = Slow()
    one = Leases(slow, "one")
    await one.lease(PAD, process, None)
    process.runs = False
    async with anyio.create_task_group() as group:
        group.start_soon(one.run)
        await anyio.sleep(RENEWED + 1)
        group.cancel_scope.cancel()

    assert [holder for holder, _ in slow.kept.values()] == ["one"]
    assert again.runs


async def test_many_are_renewed_in_time_by_a_store_that_takes_its_time() -> None:
    class Far(Register):
        async def claim(self, key: str, holder: str, seconds: float, /) -> str | None:
            await anyio.sleep(RENEWED / 25)
            return await super().claim(key, holder, seconds)

    register = Far()
    one, two = Leases(register, "one"), Leases(register, "two")
    holders = set[str | None]()
    many = [f"pad of {number}" for number in range(100)]
    async with anyio.create_task_group() as group:
        for each in many:
            group.start_soon(one.lease, each, Process(), None)
    async with anyio.create_task_group() as group:
        group.start_soon(one.run)
        await anyio.sleep(2 * LEASED)

        async def take(what: str) -> None:
            holders.add(await two.lease(what, Process(), None))

        async with anyio.create_task_group() as taking:
            for each in many:
                taking.start_soon(take, each)
        group.cancel_scope.cancel()

    assert holders == {"one"}
