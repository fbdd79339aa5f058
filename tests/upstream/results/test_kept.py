"""Results that are kept: for one client, so many, so large, so long, and not longer."""

import anyio
import pytest

from aggregator.basics.effort import finished
from aggregator.names import ServerName
from aggregator.upstream.results import kept as bounds
from aggregator.upstream.results.kept import KEPT_FOR, MAX_RESULTS, Kept, KeptResults
from aggregator.upstream.results.parts import whole_of

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


def kept(name: str, characters: int = 10) -> Kept:
    whole = finished(whole_of([{"type": "text", "text": "x" * characters}]))
    return Kept(name, "a__tool", ServerName("a"), whole)


async def test_only_who_was_given_a_result_finds_it() -> None:
    results = KeptResults()

    assert results.keep("anna", kept("one"))

    assert results.find("bert", "one") is None
    assert results.find("anna", "two") is None
    assert results.find("anna", "one") is not None


async def test_what_is_kept_anew_takes_the_place_of_what_was() -> None:
    results = KeptResults()
    name = results.new_name("a secret")
    for characters in (5_000, 10, 20):
        assert results.new_name("a secret") == name
        results.keep("anna", kept(name, characters))

    assert len(results) == 1
    assert results.weight == kept(name, 20).weight
    assert results.new_name("another") != name


async def test_the_longest_unread_makes_room() -> None:
    results = KeptResults()
    for number in range(MAX_RESULTS):
        results.keep("anna", kept(str(number)))
    results.find("anna", "0")

    results.keep("anna", kept("more"))

    assert len(results) == MAX_RESULTS
    assert results.find("anna", "1") is None
    assert results.find("anna", "0") is not None


async def test_who_has_most_makes_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MAX_BYTES", 10_000)
    monkeypatch.setattr(bounds, "MAX_BYTES_OF_ALL", 12_000)
    results = KeptResults()

    results.keep("anna", kept("small", 100))
    for number in range(20):
        results.keep("bert", kept(f"b{number}", 3_000))
    results.keep("carl", kept("c", 4_000))

    assert results.weight <= 12_000
    assert results.find("anna", "small") is not None
    assert results.find("carl", "c") is not None
    assert not results.keep("bert", kept("too large", 20_000))


async def test_what_nobody_reads_is_dropped_after_its_time() -> None:
    results = KeptResults()
    async with anyio.create_task_group() as group:
        group.start_soon(results.run)
        results.keep("anna", kept("one"))
        results.keep("anna", kept("two"))
        await anyio.sleep(KEPT_FOR - 1)
        results.find("anna", "one")
        await anyio.sleep(2)
        assert len(results) == 1
        await anyio.sleep(KEPT_FOR)
        assert (len(results), results.weight) == (0, 0)
        group.cancel_scope.cancel()


async def test_nothing_is_left_of_who_has_left() -> None:
    results = KeptResults()
    results.keep("anna", kept("one", 5_000))
    results.keep("bert", kept("two"))

    results.forget("anna")
    results.forget("nobody")

    assert len(results) == 1
    assert results.find("anna", "one") is None
    assert results.weight < 5_000
