"""Several replicas behind a real proxy, quickly; `python -m tests.soak replicas` does it at length.

Each request goes to another replica than the one before, and nothing sticks to any.
"""

import json
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import anyio
import pytest

from tests.replicas.cluster import STORE, cluster, storehouse
from tests.replicas.guest import GONE, Account, AnsweredError, Guest
from tests.replicas.proxies import HAPROXY, NGINX, Proxy
from tests.replicas.trial import Event, edits, kills, loses_store, nothing, restarts, trial

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.skipif(HAPROXY.command is None, reason="there is no haproxy here"),
]

CLIENTS = 10
OTHER = pytest.param(
    NGINX, marks=pytest.mark.skipif(NGINX.command is None, reason="there is no nginx here")
)


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
@pytest.mark.parametrize("proxy", [HAPROXY, OTHER])
async def test_what_a_replica_refuses_that_leaves_is_sent_to_another(
    tmp_path: Path, proxy: Proxy
) -> None:
    account = Account()
    async with cluster(tmp_path, 3, proxy=proxy) as running, AsyncExitStack() as stack:
        leaving = running.replicas[0]
        direct = Guest(1, f"http://127.0.0.1:{leaving.port}/mcp", Account())
        guests = [Guest(number, running.url, account) for number in range(2)]
        for each in (direct, *guests):
            await stack.enter_async_context(each.present())
        async with anyio.create_task_group() as group, anyio.create_task_group() as staying:
            # It stays for as long as this call is under way, and refuses all others.
            staying.start_soon(direct.called, "new__hold", "x")
            while not await held(direct):
                pass
            group.start_soon(leaving.stop)
            with suppress(AnsweredError):
                while True:
                    await direct.once("tools/list", {})
            over = anyio.Event()
            over.set()
            for each in guests:
                await each.work(30, over)
            staying.cancel_scope.cancel()

    assert account.failures == []
    assert (account.crossed, account.told) == ([], 0)
    assert account.done.total() == 60


@pytest.mark.no_cover
@pytest.mark.parametrize("proxy", [HAPROXY, OTHER])
async def test_what_a_replica_has_taken_and_not_answered_is_not_sent_to_another(
    tmp_path: Path, proxy: Proxy
) -> None:
    """It may have run, and would run twice."""
    failed, taken = list[str](), list[list[str]]()
    async with cluster(tmp_path, 2, proxy=proxy) as running, AsyncExitStack() as stack:
        places = [f"http://127.0.0.1:{each.port}/mcp" for each in running.replicas]
        client, *direct = (Guest(1, each, Account()) for each in (running.url, *places))
        for each in (client, *direct):
            await stack.enter_async_context(each.present())

        async def hold() -> None:
            try:
                await client.called("new__hold", "x")
            except (AnsweredError, *GONE) as error:
                failed.append(str(error))

        async with anyio.create_task_group() as group:
            group.start_soon(hold)
            while not any(taken):
                taken = [await held(each) for each in direct]
            running.replicas[taken.index(["x"])].kill()
        left = await held(direct[taken.index([])])

    assert len(failed) == 1
    assert left == []


async def held(replica: Guest) -> list[str]:
    """Return which calls wait at a replica."""
    return json.loads(await replica.called("new__tally", "0"))["held"]


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
