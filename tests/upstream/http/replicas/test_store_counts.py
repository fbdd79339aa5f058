"""What replicas count together by a real Redis or Valkey: what each may ask, and what was asked."""

from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from aggregator.config import Settings
from aggregator.config.http import CallLimits, Http
from aggregator.records.keeping import keep_stats
from aggregator.records.segments import Segments
from aggregator.records.stats import file_mark
from aggregator.records.tally import tally
from aggregator.upstream.http.keys import Keys, Ring
from tests.loopback.door import Open
from tests.peers import Peer, connect_to
from tests.replicas.cluster import STORE, Storehouse, storehouse
from tests.upstream.http.replicas.pair import Pair, pair
from tests.upstream.http.replicas.test_adoption import plain, say
from tests.upstream.http.replicas.test_store import until
from tests.upstream.http.test_endpoint import asked, begin, call, modern

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.skipif(STORE is None, reason="there is neither Redis nor Valkey here"),
]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[Storehouse, None]:
    async with storehouse(tmp_path) as running:
        yield running


@asynccontextmanager
async def limited(
    limits: CallLimits, tmp_path: Path, store: Storehouse
) -> AsyncGenerator[tuple[Pair, Callable[[Open, str], Coroutine[Any, Any, bool]]], None]:
    """Run two replicas, and have an identity whose calls are limited say whether one was run."""
    ring = Ring(tmp_path / "tokens.json", "x")
    anna = ring.add("anna", None, None)
    settings = Settings(surface="full", http=Http(limits=limits))

    def servers() -> dict[str, Any]:
        return {"one": connect_to(Peer("plain", "block"))}

    keys = Keys(ring), Keys(ring)
    async with pair(servers, tmp_path, settings, store=store.url, keys=keys) as both:
        both.client.headers["authorization"] = f"Bearer {anna}"

        async def is_run(opened: Open, name: str) -> bool:
            answer = await both.client.post(
                opened.url, **modern("tools/call", {"name": name}, mcp_name=name)
            )
            # Who asks too often is turned away at the door in the end.
            return answer.status_code != 429 and "Nothing was run" not in answer.text

        yield both, is_run


async def test_calls_in_a_minute_are_limited_for_all_replicas_together(
    tmp_path: Path, store: Storehouse
) -> None:
    async with limited(CallLimits(per_minute=20), tmp_path, store) as ((one, two, _), is_run):
        run = [await is_run(each, "one__plain") for _ in range(25) for each in (one, two)]

    # Each for itself would let 40 through.
    assert 20 <= sum(run) < 40
    assert not any(run[-2:])


async def test_calls_under_way_are_limited_for_all_replicas_together(
    tmp_path: Path, store: Storehouse
) -> None:
    async with limited(CallLimits(in_flight=2), tmp_path, store) as ((one, two, _), is_run):

        async def is_refused() -> bool:
            return not any([await is_run(each, "one__plain") for each in (one, two)])

        async with anyio.create_task_group() as group:
            for each in (one, two):
                group.start_soon(is_run, each, "one__block")
            await until(is_refused)
            group.cancel_scope.cancel()


@pytest.mark.parametrize("is_shared", [False, True])
async def test_what_all_have_counted_is_summed_by_each_and_nothing_twice(
    tmp_path: Path, store: Storehouse, *, is_shared: bool
) -> None:
    places = tmp_path / "one", tmp_path / ("one" if is_shared else "two")
    async with (
        pair(plain, tmp_path, store=store.url, stats=places) as (one, two, client),
        anyio.create_task_group() as group,
    ):
        for opened, place in zip((one, two), places, strict=True):
            fleet, post = opened.upstream.fleet, opened.upstream.replica.post
            assert post is not None
            path, share = fleet.now.config.path, post.counted
            group.start_soon(keep_stats, fleet.stream, place, path, fleet.redact, share)
        sessions = [await begin(client, each) for each in (one, two)]
        for opened, session, times in zip((one, two), sessions, (3, 4), strict=True):
            for _ in range(times):
                assert (await say(client, opened, call("one__plain"), session)).status_code == 200

        async def calls() -> list[int]:
            marks = [file_mark(each.upstream.fleet.now.config.path) for each in (one, two)]
            return [
                tally(Segments(place).read(0.0), mark).calls
                for place, mark in zip(places, marks, strict=True)
            ]

        async def are_summed() -> bool:
            return min(await calls()) >= 7

        async def are_over() -> bool:
            asked_of = zip((two, one), sessions, strict=True)
            answers = [await say(client, each, asked("ping"), own) for each, own in asked_of]
            return [each.status_code for each in answers] == [404, 404]

        await until(are_summed)
        # What is told later is heard later: nothing comes any more.
        for opened, session in zip((one, two), sessions, strict=True):
            await client.delete(opened.url, headers=session)
        await until(are_over)
        assert await calls() == [7, 7]
        group.cancel_scope.cancel()
