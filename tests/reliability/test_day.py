"""A bad day in short: half of the servers are ill-treated, and nobody else notices."""

from pathlib import Path

import pytest

from tests.soak.day import ALLOWED, grown, measure, table
from tests.soak.scales import Weight

SMALL = Weight(memory=100 << 20, objects=10_000, descriptors=30, tasks=50)


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.usefixtures("census")
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_bad_day_costs_nobody_else_anything(tmp_path: Path) -> None:
    day = await measure(tmp_path, servers=4, seconds=2, lulls=1, seed=7)

    assert all(tally.calls["untouched"] for tally in day.tallies.values())
    assert day.misfortunes
    assert day.edits
    assert not any(day.failures().values()), "\n".join(table(day))


def test_what_becomes_more_and_more_is_told_from_what_only_varies() -> None:
    more = Weight(SMALL.memory, SMALL.objects, SMALL.descriptors + 3, SMALL.tasks + 5)
    varied = Weight(SMALL.memory + ALLOWED.memory, SMALL.objects, SMALL.descriptors, SMALL.tasks)

    assert grown("one", [SMALL, SMALL, varied, SMALL]) == []
    assert grown("one", [SMALL, SMALL, SMALL, more]) == [
        "one: descriptors from 30 to 33",
        "one: tasks from 50 to 55",
    ]
