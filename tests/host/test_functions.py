"""What is decided about requests, as functions of values."""

import ast
import sys
from pathlib import Path
from typing import Any

import pytest

import aggregator.host
from aggregator.host.announcing import Note, Told, announce, digests, menu, standing
from aggregator.host.deferral import (
    Mode,
    approximate_tokens,
    is_deferred,
    read_mode,
    threshold,
    without_preamble,
)
from aggregator.host.definitions import accepted_schema
from aggregator.host.gates import carry_for_messages, carry_for_responses
from aggregator.host.messages.history import discovered, in_effect
from aggregator.host.messages.stripping import (
    BOUNDARY,
    strip,
    with_boundaries,
    with_moved_siblings,
)
from aggregator.host.mine import search_mine
from aggregator.host.plain import plain
from aggregator.host.pool import Tool
from aggregator.host.results import (
    Picture,
    Result,
    messages_content,
    read_finding,
    read_result,
    responses_output,
)

Json = dict[str, Any]

SHELL = {"toolbox", "connection", "conversation", "__init__"}
"""The modules that wait for something."""


def result(*content: Json, use: str = "s") -> Json:
    block = {"type": "tool_result", "tool_use_id": use, "content": list(content)}
    return {"role": "user", "content": [block]}


def searched(use: str = "s") -> Json:
    block: Json = {"type": "tool_use", "id": use, "name": "ToolSearch", "input": {}}
    return {"role": "assistant", "content": [block]}


def reference(name: str) -> Json:
    return {"type": "tool_reference", "tool_name": name}


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def test_what_only_decides_needs_nothing_but_python() -> None:
    folder = Path(aggregator.host.__file__).parent
    imported = {
        name
        for path in folder.rglob("*.py")
        if path.stem not in SHELL
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom | ast.Import)
        for name in ([node.module] if isinstance(node, ast.ImportFrom) else [node.names[0].name])
    }
    foreign = {str(name).partition(".")[0] for name in imported} - sys.stdlib_module_names

    assert foreign == {"aggregator"}
    assert {str(name) for name in imported if ".host" not in str(name)} & {"aggregator.basics.json"}


@pytest.mark.parametrize(
    ("tool", "marked", "expected"),
    [
        (Tool("a__b", "", {}, "a"), False, True),
        (Tool("a__b", "", {}, "a", always_load=True), False, False),
        (Tool("ToolSearch", "", {}, "a"), False, False),
        (Tool("kept", "", {}, "a"), False, False),
        (Tool("mine", "", {}), False, False),
        (Tool("mine", "", {}), True, True),
    ],
)
def test_the_checklist_of_deferral(tool: Tool, *, marked: bool, expected: bool) -> None:
    assert is_deferred(tool, "ToolSearch", {"kept"}, is_marked=marked) is expected


@pytest.mark.parametrize(
    ("value", "percent"),
    [(True, 0), ("true", 0), ("auto:0", 0), ("auto", 10), ("auto:25", 25), (False, 100)],
)
def test_the_modes(value: bool | str, percent: int) -> None:
    assert read_mode(value) == Mode(percent)
    assert read_mode("auto:100").never
    with pytest.raises(ValueError, match="defer"):
        read_mode("sometimes")


def test_the_threshold_and_what_is_counted() -> None:
    assert threshold(200_000, 10) == 20_000
    assert without_preamble(700) == 200
    assert without_preamble(100) == 0
    assert approximate_tokens([Tool("abc", "de", {})]) == int(7 / 2.5)


@pytest.mark.parametrize(
    ("model", "url", "carry"),
    [
        ("claude-opus-5", None, "reference"),
        ("claude-opus-5", "https://api.anthropic.com/", "reference"),
        ("claude-haiku-4-5", None, "plain"),
        ("claude-opus-5", "https://gateway.example/anthropic", "all"),
        ("claude-opus-5", "https://api.anthropic.com.example/", "all"),
    ],
)
def test_the_way_to_a_model_of_anthropic(model: str, url: str | None, carry: str) -> None:
    assert carry_for_messages(model, url) == carry
    assert carry_for_messages(model, url, unable=(), hosts=("gateway.example",)) in (
        "reference",
        "all",
    )


@pytest.mark.parametrize(
    ("model", "url", "carry"),
    [
        ("gpt-5.4", None, "inline"),
        ("gpt-6-sol", "https://us.openai.azure.com/v1", "inline"),
        ("gpt-5.4-nano", None, "plain"),
        ("gpt-4.1", None, "plain"),
        ("o4-mini", None, "all"),
        ("gpt-5.4", "http://localhost:8080/v1", "all"),
    ],
)
def test_the_way_to_a_model_of_openai(model: str, url: str | None, carry: str) -> None:
    assert carry_for_responses(model, url) == carry


def test_what_was_found_is_read_from_the_history_alone() -> None:
    hosted = {
        "type": "tool_search_tool_result",
        "tool_use_id": "h",
        "content": {
            "type": "tool_search_tool_search_result",
            "tool_references": [reference("b")],
        },
    }
    added: Json = {"type": "tool_definition", "definition": {"name": "c", "input_schema": {}}}
    history: list[Json] = [
        {"role": "user", "content": "hello"},
        searched(),
        result(reference("a")),
        {"role": "assistant", "content": [hosted]},
        {"role": "system", "content": [{"type": "tool_addition", "tool": added}]},
        searched("p"),
        result(text("Loaded: d, e."), use="p"),
        result(text("Loaded: lies."), use="of another tool"),
    ]

    assert discovered(history) == ("a", "b", "c", "d", "e")
    assert in_effect(history, "reference") == ("a", "b")
    assert in_effect(history, "inline") == ("c",)
    assert in_effect(history, "plain") == ()


def test_references_that_nothing_defines_are_taken_out_and_nothing_else_is_touched() -> None:
    history = [searched(), result(reference("a"), reference("b")), result(reference("b"))]

    kept = strip(history, "reference", {"a"})

    assert kept[0] is history[0]
    assert kept[1]["content"][0]["content"] == [reference("a")]
    assert kept[2]["content"][0]["content"] == [text("These tools are not available any more: b.")]
    assert strip(history, "reference", {"a", "b"})[1] is history[1]


def test_turns_of_references_end_with_a_text_and_texts_beside_them_move_on() -> None:
    beside = result(reference("a"))
    beside["content"].append(text("and this"))
    later = result(text("done"), use="t")

    assert with_boundaries([beside, later])[0]["content"][-1] == text(BOUNDARY)
    assert with_boundaries([later]) == [later]
    moved = with_moved_siblings([beside, searched("t"), later])
    assert moved[0]["content"] == result(reference("a"))["content"]
    assert moved[2]["content"][-1] == text("and this")
    assert with_moved_siblings([beside]) == [beside]


def test_the_menu_names_each_server_once() -> None:
    names = ["github__create_issue", "github__list_issues", "mail__send", "mine"]

    assert menu(names) == ["github: create_issue, list_issues", "mail: send", "mine"]
    assert menu(names, room=45) == ["github (2 tools), mail (1 tools),  (1 tools)"]


def test_only_what_is_new_is_announced() -> None:
    first = Told(("a__b",), ("c",))

    assert announce(None, Told(()), "ToolSearch") == ""
    assert announce(first, first, "ToolSearch") == ""
    assert "Not connected yet: c." in announce(None, first, "ToolSearch")
    assert "New:\nc: d\nGone:\na: b" in announce(first, Told(("c__d",)), "ToolSearch")


def test_a_note_stands_while_the_history_before_it_does() -> None:
    history: list[Json] = [{"role": "user", "content": "one"}, {"role": "user", "content": "two"}]
    marks = digests(history)
    notes = [Note(at, marks[at], "", Told(())) for at in (1, 2)]

    assert standing(notes, digests([*history, {"role": "user"}])) == tuple(notes)
    assert standing(notes, digests(history[:1])) == tuple(notes[:1])
    assert standing(notes, digests(history[1:])) == ()


def test_a_schema_has_no_choices_at_its_top() -> None:
    choices: Json = {
        "oneOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}}]
    }

    assert accepted_schema(choices) == {"type": "object", "properties": {"a": {}, "b": {}}}
    whole = {"type": "object", "allOf": [{"required": ["x"]}], "required": ["y"]}
    assert accepted_schema(whole)["required"] == ["y", "x"]


def test_results_pass_as_texts_and_images() -> None:
    given = read_result(
        {
            "content": [
                {"type": "text", "text": "seen"},
                {"type": "image", "mimeType": "image/png", "data": "AA=="},
                {"type": "audio", "mimeType": "audio/wav", "data": "AA=="},
                {"type": "resource", "resource": {"uri": "a://b", "text": "held"}},
                {"type": "resource", "resource": {"uri": "a://c", "blob": "AA=="}},
                {"type": "resource_link", "name": "d", "uri": "a://d"},
            ],
            "isError": True,
        }
    )

    assert given.parts[1] == Picture("image/png", "AA==")
    assert given.parts[2:] == ("[audio, audio/wav]", "held", "[a file: a://c]", "[d: a://d]")
    assert messages_content(given)[1]["source"]["media_type"] == "image/png"
    assert responses_output(given)[1] == {
        "type": "input_image",
        "detail": "auto",
        "image_url": "data:image/png;base64,AA==",
    }
    assert responses_output(Result(("no",), is_error=True)) == "The call failed: no"
    assert read_result({"structuredContent": {"a": 1}}).parts == ('{"a": 1}',)


def test_a_finding_says_which_servers_are_not_there_yet() -> None:
    facts = {"tools": [{"name": "a__b"}], "pending_mcp_servers": [{"name": "jira"}]}

    found = read_finding({"_meta": {"aggregator/search": facts}})

    assert [tool.name for tool in found.tools] == ["a__b"]
    assert "Not searched yet: jira" in found.remark


def test_a_finding_loads_what_is_defined_and_names_the_rest() -> None:
    facts = {
        "matches": ["a__b", "a__c"],
        "tools": [{"name": "a__b"}, {"name": "a__c"}],
        "tool_references": [reference("a__b")],
    }

    found = read_finding({"_meta": {"aggregator/search": facts}})

    assert [tool.name for tool in found.tools] == ["a__b"]
    assert found.remark == 'Found as well: a__c. Ask for "select:<name>" to have one.'


def test_the_authors_own_tools_are_found_by_the_scores_people_know() -> None:
    tools = {
        name: Tool(name, about, {})
        for name, about in {
            "slack_send_message": "",
            "slack_list_channels": "",
            "createIssue": "Opens an issue; already read",
            "email_send_email": "",
        }.items()
    }

    def found(query: str) -> list[str]:
        return [tool.name for tool in search_mine(query, tools, 5)]

    assert found("slack send") == ["slack_send_message", "slack_list_channels", "email_send_email"]
    assert found("+slack send") == ["slack_send_message", "slack_list_channels"]
    assert found("CREATEISSUE") == found("select:createIssue,none") == ["createIssue"]
    assert found("issue") == found("iss") == ["createIssue"]
    assert found("thread") == []


def test_messages_may_be_values_of_a_vendors_package() -> None:
    class Value:
        def to_dict(self) -> dict[str, object]:
            return {"type": "text", "text": "hello"}

    assert plain({"role": "user", "content": [Value()]})["content"] == [text("hello")]
    with pytest.raises(TypeError, match="to_dict"):
        plain(1)
