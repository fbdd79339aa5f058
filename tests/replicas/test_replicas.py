"""Several replicas behind a real proxy, quickly; `python -m tests.soak replicas` does it at length.

Each request goes to another replica than the one before, and nothing sticks to any.
"""

from pathlib import Path

import pytest

from tests.replicas.cluster import PROXY, STORE, cluster, storehouse
from tests.replicas.trial import Event, edits, kills, loses_store, nothing, restarts, trial

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.skipif(PROXY is None, reason="there is no haproxy here"),
]

CLIENTS = 10


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.no_cover
@pytest.mark.parametrize(("size", "happens"), [(2, nothing), (2, edits), (3, restarts)])
async def test_nothing_fails_and_nothing_reaches_the_wrong_one(
    tmp_path: Path, size: int, happens: Event
) -> None:
    async with cluster(tmp_path, size) as running:
        found = await trial(running, CLIENTS, 30, happens)

    assert found.account.failures == []
    assert found.account.crossed == []
    assert found.account.done.total() >= CLIENTS * 30
    assert min(found.account.done[kind] for kind in ("calls", "searches", "lists")) > 0


@pytest.mark.no_cover
async def test_only_what_was_under_way_fails_with_a_replica_that_is_killed(tmp_path: Path) -> None:
    async with cluster(tmp_path, 3) as running:
        found = await trial(running, CLIENTS, 60, kills)

    assert found.beyond == 0, found.account.failures
    assert found.account.crossed == []
    assert found.account.done.total() + len(found.account.failures) == CLIENTS * 60


@pytest.mark.no_cover
@pytest.mark.skipif(STORE is None, reason="there is neither Redis nor Valkey here")
@pytest.mark.parametrize("happens", [edits, loses_store])
async def test_a_store_makes_nothing_fail_also_when_it_is_lost(
    tmp_path: Path, happens: Event
) -> None:
    async with storehouse(tmp_path) as store, cluster(tmp_path, 2, store=store) as running:
        found = await trial(running, CLIENTS, 30, happens)

    assert found.account.failures == []
    assert found.account.crossed == []
    assert found.account.done.total() >= CLIENTS * 30
