"""What of a listing is accepted, and what is left of its text."""

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.config import ServerConfig
from aggregator.downstream.intake import (
    MAX_DEFINITION_CHARACTERS,
    MAX_DESCRIPTION,
    MAX_LISTING_CHARACTERS,
    MAX_REFUSALS,
    MAX_TOOLS,
    Intake,
    admit,
    clean,
    take_in,
    unmatched,
)
from aggregator.names import ServerName

SERVER = ServerConfig(
    ServerName("notes"),
    "notes",
    always_load=("search_*",),
    deny=("drop_*",),
    search_hints={"create": "memo jot"},
)


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **more}


def test_entries_carry_what_configuration_and_server_say() -> None:
    hinted = tool("create", _meta={"anthropic/searchHint": "note", "anthropic/alwaysLoad": True})
    reading = tool("search_notes", annotations={"readOnlyHint": True})

    entries, refused = take_in(SERVER, [hinted, reading, tool("drop_all")])

    assert refused == []
    assert [(each.name, each.always_load, each.hint, each.read_only) for each in entries] == [
        ("notes__create", True, "memo jot note", False),
        ("notes__search_notes", True, "", True),
    ]


def test_the_wishes_of_a_server_can_be_ignored() -> None:
    server = ServerConfig(ServerName("s"), "s", honour_always_load=False, trust_annotations=False)
    wishing = tool("x", _meta={"anthropic/alwaysLoad": True}, annotations={"readOnlyHint": True})

    ((entry,), _) = take_in(server, [wishing])

    assert (entry.always_load, entry.read_only) == (False, False)


def test_entries_that_match_no_tool_are_named_with_the_one_that_is_like_them() -> None:
    intake = Intake(allows=SERVER.allows)
    for name in ("create", "search_notes", "dropp_all"):
        intake.add(tool(name))

    assert unmatched(SERVER, intake) == (
        "`drop_*` in `tools.deny` matches none of its tools; did you mean `dropp_all`?",
    )
    intake.add(tool("drop_all"))
    assert unmatched(SERVER, intake) == ()


def test_of_a_listing_that_is_empty_or_cut_short_nothing_is_said_to_be_missing() -> None:
    cut = Intake(allows=SERVER.allows)
    cut.add(tool("anything"))
    cut.end("Its listing repeats a page")

    assert unmatched(SERVER, Intake()) == unmatched(SERVER, cut) == ()


def test_an_imitation_of_our_own_tools_is_refused_where_names_have_no_prefix() -> None:
    server = ServerConfig(ServerName("s"), "")

    entries, refused = take_in(server, [tool("ToolSearch"), tool("fine")])

    assert [entry.name for entry in entries] == ["fine"]
    assert refused == ["`ToolSearch` imitates a tool of the aggregator"]


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(depth):
        schema = {"items": schema}
    return schema


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ("text", "A tool is not an object"),
        ({}, "A tool has no name"),
        ({"name": 7}, "A tool has no name"),
        ({"name": " "}, "A tool has no name"),
        (tool("a\u202eb"), "`ab` has a name with hidden characters"),
        (tool("x" * 300), "of more than 256 characters"),
        ({"name": "x", "inputSchema": []}, "an input schema that is not an object"),
        (tool("x", inputSchema={"enum": list(range(30_000))}), "a definition that is too large"),
        (tool("x", inputSchema={"title": "y" * 300_000}), "a definition that is too large"),
        (tool("x", inputSchema=nested(5_000)), "more than 64 levels deep"),
        (tool("good"), "`good` is listed twice"),
    ],
)
def test_a_tool_that_cannot_be_used_is_refused_and_the_rest_stays(bad: Any, problem: str) -> None:
    admitted = admit([tool("good"), bad, tool("better")])

    assert [each["name"] for each in admitted.definitions] == ["good", "better"]
    (sentence,) = admitted.refused
    assert problem in sentence


def test_more_tools_than_anybody_needs_are_cut() -> None:
    admitted = admit(tool(f"t{number}") for number in range(MAX_TOOLS + 10))

    assert len(admitted.definitions) == MAX_TOOLS
    assert admitted.refused == (f"It lists more than {MAX_TOOLS:,} tools; the rest is left out",)


def test_a_megabyte_of_description_is_cut_with_a_mark() -> None:
    ((cut,), _) = (admitted := admit([tool("x", description="a" * (1 << 20))])).definitions, None

    assert cut["description"] == "a" * MAX_DESCRIPTION + " […]"
    assert admitted.refused == ()


def test_what_is_missing_or_wrong_is_made_good() -> None:
    (made,) = admit([{"name": "x", "description": 5}]).definitions

    assert made == {"name": "x", "inputSchema": {"type": "object", "properties": {}}}


def test_texts_are_cleaned_at_every_depth() -> None:
    (cleaned,) = admit(
        [
            tool(
                "x",
                description="red \x1b[31malert\x1b[0m",
                inputSchema={"properties": {"a\u200b": {"enum": ["b\u202e", 1, None]}}},
            )
        ]
    ).definitions

    assert cleaned["description"] == "red alert"
    assert cleaned["inputSchema"] == {"properties": {"a": {"enum": ["b", 1, None]}}}


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
        ("family 👩‍👩‍👧", "family 👩‍👩‍👧"),
        ("क्‍ष", "क्‍ष"),
    ],
)
def test_hidden_text_is_removed_and_writing_is_kept(hidden: str, shown: str) -> None:
    assert clean(hidden) == shown


@given(st.text())
def test_cleaning_is_idempotent_and_leaves_nothing_hidden(text: str) -> None:
    cleaned = clean(text)

    assert clean(cleaned) == cleaned
    for character in cleaned:
        assert unicodedata.category(character)[0] != "C" or character in "\n\t\r\u200c\u200d"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(st.lists(json_values))
def test_any_listing_is_sorted_out_without_an_error(listing: list[Any]) -> None:
    entries, refused = take_in(SERVER, listing)

    assert len(entries) + len(refused) <= len(listing)


def test_of_a_listing_full_of_rubbish_only_a_few_sentences_are_said() -> None:
    admitted = admit([*({} for _ in range(100_000)), tool("good")])

    assert [each["name"] for each in admitted.definitions] == ["good"]
    assert len(admitted.refused) == MAX_REFUSALS + 1
    assert admitted.refused[-1] == f"{100_000 - MAX_REFUSALS:,} more were refused"


def test_all_definitions_of_one_listing_together_are_bounded() -> None:
    size = MAX_DEFINITION_CHARACTERS - 1000
    admitted = admit(tool(f"t{number}", title="x" * size) for number in range(200))

    kept = len(admitted.definitions)
    assert kept == MAX_LISTING_CHARACTERS // (size + 50)
    assert "the rest is left out" in admitted.refused[-1]
