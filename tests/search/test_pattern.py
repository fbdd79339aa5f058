"""Regular expressions that take no longer than they are long."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.search.pattern import Pattern, PatternError, literals
from tests.work import counting

WORK = 200_000

ATOMS = ["a", "b", "ab", "[ab]", "[^a]", ".", r"\w", r"\d", "(a|b)", "(?:a|bc)", "[a-c_]", r"\."]
LOOKS = ["^", "$", r"\b"]
COUNTS = ["", "*", "+", "?", "{2}", "{0,2}", "{1,}", "*?"]
parts = st.tuples(st.sampled_from(ATOMS), st.sampled_from(COUNTS)).map("".join)
sources = st.lists(parts | st.sampled_from(LOOKS), min_size=1, max_size=5).map("".join)
texts = st.text("abcAB_1 .", max_size=10)


@given(sources, st.none() | sources, texts)
def test_it_finds_what_python_finds(first: str, second: str | None, text: str) -> None:
    source = first if second is None else f"{first}|{second}"

    found = Pattern(source, WORK).is_in(text)

    assert found is (re.search(source, text, re.IGNORECASE) is not None)


@pytest.mark.parametrize(
    "source",
    [
        "(a|b)*a(a|b){20}",
        "(a*)*b",
        "(a+)+$",
        "a*a*a*a*a*b",
        ".*.*.*x{99}",
        r"(.|.)*(.|\w)*z",
        "(a?){30}a{30}",
        ".{0,50}.{0,50}x",
        r"(\w+\s*)+$",
    ],
)
def test_no_pattern_costs_more_than_its_work(source: str) -> None:
    hostile = ["a" * 2_000, "ab" * 1_000, "creates an issue of a kind " * 80] * 300
    pattern = Pattern(source, WORK)

    with counting() as tally:
        for text in hostile:
            pattern.is_in(text)

    assert tally.calls < 2 * WORK


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("((((a{9}){9}){9}){9})", "repeats too much"),
        ("(" * 30 + ")" * 30, "nested too deep"),
        ("x" * 201, "longer than 200"),
        ("(a", "not closed"),
        ("a)", "closes no group"),
        ("[a", "not closed"),
        ("[", "not closed"),
        ("*a", "nothing before"),
        ("a**", "nothing before"),
        ("a{3,1}", "counts down"),
        (r"(a)\1", "cannot be used"),
        (r"\p", "cannot be used"),
        ("a\\", "cannot be used"),
        ("a(?=b)", "begins with"),
        ("(?<!a)b", "begins with"),
    ],
)
def test_what_cannot_be_used_says_why(source: str, why: str) -> None:
    with pytest.raises(PatternError, match=re.escape(why)):
        Pattern(source, WORK)


@pytest.mark.parametrize(
    ("source", "text", "found"),
    [
        ("(?i)CREATE", "create", True),
        (r"[\d\]-]x", "]x", True),
        ("[]a]", "]", True),
        ("[A-F]", "c", True),
        (r"a\tb", "a\tb", True),
        (r"\Ba\B", "bab", True),
        (r"[\w-]+$", "a-b", True),
        ("", "", True),
        ("a{x}", "a{x}", True),
    ],
)
def test_what_people_write(source: str, text: str, found: bool) -> None:
    assert Pattern(source, WORK).is_in(text) is found


def test_once_its_work_is_spent_nothing_is_found() -> None:
    pattern = Pattern("a", 1_000)

    assert pattern.is_in("a")
    assert not pattern.is_in("b" * 2_000 + "a")
    assert pattern.is_spent
    assert not pattern.is_in("a")


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("create_(issue|pr).*open", ("create_", "open")),
        ("a|b", ()),
        ("(x|y)abc|d", ()),
        ("issues?", ("issue",)),
        ("[ab]{12}", ()),
        (r"\d\d", ()),
        ("[]ab]cd", ()),
    ],
)
def test_the_texts_that_must_be_there(source: str, text: tuple[str, ...]) -> None:
    assert literals(source) == text
