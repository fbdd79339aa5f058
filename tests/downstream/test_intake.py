"""What of a listing is accepted, and what is left of its text."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.catalog import Ready
from aggregator.config import ServerConfig
from aggregator.downstream.definition import MAX_CHARACTERS, MAX_DESCRIPTION
from aggregator.downstream.intake import (
    MAX_LISTING_CHARACTERS,
    MAX_LISTING_NODES,
    MAX_REFUSALS,
    MAX_TOOLS,
    MAX_WITHHELD,
    PROMPT,
    RESOURCE,
    TEMPLATE,
    TOOL,
    Intake,
    Kind,
    admit,
    take_in,
    unmatched,
)
from aggregator.downstream.review import restricted, reviewed
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


def told(server: ServerConfig, intake: Intake) -> tuple[str, ...]:
    """Return what of a configuration holds for no tool."""
    return tuple(filter(None, unmatched(server, intake)))


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


def listed(*tools: dict[str, Any]) -> Ready:
    return Ready(tuple(take_in(ServerConfig(ServerName("s"), "s"), tools)[0]))


def test_a_restriction_takes_away_and_gives_nothing() -> None:
    state = listed(tool("x", annotations={"readOnlyHint": True}), tool("y"))
    harmless = ServerConfig(ServerName("s"), "other", always_load=True)
    strict = ServerConfig(ServerName("s"), "other", deny=("y",), trust_annotations=False)

    (entry,) = restricted(strict, state).entries

    assert restricted(harmless, state) is state
    assert (entry.name, entry.read_only) == ("s__x", False)


def test_entries_that_a_review_finds_unchanged_stay_the_same() -> None:
    """How long each is has been found out already."""
    state = listed(tool("x"), tool("y"))
    server = ServerConfig(ServerName("s"), "s", search_hints={"y": "zeppelin"})

    same, hinted = reviewed(server, state).entries

    assert same is state.entries[0]
    assert hinted.hint == "zeppelin"


def test_entries_that_match_no_tool_are_named_with_the_one_that_is_like_them() -> None:
    intake = Intake(allows=SERVER.allows)
    for name in ("create", "search_notes", "dropp_all"):
        intake.add(tool(name))

    assert told(SERVER, intake) == (
        "`drop_*` in `tools.deny` matches none of its tools; did you mean `dropp_all`?",
    )
    intake.add(tool("drop_all"))
    assert told(SERVER, intake) == ()


def test_of_a_listing_that_is_empty_or_cut_short_nothing_is_said_to_be_missing() -> None:
    cut = Intake(allows=SERVER.allows)
    cut.add(tool("anything"))
    cut.end("Its listing repeats a page")

    assert told(SERVER, Intake()) == told(SERVER, cut) == ()


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


def test_a_listing_ends_with_more_withheld_tools_than_anybody_has() -> None:
    asked: list[str] = []
    intake = Intake(allows=lambda name: bool(asked.append(name)))
    for number in range(MAX_WITHHELD * 3):
        intake.add(tool(f"t{number}"))

    assert len(intake.withheld) == MAX_WITHHELD
    assert len(asked) == MAX_WITHHELD + 1
    assert intake.is_full
    assert intake.admitted.refused == (
        f"It lists more than {MAX_WITHHELD:,} tools that are not allowed; the rest is left out",
    )


def test_a_withheld_tool_that_is_repeated_counts_once() -> None:
    intake = Intake(allows=lambda name: name != "secret")
    for name in ["secret"] * (MAX_WITHHELD + 1) + ["open"]:
        intake.add(tool(name))

    assert [each["name"] for each in intake.admitted.definitions] == ["open"]
    assert intake.admitted.refused == ()


def test_a_megabyte_of_description_is_cut_with_a_mark() -> None:
    ((cut,), _) = (admitted := admit([tool("x", description="a" * (1 << 20))])).definitions, None

    assert cut["description"] == "a" * MAX_DESCRIPTION + " […]"
    assert admitted.refused == ()


def test_a_long_text_is_cleaned_as_a_short_one_is() -> None:
    lines = "red \x1b[31malert\x1b[0m\n" * 5_000
    (cleaned,) = admit([tool("x", title=lines, of=[lines])]).definitions

    assert cleaned["title"] == "red alert\n" * 5_000
    assert cleaned["of"] == [cleaned["title"]]


def test_a_description_is_marked_as_cut_though_little_of_it_can_be_seen() -> None:
    hidden = "\u200b" * (2 * MAX_DESCRIPTION)
    (cut,) = admit([tool("x", description=f"seen{hidden}more")]).definitions

    assert cut["description"] == "seen […]"


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


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.mark.no_cover
@given(st.lists(json_values))
def test_any_listing_is_sorted_out_without_an_error(listing: list[Any]) -> None:
    entries, refused = take_in(SERVER, listing)

    assert len(entries) + len(refused) <= len(listing)


def test_a_name_of_signs_that_are_whole_words_is_refused() -> None:
    admitted = admit([tool("\ufdfa" * 30), tool("\u00e9" * 256), tool("\ufdfa")])

    assert [len(each["name"]) for each in admitted.definitions] == [256, 1]
    (sentence,) = admitted.refused
    assert sentence.endswith("` has a name of signs that stand for too many characters")


def test_of_a_listing_full_of_rubbish_only_a_few_sentences_are_said() -> None:
    admitted = admit([*({} for _ in range(100_000)), tool("good")])

    assert [each["name"] for each in admitted.definitions] == ["good"]
    assert len(admitted.refused) == MAX_REFUSALS + 1
    assert admitted.refused[-1] == f"{100_000 - MAX_REFUSALS:,} more were refused"


def test_all_definitions_of_one_listing_together_are_bounded() -> None:
    size = MAX_CHARACTERS - 1000
    admitted = admit(tool(f"t{number}", title="x" * size) for number in range(200))

    kept = len(admitted.definitions)
    assert kept == MAX_LISTING_CHARACTERS // (size + 50)
    assert "the rest is left out" in admitted.refused[-1]


@pytest.mark.no_cover
@pytest.mark.parametrize("kind", [TOOL, PROMPT, RESOURCE, TEMPLATE], ids=lambda kind: kind.noun)
def test_a_listing_of_nothing_but_numbers_and_empty_objects_is_bounded_too(kind: Kind) -> None:
    broad: list[Any] = [{}, *[7] * 17_999]
    admitted = admit(({kind.key: f"x{each}", "of": broad} for each in range(50)), kind=kind)

    assert len(admitted.definitions) == MAX_LISTING_NODES // (len(broad) + 4)
    assert admitted.refused == (
        f"It lists more than {MAX_LISTING_NODES:,} values; the rest is left out",
    )
