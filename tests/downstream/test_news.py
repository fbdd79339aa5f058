"""What a link tells is passed on under its server's name, once the server has introduced itself."""

import pytest

from aggregator.basics.json import JsonObject
from aggregator.catalog import ServerState
from aggregator.downstream.news import LinkNews
from aggregator.downstream.questions import Questions, refuse
from aggregator.names import ServerName

pytestmark = pytest.mark.anyio

DB = ServerName("db")


class Heard:
    def __init__(self) -> None:
        self.said: list[object] = []

    def reported(self, server: ServerName, state: ServerState) -> None:
        raise NotImplementedError

    def updated(self, server: ServerName, uri: str) -> None:
        self.said.append((server, uri))

    def logged(self, server: ServerName, params: JsonObject) -> None:
        self.said.append((server, params))

    asked = staticmethod(refuse)


async def test_nobody_hears_of_a_process_that_has_not_introduced_itself() -> None:
    heard = Heard()
    news = LinkNews(DB, heard, Questions(DB))
    news.logged({"data": "early"})
    news.updated("file:///early")
    assert heard.said == []

    news.open()
    news.logged({"data": "late"})
    news.updated("file:///late")

    assert heard.said == [(DB, {"data": "late"}), (DB, "file:///late")]


async def test_lists_that_changed_early_are_listed_again_all_the_same() -> None:
    news = LinkNews(DB, Heard(), Questions(DB))
    news.changed(["tools"])
    news.changed(["prompts", "tools"])

    assert await news.take_stale() == {"tools", "prompts"}
