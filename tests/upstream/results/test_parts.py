"""Results as texts: what they cost, both of their ends, pages that join to the whole, words."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.basics.effort import finished
from aggregator.errors import InvalidCallError
from aggregator.upstream.results import reading
from aggregator.upstream.results.parts import (
    FRAME,
    Whole,
    cost,
    cost_of_value,
    end_of,
    start_of,
    whole_of,
    written,
)
from aggregator.upstream.results.reading import (
    EXCERPT,
    MAX_COMPARED,
    MAX_EXCERPTS,
    MAX_MATCHES,
    MAX_WORD,
    MAX_WORDS,
    Asked,
    find,
    page,
    parse,
)
from aggregator.upstream.results.shortening import shorten
from tests.work import calls

IMAGE = {"type": "image", "data": "aGVsbG8=" * 100, "mimeType": "image/png"}
LINK = {"type": "resource_link", "uri": "file:///a", "name": "a"}
TEXTS = st.text(
    st.characters(codec="utf-16", exclude_categories=()) | st.sampled_from("\n é\U0001f600\ud800"),
    max_size=400,
)


def texts(*each: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text} for text in each]


def whole(blocks: list[dict[str, Any]]) -> Whole:
    return finished(whole_of(blocks))


def size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


@given(TEXTS, st.integers(8, 500))
def test_a_piece_of_a_text_fits_and_gets_on(text: str, room: int) -> None:
    end, start = end_of(text, 0, room), start_of(text, 0, room)

    assert size(text[:end]) <= room
    assert size(text[start:]) <= room
    assert end > 0 or not text
    assert start < len(text) or not text


@given(st.lists(TEXTS, max_size=6), st.integers(64, 600))
def test_pages_join_to_the_whole_part_by_part(parts: list[str], room: int) -> None:
    blocks = texts(*parts)
    blocks.insert(len(blocks) // 2, IMAGE)
    read, position, joined = whole(blocks), 0, dict[int, str]()

    while position < read.length:
        found = finished(page(read, position, room))
        assert found.start == position < found.end
        assert sum(FRAME + size(each["text"]) for each in found.blocks) <= room
        for each, (number, length) in zip(found.blocks, found.slices, strict=True):
            assert len(each["text"]) == length
            joined[number] = joined.get(number, "") + each["text"]
        position = found.end

    expected = {n: each["text"] for n, each in enumerate(blocks) if each.get("text")}
    assert joined == expected


@given(st.lists(TEXTS, max_size=8), st.integers(100, 900))
def test_both_ends_fit_and_are_what_they_are_said_to_be(parts: list[str], room: int) -> None:
    read = whole([*texts(*parts), IMAGE, LINK])
    shown = finished(shorten(read, room, "catalog://results/x"))

    before = "".join(part.text for part in read.parts)
    head = "".join(_text(each) for each in shown.head)
    tail = "".join(_text(each) for each in shown.tail)
    assert before[: shown.until] == head
    assert before[shown.since :] == tail
    assert shown.until <= shown.since
    spent = [each for each in (*shown.head, *shown.tail) if each is not IMAGE]
    assert sum(FRAME + size(_text(each)) for each in spent) <= room
    # An image is shown wherever it is.
    assert IMAGE in (*shown.head, *shown.middle, *shown.tail)


def _text(block: Any) -> str:
    if block.get("type") == "resource_link":
        return finished(written(block))
    return block.get("text", "")


def test_what_is_no_text_and_too_large_is_named_by_where_it_can_be_read() -> None:
    held = {"uri": "file:///b", "mimeType": "application/pdf", "blob": "QUJD" * 1_000}
    blocks = [*texts("a" * 900), {"type": "resource", "resource": held}, *texts("b" * 900)]

    shown = finished(shorten(whole(blocks), 600, "catalog://results/x"))

    (named,) = shown.middle
    assert named["text"] == "[application/pdf, about 3,000 bytes: resource catalog://results/x/1]"


def test_a_text_is_cut_where_a_line_ends_if_one_is_near() -> None:
    lines = "0123456789\n" * 100

    assert lines[: end_of(lines, 0, 505)].endswith("\n")
    assert lines[start_of(lines, 0, 505) :].startswith("0")


def test_what_costs_enough_is_not_looked_at_further() -> None:
    many = texts(*["x"] * 100_000)
    deep: list[Any] = []
    for _ in range(150):
        deep = [deep]

    assert calls(lambda: cost(many, 1_000)) < 2_000
    assert cost_of_value([1] * 100_000, 1_000) > 1_000
    assert cost_of_value({"a": "x" * 5_000}, 1_000) > 1_000
    assert cost_of_value(deep, 1_000) <= 1_000
    assert cost([IMAGE], 1_000) == FRAME


def test_reading_a_large_result_takes_turns() -> None:
    value = [{"name": f"n{number}", "value": number} for number in range(20_000)]
    steps = written(value)
    turns = sum(1 for _ in steps)

    assert turns > 20
    assert json.loads(finished(written(value))) == value
    assert sum(1 for _ in whole_of(texts(*["x"] * 20_000))) > 20
    assert sum(1 for _ in find(whole(texts("x" * 1_000_000)), Asked(0, ("yes",)))) > 20


def test_all_that_is_kept_of_a_block_is_weighed() -> None:
    plain = whole(texts("x" * 10_000)).weight
    beside = {"type": "text", "text": "x" * 10_000, "_meta": {"a": [{"b": "y" * 1_000_000}]}}

    assert 10_000 < plain < 12_000
    assert 1_000_000 < whole([beside]).weight - plain < 1_002_000
    # What is small takes more than it says.
    assert whole(texts(*[""] * 1_000)).weight > 200_000
    assert sum(1 for _ in whole_of([{"type": "odd", "of": [1] * 100_000}])) > 40


def test_words_that_nearly_fit_everywhere_are_looked_for_in_turns_and_not_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    most = 1 << 25
    monkeypatch.setattr(reading, "MAX_COMPARED_IN_ALL", most)
    read = whole(texts("a" * 100_000))
    words = tuple("a" * (MAX_WORD - 1 - number) + "b" for number in range(MAX_WORDS))
    compared = sum(map(len, words))

    turns = sum(1 for _ in find(whole(texts("a" * 10_000)), Asked(0, words)))
    found = finished(find(read, Asked(0, words)))

    assert turns >= 10_000 * compared // MAX_COMPARED
    assert most <= found.until * compared < most * 1.1


def test_arguments_of_any_size_are_read_no_further_than_they_say_something() -> None:
    many = [f"word{number}" for number in range(10_000)]

    assert calls(lambda: parse({"find": many}, 10)) < 1_000
    assert parse({"find": many}, 10).words == tuple(many[:MAX_WORDS])
    assert parse({"find": {"a": many}}, 10) == Asked()
    for position in (many, {"a": many}, 10**400, "9" * 5_000, [1]):
        with pytest.raises(InvalidCallError, match="from 0 to 9"):
            parse({"from": position}, 10)


def test_words_are_found_where_most_of_them_are_first() -> None:
    far = "." * 1_000
    read = whole(texts(f"Timeout{far}", f"{far}an ERROR: timeout{far}", f"{far}error{far}"))

    found = finished(find(read, parse({"find": "error timeout"}, read.length)))

    assert found.matches == 4
    text = "".join(part.text for part in read.parts)
    best, *others = found.excerpts
    assert best.found == 2
    assert "ERROR: timeout" in best.text
    assert [text[each.position :][:5].lower() for each in others] == ["timeo", "error"]
    assert all(len(each.text) <= EXCERPT for each in found.excerpts)


def test_a_word_is_found_wherever_the_text_is_divided() -> None:
    read = whole(texts("".join(f"needle{number:07}" for number in range(20_000))))

    found = finished(find(read, Asked(0, ("needle0002521",))))

    assert [each.position for each in found.excerpts] == [13 * 2_521]


def test_a_word_that_is_everywhere_is_looked_for_only_so_long() -> None:
    read = whole(texts("e" * 1_000_000))

    found = finished(find(read, Asked(0, ("e",))))
    further = finished(find(read, Asked(found.until, ("e",))))

    assert MAX_MATCHES <= found.matches < read.length
    assert len(found.excerpts) == MAX_EXCERPTS
    assert found.until < further.until


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        ({}, Asked()),
        ({"from": 5}, Asked(5)),
        ({"offset": "1,000"}, Asked(1_000)),
        ({"find": 'a "b c"  a'}, Asked(0, ("a", "b c"))),
        ({"query": ["x", "y"], "from": 3}, Asked(3, ("x", "y"))),
    ],
)
def test_what_is_to_be_read_is_understood(arguments: dict[str, Any], asked: Asked) -> None:
    assert parse(arguments, 2_000) == asked


@pytest.mark.parametrize("position", [-1, 2_000, "next", None, 1e99])
def test_what_cannot_be_read_is_told(position: object) -> None:
    with pytest.raises(InvalidCallError, match="from 0 to 1,999"):
        parse({"from": position}, 2_000)
