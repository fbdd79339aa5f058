"""How much one identity may ask, and when it may ask again: on the virtual clock."""

from contextlib import ExitStack, suppress

import anyio
import pytest

from aggregator.config.http import CallLimits
from aggregator.errors import OverLimitError
from aggregator.upstream.allowances import INSISTING, MAX_ACCOUNTS, Allowances

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


def call(allowances: Allowances, limits: CallLimits, holder: str = "anna") -> int | None:
    """Make a call that is over at once; return how long to wait if it was refused."""
    try:
        with allowances.spent(holder, limits):
            return None
    except OverLimitError as error:
        return error.seconds


async def test_so_many_in_any_minute_and_no_more() -> None:
    allowances, limits = Allowances(), CallLimits(per_minute=3)
    found = list[int | None]()
    for _ in range(3):
        found.append(call(allowances, limits))
        await anyio.sleep(10)
    found.append(call(allowances, limits))
    await anyio.sleep(29.5)
    found.append(call(allowances, limits))
    await anyio.sleep(0.5)
    found += [call(allowances, limits), call(allowances, limits)]

    assert found == [None, None, None, 30, 1, None, 10]


async def test_each_has_an_allowance_of_its_own() -> None:
    allowances, limits = Allowances(), CallLimits(per_minute=1)

    assert [call(allowances, limits, each) for each in "aabb"] == [None, 60, None, 60]


async def test_so_many_at_a_time_and_no_more() -> None:
    allowances, limits = Allowances(), CallLimits(in_flight=2)
    with ExitStack() as calls:
        for _ in range(2):
            calls.enter_context(allowances.spent("anna", limits))
        assert call(allowances, limits) == 1
        assert call(allowances, limits, "bert") is None

    assert call(allowances, limits) is None


async def test_a_call_that_fails_is_not_under_way_any_more() -> None:
    allowances, limits = Allowances(), CallLimits(in_flight=1)
    with suppress(RuntimeError), allowances.spent("anna", limits):
        raise RuntimeError

    assert call(allowances, limits) is None


async def test_limits_that_are_changed_hold_for_the_next_call() -> None:
    allowances = Allowances()
    for _ in range(5):
        call(allowances, CallLimits(per_minute=10))
        await anyio.sleep(1)

    assert call(allowances, CallLimits(per_minute=2)) == 58
    assert call(allowances, CallLimits(per_minute=6)) is None


async def test_who_goes_on_regardless_is_turned_away_at_the_door_until_it_is_worth_trying() -> None:
    allowances, limits = Allowances(), CallLimits(per_minute=1)
    call(allowances, limits)
    await anyio.sleep(20)
    for _ in range(INSISTING):
        assert call(allowances, limits) == 40
    assert allowances.barred("anna") == 0
    call(allowances, limits)
    assert allowances.barred("anna") == pytest.approx(40)
    assert allowances.barred("bert") == allowances.barred("") == 0
    await anyio.sleep(40)

    assert allowances.barred("anna") == 0
    assert call(allowances, limits) is None
    assert call(allowances, limits) == 60
    assert allowances.barred("anna") == 0


async def test_who_has_not_called_lately_is_forgotten() -> None:
    allowances, limits = Allowances(), CallLimits(per_minute=1)
    call(allowances, limits, "first")
    with allowances.spent("busy", limits):
        await anyio.sleep(60)
        for number in range(MAX_ACCOUNTS - 1):
            call(allowances, limits, str(number))
        known = allowances._accounts  # pyright: ignore[reportPrivateUsage]

        assert "first" not in known
        assert "busy" in known
        assert len(known) <= MAX_ACCOUNTS


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (OverLimitError(12.2, per_minute=60), "60 calls in the last minute"),
        (OverLimitError(0.1, per_minute=1), "1 call in the last minute"),
        (OverLimitError(1, in_flight=4), "4 calls of yours are under way"),
        (OverLimitError(1, in_flight=1), "1 call of yours is under way"),
    ],
)
def test_a_model_is_told_what_to_do(error: OverLimitError, text: str) -> None:
    assert text in str(error)
    assert "Nothing was run; wait" in str(error)
    assert error.facts["kind"] == "over-limit"
    assert error.facts["retryAfter"] == error.seconds >= 1
