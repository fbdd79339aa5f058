"""The process that computes vectors, from the inside."""

from array import array
from base64 import b64decode
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from aggregator.search.semantic.cache import Cache
from aggregator.search.semantic.worker import Worker
from tests.search.semantic.ngrams import Trigrams

pytest.importorskip("numpy")


class Desk:
    """A worker, and what it sent."""

    def __init__(self, path: Path | None = None) -> None:
        self.encoder = Trigrams()
        self.sent: list[Any] = []
        self.cache = Cache(path, model="trigrams", size=self.encoder.size)
        self.worker = Worker(self.encoder, self.cache, self.sent.append)

    def close(self) -> None:
        self.cache.close()

    def tell(self, version: int, server: str, *texts: str) -> None:
        self.worker.take({"version": version, "server": server, "texts": list(texts)})

    def settle(self) -> None:
        while not self.worker.idle:
            self.worker.work()

    def ask(self, text: str) -> list[float]:
        self.worker.take({"ask": 1, "text": text})
        near = array("h", b64decode(self.sent.pop()["near"]))
        return [round(each / 32_767, 1) for each in near]


@pytest.fixture
def desk() -> Iterator[Desk]:
    with closing(Desk()) as opened:
        yield opened


def test_it_says_when_all_vectors_are_there(desk: Desk) -> None:
    desk.tell(1, "files", "delete a file")
    desk.tell(2, "mail", "send a letter")
    assert desk.sent == []

    desk.settle()

    assert desk.sent == [{"ready": 2}]


def test_a_text_is_as_near_as_the_nearest_sentence_or_reading(desk: Desk) -> None:
    desk.tell(1, "files", "delete a file")
    desk.tell(2, "mail", "send a letter")
    desk.settle()

    assert desk.ask("send a letter quickly? delete a file now")[0] > 0.7
    desk.worker.take({"ask": 1, "text": "sned a lettr", "also": ["send a letter"]})
    assert array("h", b64decode(desk.sent.pop()["near"]))[1] > 32_000


def test_it_tells_how_near_each_text_is_in_the_order_they_came(desk: Desk) -> None:
    desk.tell(1, "files", "delete a file", "zzzz")
    desk.tell(2, "mail", "send a letter")
    desk.settle()
    assert desk.ask("send a letter") == [0.1, 0.0, 1.0]

    desk.tell(3, "files", "delete a file")
    desk.settle()

    assert desk.ask("send a letter") == [1.0, 0.1]


def test_what_most_tools_have_says_little_of_a_question(desk: Desk) -> None:
    desk.tell(1, "mail", "letter", "zebra")
    desk.settle()
    letter, zebra = desk.ask("letter zebra")
    desk.tell(2, "post", *(f"letter {number}" for number in range(16)))
    desk.settle()

    among, still, *_ = desk.ask("letter zebra")

    assert among - still < letter - zebra


def test_copies_make_nothing_common(desk: Desk) -> None:
    desk.tell(1, "mail", "letter", "zebra")
    desk.settle()
    before = desk.ask("letter zebra")
    desk.tell(2, "post", *["letter"] * 100)
    desk.settle()

    assert desk.ask("letter zebra")[:2] == before


def test_a_server_that_left_takes_its_vectors_along(desk: Desk) -> None:
    desk.tell(1, "files", "delete a file")
    desk.tell(2, "files")
    desk.settle()

    assert desk.sent == [{"ready": 2}]
    assert desk.ask("delete a file") == []


def test_a_question_is_answered_while_there_is_still_work(desk: Desk) -> None:
    desk.tell(1, "files", "delete a file")
    desk.settle()
    desk.tell(2, "mail", "send a letter", "read a letter")
    desk.worker.work()

    assert desk.ask("delete a file") == [1.0]


def test_equal_texts_are_read_once(desk: Desk) -> None:
    desk.tell(1, "files", "delete a file", "delete a file")
    desk.tell(2, "more files", "delete a file")
    desk.settle()

    assert desk.encoder.read == ["delete a file"]
    assert desk.ask("delete a file") == [1.0, 1.0, 1.0]


def test_a_text_known_from_an_earlier_run_is_not_read_again(tmp_path: Path) -> None:
    path = tmp_path / "vectors.db"
    with closing(Desk(path)) as before, closing(Desk(path)) as after:
        before.tell(1, "files", *(f"file {number}" for number in range(100)))
        before.settle()

        after.tell(1, "files", *(f"file {number}" for number in range(101)))
        after.settle()

        assert after.encoder.read == ["file 100"]
        near = after.ask("file 7")
        assert near[7] == max(near)


def test_what_is_not_a_message_is_a_bug(desk: Desk) -> None:
    with pytest.raises(ValueError, match="hello"):
        desk.worker.take({"hello": 1})


def test_a_text_that_cannot_be_written_is_read_all_the_same(desk: Desk) -> None:
    desk.tell(1, "files", "delete \ud800 file")
    desk.settle()

    assert desk.ask("delete \ud800 file") == [1.0]
