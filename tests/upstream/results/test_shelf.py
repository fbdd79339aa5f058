"""Results that are kept: for one client, so many, so large, so long, and not longer."""

import anyio
import pytest

from aggregator.basics.effort import finished
from aggregator.names import ServerName
from aggregator.upstream.results import shelf as bounds
from aggregator.upstream.results.parts import whole_of
from aggregator.upstream.results.shelf import KEPT_FOR, MAX_RESULTS, Kept, Shelf

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


def kept(name: str, characters: int = 10) -> Kept:
    whole = finished(whole_of([{"type": "text", "text": "x" * characters}]))
    return Kept(name, "a__tool", ServerName("a"), whole)


async def test_only_who_was_given_a_result_finds_it() -> None:
    shelf = Shelf()

    assert shelf.keep("anna", kept("one"))

    assert shelf.find("bert", "one") is None
    assert shelf.find("anna", "two") is None
    assert shelf.find("anna", "one") is not None


async def test_the_longest_unread_makes_room() -> None:
    shelf = Shelf()
    for number in range(MAX_RESULTS):
        shelf.keep("anna", kept(str(number)))
    shelf.find("anna", "0")

    shelf.keep("anna", kept("more"))

    assert len(shelf) == MAX_RESULTS
    assert shelf.find("anna", "1") is None
    assert shelf.find("anna", "0") is not None


async def test_who_has_most_makes_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MAX_BYTES", 10_000)
    monkeypatch.setattr(bounds, "MAX_BYTES_OF_ALL", 12_000)
    shelf = Shelf()

    shelf.keep("anna", kept("small", 100))
    for number in range(20):
        shelf.keep("bert", kept(f"b{number}", 3_000))
    shelf.keep("carl", kept("c", 4_000))

    assert shelf.weight <= 12_000
    assert shelf.find("anna", "small") is not None
    assert shelf.find("carl", "c") is not None
    assert not shelf.keep("bert", kept("too large", 20_000))


async def test_what_nobody_reads_is_dropped_after_its_time() -> None:
    shelf = Shelf()
    async with anyio.create_task_group() as group:
        group.start_soon(shelf.run)
        shelf.keep("anna", kept("one"))
        shelf.keep("anna", kept("two"))
        await anyio.sleep(KEPT_FOR - 1)
        shelf.find("anna", "one")
        await anyio.sleep(2)
        assert len(shelf) == 1
        await anyio.sleep(KEPT_FOR)
        assert (len(shelf), shelf.weight) == (0, 0)
        group.cancel_scope.cancel()


async def test_nothing_is_left_of_who_has_left() -> None:
    shelf = Shelf()
    shelf.keep("anna", kept("one", 5_000))
    shelf.keep("bert", kept("two"))

    shelf.forget("anna")
    shelf.forget("nobody")

    assert len(shelf) == 1
    assert shelf.find("anna", "one") is None
    assert shelf.weight < 5_000
