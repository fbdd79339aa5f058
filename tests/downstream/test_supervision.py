"""When a server that failed is tried again."""

from hypothesis import given
from hypothesis import strategies as st

from aggregator.downstream.supervision import (
    FORGIVEN_AFTER,
    HEALTHY_AFTER,
    LONGEST_DELAY,
    PATIENCE,
    Retry,
    Supervision,
)


def test_failing_to_become_ready_backs_off_until_it_cools_down() -> None:
    supervision = Supervision(lambda: 1.0)

    delays = [supervision.failed(ready_for=None) for _ in range(7)]

    assert delays == [
        Retry(0.5, cooling=False),
        Retry(1.0, cooling=False),
        Retry(2.0, cooling=False),
        Retry(4.0, cooling=False),
        Retry(8.0, cooling=False),
        Retry(60.0, cooling=True),
        Retry(60.0, cooling=True),
    ]


def test_a_server_that_had_been_ready_is_restarted_at_once() -> None:
    supervision = Supervision(lambda: 1.0)

    assert supervision.failed(ready_for=1.0) == Retry(0.0, cooling=False)


def test_a_crash_loop_runs_into_the_cool_down_although_it_becomes_ready_each_time() -> None:
    supervision = Supervision(lambda: 1.0)

    retries = [supervision.failed(ready_for=0.1) for _ in range(PATIENCE + 1)]

    assert retries[0].delay == 0
    assert all(retry.delay > 0 for retry in retries[1:])
    assert retries[-1].cooling


def test_a_healthy_minute_is_a_new_beginning() -> None:
    supervision = Supervision(lambda: 1.0)
    for _ in range(10):
        supervision.failed(ready_for=None)

    assert supervision.failed(ready_for=HEALTHY_AFTER) == Retry(0.0, cooling=False)


def test_a_server_that_crashes_twice_a_minute_is_restarted_at_once_each_time() -> None:
    supervision = Supervision(lambda: 1.0)

    retries = {supervision.failed(ready_for=30.0) for _ in range(20)}

    assert retries == {Retry(0.0, cooling=False)}


@given(st.lists(st.one_of(st.none(), st.floats(0, 1000))), st.floats(0, 1))
def test_no_history_makes_it_hammer_or_give_up(history: list[float | None], jitter: float) -> None:
    supervision = Supervision(lambda: jitter)
    at_once = 0
    for ready_for in history:
        retry = supervision.failed(ready_for=ready_for)
        assert retry.delay <= LONGEST_DELAY
        forgiven = ready_for is not None and ready_for >= FORGIVEN_AFTER
        at_once = 0 if forgiven else at_once + (retry.delay == 0)
        assert at_once <= 1
