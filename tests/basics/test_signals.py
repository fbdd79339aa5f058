"""A signal wakes everybody who waits, and nobody who comes later."""

import anyio
import pytest
from anyio.lowlevel import checkpoint

from aggregator.basics.signals import Signal
from tests.patience import PATIENCE

pytestmark = pytest.mark.anyio


async def test_everybody_who_waits_is_woken() -> None:
    signal = Signal()
    woken: list[int] = []

    async def wait(number: int) -> None:
        await signal.wait()
        woken.append(number)

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            group.start_soon(wait, 1)
            group.start_soon(wait, 2)
            await anyio.wait_all_tasks_blocked()
            signal.send()

    assert sorted(woken) == [1, 2]


async def test_what_was_sent_before_is_not_heard() -> None:
    signal = Signal()
    signal.send()

    with anyio.move_on_after(0) as scope:
        await checkpoint()
        await signal.wait()

    assert scope.cancelled_caught
