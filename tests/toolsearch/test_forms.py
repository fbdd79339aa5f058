"""The forms of a query beside plain words."""

from typing import Any

import pytest

from aggregator.catalog import Ready
from aggregator.names import ToolName
from tests.toolsearch.views import EMAIL, GITHUB, SLACK, ask, names, ready, tool, view_of

ALL: dict[str, Any] = {"slack": SLACK, "github": GITHUB, "email": EMAIL}
FILES = ready("files", *(tool(f"{verb}_file") for verb in ("read", "write", "delete", "list")))
READING = ready("wiki", tool("find_page"), tool("read_page"), read_only=True)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("mcp__slack__s", ["slack__send_message"]),
        ("slack__list", ["slack__list_channels"]),
        ("mcp__aggregator__github__create", ["github__create_issue"]),
        ("mcp__git", ["github__create_issue"]),
        ("MCP__SLACK__Send*", ["slack__send_message"]),
    ],
)
def test_the_beginning_of_names_finds_those(query: str, found: list[str]) -> None:
    assert names(ask(view_of(ALL), query)) == found


def test_the_beginning_of_many_names_finds_as_many_as_are_asked_for() -> None:
    many = ready("files", *(tool(f"read_{n}") for n in range(9)), tool("write"))

    found = ask(view_of({"files": many}), "mcp__files__read", max_results=3)
    rest = ask(view_of({"files": many}), "mcp__files__read", max_results=3, offset=6)

    assert names(found) == ["files__read_0", "files__read_1", "files__read_2"]
    assert '"offset": 3' in found.text
    assert names(rest) == ["files__read_6", "files__read_7", "files__read_8"]
    assert "offset" not in rest.text


@pytest.mark.parametrize(
    ("server", "query"),
    [
        ("weather-api", "+weather-api forecast"),
        ("weather-api", "+weather_api"),
        ("mcp-server-git", "+mcp-server-git forecast"),
        ("my-server", "+my-server"),
        ("api", "+api forecast"),
    ],
)
def test_a_server_can_be_required_whatever_its_name_is_made_of(server: str, query: str) -> None:
    states: dict[str, Any] = {**ALL, server: ready(server, tool("forecast", "Weather tomorrow"))}

    assert [str(name).partition("__")[2] for name in names(ask(view_of(states), query))] == [
        "forecast"
    ]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("readonly:", {"wiki__find_page", "wiki__read_page"}),
        ("readonly: read", {"wiki__read_page"}),
        ("readonly:read", {"wiki__read_page"}),
        ("readonly:true read", {"wiki__read_page"}),
        ("readonly:false read", {"files__read_file", "files__write_file"}),
        ("destructive: read", {"files__read_file"}),
        ("destructive:false read", {"wiki__read_page", "files__write_file"}),
    ],
)
def test_annotations_narrow_a_search(query: str, found: set[str]) -> None:
    read, write, *_ = FILES.entries
    mild = {**write.tool, "description": "Read", "annotations": {"destructiveHint": False}}
    files = ready("files", read.tool, mild)

    told = ask(view_of({"files": files, "wiki": READING}), query)

    assert set(names(told)) == found


@pytest.mark.parametrize("query", ["", "file", "server:files"])
def test_names_alone_are_told_by_server(query: str) -> None:
    found = ask(view_of({"files": FILES}), query, names=True)

    line = next(each for each in found.text.splitlines() if each.startswith("files__: "))
    told = {ToolName(f"files__{name}") for name in line.removeprefix("files__: ").split(", ")}
    assert told == {entry.name for entry in FILES.entries}
    assert "Parameters" not in found.text
    assert found.shown == ()
    assert found.meta["tools"] == found.meta["tool_references"] == []


def test_names_alone_fit_whatever_their_number() -> None:
    states: dict[str, Ready] = {
        f"server{n}": ready(f"server{n}", *(tool(f"do_{each}") for each in range(50)))
        for n in range(60)
    }

    named, overview = ask(view_of(states), "", names=True), ask(view_of(states), "")

    assert len(named.text) <= 8_000
    assert "server0__: do_0, do_1" in named.text
    assert " more" in named.text
    assert "server0__:" not in overview.text


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("/^slack__/", ["slack__send_message", "slack__list_channels"]),
        ("/create_(issue|pr)$/i", ["github__create_issue"]),
        (r"/\bCHANNEL/", ["slack__send_message", "slack__list_channels"]),
        ("/nothing at all/", []),
    ],
)
def test_a_query_in_slashes_is_a_regular_expression(query: str, found: list[str]) -> None:
    told = ask(view_of(ALL), query)

    assert set(names(told)) == set(found) or names(told) == found


def test_an_expression_that_cannot_be_used_says_why() -> None:
    assert "(?:" in ask(view_of(ALL), "/a(?=b)/").text


def test_an_expression_that_is_too_much_work_says_so() -> None:
    states = {"files": ready("files", *(tool(f"t{n}", "ab" * 1_000) for n in range(300)))}

    told = ask(view_of(states), "/(a|b)*a(a|b){20}x/")

    assert "was not held against all there is" in told.text
