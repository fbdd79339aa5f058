"""Who watches which resource: each is told of what it asked for, and of each change once."""

import anyio
import pytest

from aggregator.fleet.routes import Route
from aggregator.names import ServerName
from aggregator.upstream.announcing import GATHERING
from aggregator.upstream.watches import Watcher, Watches

pytestmark = pytest.mark.anyio

DB = ServerName("db")
ROUTE = Route(DB, "file:///a")


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


async def heard_by(watcher: Watcher) -> list[tuple[str, float]]:
    """Return what a watcher is told from now on, and when."""
    heard: list[tuple[str, float]] = []
    began = anyio.current_time()

    async def tell(uri: str) -> None:
        heard.append((uri, round(anyio.current_time() - began, 3)))

    with anyio.move_on_after(5):
        await watcher.run(tell)
    return heard


async def test_a_storm_of_changes_is_one_change() -> None:
    watches, watcher = Watches(), Watcher()
    watches.add(watcher, ROUTE, "mine:a")
    for _ in range(1000):
        watches.touch(DB, "file:///a")

    assert await heard_by(watcher) == [("mine:a", GATHERING)]


async def test_nobody_is_told_of_what_another_watches() -> None:
    watches, one, other = Watches(), Watcher(), Watcher()
    watches.add(one, ROUTE, "a")
    watches.add(other, Route(DB, "file:///b"), "b")
    watches.touch(DB, "file:///a")

    assert await heard_by(other) == []


async def test_what_is_asked_for_twice_ends_when_both_have_ended() -> None:
    watches, watcher = Watches(), Watcher()
    watches.add(watcher, ROUTE, "a")
    watches.add(watcher, ROUTE, "a")

    watches.drop(watcher, ROUTE, "a")
    assert watches.uris(DB) == {"file:///a"}
    assert watches.find(watcher, "a") == ROUTE

    watches.drop(watcher, ROUTE, "a")
    assert watches.uris(DB) == frozenset()
    assert watches.find(watcher, "a") is None


async def test_to_drop_what_nobody_watches_does_nothing() -> None:
    watches, watcher = Watches(), Watcher()
    watches.drop(watcher, ROUTE, "a")
    watches.drop_own(watcher, "catalog://tools")

    assert watches.uris(DB) == frozenset()


async def test_our_own_resources_change_with_the_catalog_until_they_are_dropped() -> None:
    watches, one, other = Watches(), Watcher(), Watcher()
    watches.add_own(one, "catalog://tools")
    watches.add_own(other, "catalog://servers")
    watches.forget_own(other)
    watches.touch_own()

    assert await heard_by(one) == [("catalog://tools", GATHERING)]
    assert await heard_by(other) == []
