"""How wide text is, where it is cut, and where it is wrapped."""

import pytest

from aggregator.cli.pages import columns, counted
from aggregator.cli.paper import Paper, cut, fill, width_of


@pytest.mark.parametrize(
    ("text", "width"),
    [
        ("plain", 5),
        ("café", 4),
        ("cafe\u0301", 4),
        ("漢字", 4),
        ("ｱｲ", 2),
        ("한글", 4),
        ("\u1112\u1161\u11ab", 2),
        ("👩\u200d💻", 4),
        ("☀\ufe0f", 2),
        ("…", 1),
    ],
)
def test_a_character_is_as_wide_as_it_is_drawn(text: str, width: int) -> None:
    assert width_of(text) == width


@pytest.mark.parametrize(
    ("text", "room", "kept"),
    [
        ("all of it", 9, "all of it"),
        ("Read and write files", 14, "Read and…"),
        ("Read and, write", 10, "Read and…"),
        ("averylongwordindeed", 8, "averylo…"),
        ("a averylongwordindeed", 8, "a avery…"),
        ("漢字を読む", 6, "漢字…"),
        ("漢字を読む", 7, "漢字を…"),
        ("text", 1, "…"),
        ("text", 0, ""),
    ],
)
def test_a_text_is_cut_to_the_room_there_is(text: str, room: int, kept: str) -> None:
    assert cut(text, room) == kept
    assert width_of(cut(text, room)) <= room
    assert width_of(cut(text, room, "...")) <= room


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("one two three four", ["one two", "  three", "  four"]),
        ("see https://example.org/a-b now", ["see", "  https://example.org/a-b", "  now"]),
        ("漢字を読む。はい", ["漢字を読", "  む。はい"]),
        ("first\nsecond", ["first", "second"]),
        ("  own indentation", ["  own", "    indentation"]),
        ("two  gaps", ["two  gaps"]),
        ("type `do it`, then", ["type", "  `do it`,", "  then"]),
        ("type `do it all` now", ["type `do", "  it all`", "  now"]),
        ("a ` b c d e f", ["a ` b c d", "  e f"]),
    ],
)
def test_a_text_is_wrapped_at_words(text: str, lines: list[str]) -> None:
    assert fill(text, 10).split("\n") == lines


HEAD = ("SERVER", "STATE", "ABOUT")
ROWS = [("notes", "ready", "Notes to write, to read and to find again some day"), ("漢字", "-", "")]


def test_a_wide_table_has_a_line_for_each_row() -> None:
    assert columns(HEAD, ROWS, Paper(80)).splitlines() == [
        "SERVER  STATE  ABOUT",
        "notes   ready  Notes to write, to read and to find again some day",
        "漢字    -",
    ]


def test_in_a_narrow_table_the_last_column_is_wrapped() -> None:
    assert columns(HEAD, ROWS, Paper(40)).splitlines() == [
        "SERVER  STATE  ABOUT",
        "notes   ready  Notes to write, to read",
        "               and to find again some",
        "               day",
        "漢字    -",
    ]


def test_where_no_table_fits_each_row_is_a_paragraph() -> None:
    assert columns(HEAD, ROWS, Paper(30)).splitlines() == [
        "notes",
        "  state ready",
        "  Notes to write, to read and",
        "  to find again some day",
        "漢字",
    ]


def test_a_paragraph_begins_with_its_name_wherever_its_column_is() -> None:
    rows = [("1,364", "0", "everything__echo")]

    text = columns(("CALLS", "ERRORS", "TOOL"), rows, Paper(width=30), names_last=True)

    assert text.splitlines() == ["everything__echo", "  calls 1,364, errors 0"]


def test_the_last_line_of_a_cell_is_used_to_its_end() -> None:
    about = "Read, write, move and search files in one sandboxed directory"
    rows = [("everything", "ready", "13", "1,234", "2025-11-25", about)]
    head = ("SERVER", "STATE", "TOOLS", "TOKENS", "PROTOCOL", "ABOUT")

    text = columns(head, rows, Paper(80))

    assert "sandboxed" in text
    assert "directory" in text


def test_one_is_not_many() -> None:
    assert [counted(number, "tool") for number in (0, 1, 2, 1000)] == [
        "0 tools",
        "1 tool",
        "2 tools",
        "1,000 tools",
    ]
