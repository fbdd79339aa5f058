"""What a change of the catalog costs does not grow with the clients that look at it."""

import pytest

from aggregator.catalog import Catalog, Offers, Ready, ResourceEntry
from aggregator.fleet.routes import Routes
from aggregator.names import ServerName
from aggregator.upstream.conversation import Conversation
from aggregator.upstream.lists import Editions, Lists
from tests.peers import Era, aggregating, ready, until
from tests.raw import RawServer

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("each_way")]


class Compared:
    """Part of a list, which knows how often it was compared."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.times = 0

    def __eq__(self, other: object) -> bool:
        self.times += 1
        return isinstance(other, Compared) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)


def routes(*uris: str) -> Routes:
    server = ServerName("peer")
    entries = tuple(ResourceEntry(server, {"uri": uri, "name": uri}) for uri in uris)
    return Routes(Catalog({server: Ready(offers=Offers(resources=entries))}))


def test_a_list_is_read_and_compared_once_however_many_look_at_it():
    parts: list[Compared] = []

    def read(source: Routes) -> list[Compared]:
        parts.extend(Compared(uri) for uri in source.resources)
        return parts[-len(source.resources) :]

    editions = Editions(read)
    first = editions.of(routes("a", "b"))
    equal = routes("a", "b")

    assert [editions.of(equal) for _ in range(100)] == [first] * 100
    assert len(parts) == 4
    assert sum(part.times for part in parts) == 2


def test_a_list_that_differs_is_another_edition_until_the_change_is_taken_back():
    editions = Editions(lambda source: source.shown_resources)

    first = editions.of(routes("a"))
    second = editions.of(routes("a", "b"))

    assert second is not first
    assert editions.of(routes("a")) is first


async def test_what_one_server_changes_leaves_the_lists_of_others_as_they_are(
    server_era: Era,
) -> None:
    many, other = RawServer(server_era), RawServer(server_era)
    many.resources = [{"uri": f"x://{number}", "name": "x"} for number in range(500)]

    async with aggregating({"many": many.connect, "other": other.connect}) as upstream:
        fleet = upstream.fleet
        await until(lambda: len(fleet.now.routes.resources) == 500, lambda: fleet.changed)
        lists = Lists(fleet)
        before, now = lists.resources(Conversation()), fleet.now
        other.prompts = [{"name": "greet"}]
        await other.change("notifications/prompts/list_changed")
        await until(lambda: bool(fleet.now.routes.prompts), lambda: fleet.changed)

        assert fleet.now is not now
        assert lists.resources(Conversation()) is before


async def test_clients_of_one_surface_have_one_list_of_tools() -> None:
    server = RawServer("handshake")

    async with aggregating({"peer": server.connect}) as upstream:
        await ready(upstream)
        lists = Lists(upstream.fleet)
        told = [lists.tools(Conversation("modern")) for _ in range(100)]

        assert all(each is told[0] for each in told)
