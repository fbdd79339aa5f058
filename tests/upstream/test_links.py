"""What results link to is remembered, the newest longest."""

import pytest

from aggregator.names import ServerName
from aggregator.upstream.links import MAX_BLOCKS, MAX_CHARACTERS, MAX_LINKS, Links
from tests.work import calls

DB, WEB = ServerName("db"), ServerName("web")


def linking(*uris: object) -> dict[str, object]:
    return {"content": [{"type": "resource_link", "uri": uri} for uri in uris]}


def test_the_server_that_linked_to_a_resource_is_known() -> None:
    links = Links()
    links.learn(DB, linking("file:///a"))

    assert links["file:///a"] == DB
    assert "file:///b" not in links


def test_what_is_no_link_teaches_nothing() -> None:
    links = Links()
    links.learn(DB, {"content": [{"type": "text", "uri": "file:///a"}, 7, None]})
    links.learn(DB, linking(7, None))
    links.learn(DB, {"content": "odd"})

    assert len(links) == 0


def test_the_first_to_link_to_a_resource_keeps_it() -> None:
    links = Links()
    links.learn(DB, linking("file:///a"))
    links.learn(WEB, linking("file:///a", *(f"file:///{number}" for number in range(2000))))

    assert links["file:///a"] == DB


def test_among_clients_that_cannot_be_told_apart_it_is_then_nobodys() -> None:
    links = Links(is_shared=True)
    links.learn(DB, linking("file:///a"))
    assert links["file:///a"] == DB

    links.learn(WEB, linking("file:///a"))
    assert "file:///a" in links
    assert links["file:///a"] is None

    links.learn(WEB, linking(*(f"file:///{number}" for number in range(MAX_LINKS))))
    assert links["file:///a"] == DB


def test_what_another_lists_is_not_learned() -> None:
    links = Links()
    links.learn(DB, linking("file:///a", "file:///b"), {"file:///a": WEB, "file:///b": DB}.get)

    assert dict(links) == {"file:///b": DB}


def test_long_links_take_the_room_of_many() -> None:
    links = Links()
    links.learn(DB, linking("first", "x" * (MAX_CHARACTERS - 1), "y" * (MAX_CHARACTERS + 1)))

    assert len(links) == 0


def test_the_oldest_are_forgotten_first() -> None:
    links = Links()
    links.learn(DB, linking("first"))
    links.learn(DB, linking(*(f"file:///{number}" for number in range(MAX_LINKS))))

    assert "first" not in links
    assert len(links) == MAX_LINKS
    assert list(links)[-1] == f"file:///{MAX_LINKS - 1}"


def test_of_a_result_with_very_many_links_the_last_are_learned_in_their_order() -> None:
    links = Links()
    asked: list[str] = []
    uris = [f"file:///{number}" for number in range(3 * MAX_LINKS)]
    links.learn(DB, linking(*uris), asked.append)

    assert list(links) == uris[-MAX_LINKS:]
    assert asked == uris[-MAX_LINKS:]


@pytest.mark.parametrize(
    "block",
    [
        {"type": "resource_link", "uri": "file:///a"},
        {"type": "resource_link"},
        {"type": "text", "text": ""},
        7,
    ],
)
def test_the_cost_of_a_result_does_not_grow_with_what_it_has_beyond_that(block: object) -> None:
    few, many = ({"content": [block] * number} for number in (MAX_BLOCKS, 8 * MAX_BLOCKS))

    assert calls(lambda: Links().learn(DB, many)) == calls(lambda: Links().learn(DB, few))
