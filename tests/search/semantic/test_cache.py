"""Vectors on disk."""

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from aggregator.search.semantic.cache import DAY, Cache


class Open(Protocol):
    def __call__(self, path: Path | None, *, model: str = "model") -> Cache: ...


@pytest.fixture
def opened() -> Iterator[Open]:
    """Open caches, and close them all in the end."""
    caches: list[Cache] = []

    def open_one(path: Path | None, *, model: str = "model") -> Cache:
        caches.append(Cache(path, model=model, size=2))
        return caches[-1]

    yield open_one
    for cache in caches:
        cache.close()


def test_a_vector_outlives_the_process(tmp_path: Path, opened: Open) -> None:
    path = tmp_path / "new" / "vectors.db"
    first = opened(path)
    first.put([("a text", b"ab")])
    first.close()

    assert opened(path).get("a text") == b"ab"
    assert opened(path).get("another text") is None


def test_another_model_has_other_vectors(tmp_path: Path, opened: Open) -> None:
    cache = opened(tmp_path / "vectors.db")
    cache.put([("a text", b"ab")])

    assert opened(tmp_path / "vectors.db", model="other").get("a text") is None


def test_a_vector_of_another_length_is_ignored(tmp_path: Path, opened: Open) -> None:
    cache = opened(tmp_path / "vectors.db")
    cache.put([("a text", b"abcd")])

    assert cache.get("a text") is None


def test_two_processes_share_one_file(tmp_path: Path, opened: Open) -> None:
    one, other = opened(tmp_path / "vectors.db"), opened(tmp_path / "vectors.db")
    one.put([("first", b"ab")])
    other.put([("second", b"cd")])

    assert (one.get("second"), other.get("first")) == (b"cd", b"ab")


@pytest.mark.parametrize("content", [b"", b"not a database", b"SQLite format 3\x00" + bytes(900)])
def test_a_damaged_file_is_begun_again(tmp_path: Path, content: bytes, opened: Open) -> None:
    path = tmp_path / "vectors.db"
    path.write_bytes(content)

    cache = opened(path)
    cache.put([("a text", b"ab")])
    cache.close()

    assert opened(path).get("a text") == b"ab"


def test_damage_in_the_middle_is_noticed(tmp_path: Path, opened: Open) -> None:
    path = tmp_path / "vectors.db"
    cache = opened(path)
    cache.put([(str(number), b"ab") for number in range(2000)])
    cache.close()
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        file.write(os.urandom(8192))

    assert opened(path).get("1") is None


def test_a_file_that_cannot_be_had_costs_only_the_memory(tmp_path: Path, opened: Open) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    cache = opened(tmp_path / "file" / "vectors.db")
    cache.put([("a text", b"ab")])

    assert cache.get("a text") == b"ab"


def test_without_a_file_vectors_live_as_long_as_the_process(opened: Open) -> None:
    cache = opened(None)
    cache.put([("a text", b"ab")])

    assert cache.get("a text") == b"ab"
    assert opened(None).get("a text") is None


def test_a_file_that_is_locked_is_neither_waited_for_nor_thrown_away(
    tmp_path: Path, opened: Open
) -> None:
    path = tmp_path / "vectors.db"
    cache = opened(path)
    cache.put([("a text", b"ab")])
    other = sqlite3.connect(path)
    other.execute("BEGIN EXCLUSIVE")

    opened(path).put([("a second text", b"cd")])
    other.rollback()
    other.close()

    assert cache.get("a text") == b"ab"


def test_what_is_of_no_use_for_longest_leaves_first() -> None:
    now = 0.0
    cache = Cache(None, model="model", size=2, limit=2, clock=lambda: now)
    for text in ("first", "second", "third"):
        now += DAY
        cache.put([(text, b"ab")])

    cache.get("first")
    cache.tidy()

    assert [cache.get(text) for text in ("first", "second", "third")] == [b"ab", None, b"ab"]
    cache.close()
