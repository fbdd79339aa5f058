"""What an eye can see of a text."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.basics.glyphs import clean, escaped, on_its_lines, on_one_line


@pytest.mark.parametrize(
    ("hidden", "shown"),
    [
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("a\x00b\x08c\x7fd", "abcd"),
        ("tag\U000e0041\U000e0042", "tag"),
        ("bidi\u202e\u2066", "bidi"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
        ("private\ue000", "private"),
        ("selector\U000e0100", "selector"),
        ("lone\ud800", "lone"),
        ("line\nbreak\ttab\r", "line\nbreak\ttab\r"),
        ("naïve café — 日本語 עברית العربية ไทย", "naïve café — 日本語 עברית العربية ไทย"),
        ("family 👩‍👩‍👧, heart ❤️‍🔥", "family 👩‍👩‍👧, heart ❤️‍🔥"),
        ("a\x1b]0;never ended, and what follows", "a0;never ended, and what follows"),
        ("c1 \x9b31mred", "c1 red"),
        ("bytes\ufe00\ufe01\ufe0f", "bytes"),
        ("bits\u200d\u200c\ufe0f\u200d", "bits"),
        ("b\u200ci\u200dt\ufe0es\ufe0f", "bits"),
        ("b\ufe02\u034fy\ufe0b\u034ft\ufe00\u034fe", "byte"),
        ("❤\ufe0f\ufe0f\u200d\u200c🔥", "❤\ufe0f🔥"),
        ("1\ufe0f\u20e3, ©\ufe0f, ☎\ufe0e", "1\ufe0f\u20e3, ©\ufe0f, ☎\ufe0e"),
        ("1\ufe0f and #\ufe0f", "1 and #"),
        ("blank\u2800\U0001d159", "blank"),
        ("क्‍ष می‌خواهم", "क्‍ष می‌خواهم"),
    ],
)
def test_hidden_text_is_removed_and_writing_is_kept(hidden: str, shown: str) -> None:
    assert clean(hidden) == shown


IGNORABLE = [
    *(0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810)),
    *(*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070), 0x3164),
    *(*range(0xFE00, 0xFE10), 0xFEFF, 0xFFA0, *range(0xFFF0, 0xFFF9), *range(0x1BCA0, 0x1BCA4)),
    *(*range(0x1D173, 0x1D17B), *range(0xE0000, 0xE1000)),
]
"""What Unicode calls Default_Ignorable_Code_Point."""


@pytest.mark.parametrize("between", ["", "e"])
def test_nothing_that_is_drawn_as_nothing_is_left_or_unmarked(between: str) -> None:
    hidden = "".join(chr(number) + between for number in IGNORABLE)

    assert clean(f"h{hidden}") == "h" + between * len(IGNORABLE)
    assert escaped(f"h{hidden}").isascii()


SIGNS = st.sampled_from("a1#क❤©🔥\u20e3\u200c\u200d\ufe0e\ufe0f\ufe00\u034f\u061c\u2028\\")


@given(st.text() | st.text(SIGNS))
def test_what_shows_its_escapes_is_left_as_it_is_when_it_is_said(text: str) -> None:
    shown = escaped(text)

    assert on_its_lines(shown) == shown


@given(st.text() | st.text(SIGNS))
def test_cleaning_is_idempotent_and_leaves_nothing_hidden(text: str) -> None:
    cleaned = clean(text)

    assert clean(cleaned) == cleaned
    for character in cleaned:
        assert unicodedata.category(character)[0] != "C" or character in "\n\t\r\u200c\u200d"


def test_text_from_elsewhere_stays_on_its_line() -> None:
    assert on_one_line("a\x1b[2Jb\r\n\tc\u202e d\u0007 e\u2028f") == "ab c d e f"


def test_lines_end_the_one_way() -> None:
    assert on_its_lines("a\r\nb\rc\u2028d\u2029e\vf\x85g") == "a\nb\nc\nd\ne" + "fg"


def test_a_byte_of_a_path_that_is_no_text_can_be_seen() -> None:
    assert on_its_lines("dir\udcff/\u202ename") == "dir\\udcff/name"


def test_what_is_hidden_is_shown_as_escapes() -> None:
    shown = escaped("a\tb\x1b[2J\r\u202e\U000e0041\u2028é👩‍👩‍👧\n")

    assert shown == r"a	b\u001b[2J\r\u202e\udb40\udc41\u2028é👩‍👩‍👧" + "\n"


@given(st.recursive(st.text() | st.text(SIGNS), st.lists))
def test_json_says_the_same_when_nothing_in_it_is_hidden(value: object) -> None:
    text = escaped(json.dumps(value, ensure_ascii=False))

    assert json.loads(text) == value
    assert clean(text) == text


@given(st.text())
def test_no_line_begins_another(text: str) -> None:
    lines = on_its_lines(text)

    assert len(on_one_line(text).splitlines()) <= 1
    assert lines.splitlines() == lines.removesuffix("\n").split("\n") or not lines
