"""Kept results as resources: all of them, in few contents and in turns."""

from typing import Any

from aggregator.basics.effort import finished
from aggregator.names import ServerName
from aggregator.upstream.results.contents import MAX_CONTENTS, contents_of
from aggregator.upstream.results.kept import Kept
from aggregator.upstream.results.parts import whole_of

MANY = 300_000
TEXT = {"type": "text", "text": "x"}
IMAGE = {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}


def kept(blocks: list[dict[str, Any]]) -> Kept:
    return Kept("name", "logs__read", ServerName("logs"), finished(whole_of(blocks)))


def read(blocks: list[dict[str, Any]], path: str = "") -> tuple[list[Any], int]:
    """Return what is read of a result, and how often others had their turn meanwhile."""
    steps, turns = contents_of(kept(blocks), path), 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value, turns
        turns += 1


def test_few_parts_are_each_by_itself() -> None:
    contents, _ = read([TEXT, IMAGE, TEXT])

    assert [each["uri"] for each in contents] == [f"catalog://results/name/{n}" for n in range(3)]


def test_of_very_many_parts_texts_are_joined_in_turns() -> None:
    contents, turns = read([TEXT] * MANY)

    assert contents == [
        {"uri": "catalog://results/name", "mimeType": "text/plain", "text": "x" * MANY}
    ]
    assert turns > MANY // 1_000


def test_of_very_many_that_cannot_be_joined_some_are_given_and_the_rest_is_named() -> None:
    contents, _ = read([IMAGE, TEXT] * MANY)

    assert len(contents) <= MAX_CONTENTS + 2
    assert "the next is the resource catalog://results/name/" in contents[-1]["text"]
    number = contents[-1]["text"].rpartition("/")[2].removesuffix("]")
    assert len(contents) - 1 == int(number)
    assert read([IMAGE, TEXT] * 1_000, number)[0][0]["uri"].endswith(f"/{number}")
