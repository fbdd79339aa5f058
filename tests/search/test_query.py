"""Every text is a query: the grammar, form by form."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.search.query import Keywords, Overview, Query, Select, parse_query


def words(text: str, *terms: str, **rest: Any) -> Keywords:
    return Keywords(text, terms, **rest)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("", Overview()),
        ("  \n", Overview()),
        ("*", Overview()),
        ("\x00\x07", Overview()),
        ("select:a,b", Select(("a", "b"))),
        ("Select: github/create_issue , `b`,,b", Select(("github/create_issue", "b"))),
        ("select:", Select(())),
        ("slack send", words("slack send", "slack", "send")),
        ("+slack send", words("+slack send", "slack", "send", required=("slack",))),
        ("create + save", words("create + save", "create", "save")),
        ("c++ build", words("c++ build", "c++", "build")),
        (
            '"send a message" now',
            words(
                '"send a message" now', "send", "a", "message", "now", phrases=("send a message",)
            ),
        ),
        ('"slack"', words('"slack"', "slack")),
        (
            '+"send mail"',
            words(
                '+"send mail"', "send", "mail", required=("send", "mail"), phrases=("send mail",)
            ),
        ),
        ("server:github", words("server:github", servers=("github",))),
        ("Server:github issue", words("Server:github issue", "issue", servers=("github",))),
        ("mcp__github", words("mcp__github", servers=("github",))),
        ("mcp__github__", words("mcp__github__", servers=("github",))),
        ("mcp__github__*", words("mcp__github__*", servers=("github",))),
        ("github__ issue", words("github__ issue", "issue", servers=("github",))),
        ("github__create_issue", words("github__create_issue", "github__create_issue")),
        ("mcp__github__create", words("mcp__github__create", "mcp__github__create")),
        ("server: github", words("server: github", "server:", "github")),
        ('say "hi', words('say "hi', "say", '"hi')),
        ("!!! ???", words("!!! ???")),
    ],
)
def test_a_text_means(text: str, query: Query):
    assert parse_query(text) == query


@given(st.text(max_size=200) | st.text(alphabet='+"_:* selctrvmp,', max_size=200))
def test_any_text_is_a_query(text: str):
    assert isinstance(parse_query(text), Select | Overview | Keywords)


def test_a_long_query_is_read_within_bounds():
    query = parse_query("word " * 2000)
    assert isinstance(query, Keywords)
    assert len(query.text) <= 4096
    assert len(query.terms) == 400


def test_a_long_selection_keeps_whole_names():
    names = [f"github__a_rather_long_name_of_a_tool_{n}" for n in range(40)]
    assert parse_query("select:" + ",".join(names)) == Select(tuple(names))


def test_a_kind_narrows_and_is_no_word_to_rank_by():
    assert parse_query("kind:prompt review") == Keywords(
        "kind:prompt review", ("review",), kinds=("prompt",)
    )
    assert parse_query("KIND:Skills|prompts,tool") == Keywords(
        "KIND:Skills|prompts,tool", kinds=("tool", "prompt", "skill")
    )
    assert parse_query("kind:widget") == Keywords("kind:widget", ("kind:widget",))
