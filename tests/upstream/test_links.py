"""What results link to is remembered, the newest longest."""

from aggregator.names import ServerName
from aggregator.upstream.links import MAX_LINKS, Links

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


def test_the_oldest_are_forgotten_first() -> None:
    links = Links()
    links.learn(DB, linking("first"))
    links.learn(DB, linking(*(f"file:///{number}" for number in range(MAX_LINKS))))

    assert "first" not in links
    assert len(links) == MAX_LINKS
    assert list(links)[-1] == f"file:///{MAX_LINKS - 1}"
