"""No query costs much, whatever it is and however many tools and servers there are."""

from functools import cache

import pytest

from aggregator.names import Lookup, ServerName, ToolName, plain_server
from aggregator.toolsearch import View, parse_search, search, tell
from tests.toolsearch.views import ready, text, tool, view_of
from tests.work import TURN_BOUND, calls

SERVERS, TOOLS = 500, 6

COMMON = ("get", "list", "create", "search", "data", "user", "file", "name", "of", "all")


@cache
def many() -> View:
    """Return a view of thousands of tools whose names share their words."""
    tools = [
        tool(f"{one}_{two}", f"Will {one} the {two} of a {COMMON[number % 5]}", id=text())
        for number, (one, two) in enumerate(zip(COMMON[:TOOLS], COMMON[3:], strict=False))
    ]
    return view_of(
        {f"server-{number}": ready(f"server-{number}", *tools) for number in range(SERVERS)}
    )


@pytest.mark.parametrize(
    "query",
    [
        " ".join(COMMON * 20),
        " ".join(f"+{word}" for word in COMMON * 8),
        " ".join(f"+zq{number}xw" for number in range(60)),
        " ".join(f'"{one} {two}"' for one in COMMON for two in COMMON),
        " ".join(f"{word[:-1]}qz" for word in COMMON * 10),
        "readonly: get",
        "destructive:false list",
        "destructive:",
        " ".join(f"server:server-{number}" for number in range(100)),
        f"mcp__a__{'b' * 60}",
        "x__*" * 20,
        "s__*" * 20,
        "select:" + ",".join(f"no_such_tool_{number}" for number in range(64)),
        "select:" + ",".join(f"{'a_' * 60}{number}" for number in range(64)),
        "getListCreateSearch" * 40,
        "/(a|b|c|d)*e(a|b)*/",
        "/(((a+)+)+)+$/",
        "/(a{1,50}){1,50}/",
        "/.*.*.*.*x/",
        f"/{'a?' * 60}{'a' * 60}/",
        "kind:tool,prompt,skill,resource get data",
    ],
)
def test_a_hostile_query_costs_a_bounded_number_of_calls(query: str) -> None:
    view = many()
    asked = parse_search({"query": query})

    def answer() -> None:
        tell(search(asked, view), view)

    answer()
    assert calls(answer) < TURN_BOUND


def test_names_as_they_are_listed_are_found_however_many_are_asked_for() -> None:
    view = many()
    names = list(view.catalog.entries)[:60]
    wrong = [f"no_such_tool_{number}" for number in range(4)]
    asked = parse_search({"query": f"select:{','.join([*wrong, *names])}"})

    assert [entry.name for entry in search(asked, view).matches] == names


def test_the_first_name_that_is_looked_for_costs_no_more_than_any_other() -> None:
    tools = [(f"server-{at // TOOLS}", f"get_{at}") for at in range(SERVERS * TOOLS)]
    known = Lookup.of((ToolName(f"{one}__{two}"), ServerName(one), two) for one, two in tools)

    first = calls(lambda: known.find("no_such_tool"))

    assert first < calls(lambda: known.find("no_other_tool")) + SERVERS


@pytest.mark.parametrize("name", ["Some-Server_2", "\u0130stanbul", "a.b c", "\u4e2d\u6587", ""])
def test_a_server_is_known_by_its_letters_and_digits(name: str) -> None:
    assert plain_server(name) == "".join(each for each in name.casefold() if each.isalnum())


@cache
def crowded() -> View:
    """Return a view of thousands of servers with a tool or two."""
    return view_of(
        {
            f"server-{number}": ready(f"server-{number}", tool("get_data"), tool(f"get_{number}"))
            for number in range(3_000)
        }
    )


@pytest.mark.parametrize(
    "arguments", [{}, {"query": "get data", "names": True}, {"query": "get data", "limit": 100}]
)
def test_thousands_of_servers_cost_a_look_each_and_not_one_for_each_tool_found(
    arguments: dict[str, object],
) -> None:
    view = crowded()
    asked = parse_search(arguments)

    def answer() -> None:
        tell(search(asked, view), view)

    answer()
    assert calls(answer) < TURN_BOUND


def test_an_overview_of_thousands_of_servers_counts_those_it_has_no_room_for() -> None:
    view = crowded()

    lines = tell(search(parse_search({}), view), view).text.split("\n")

    told = [line for line in lines if line.startswith("- server-")]
    assert told[0] == "- server-0 (2 tools)"
    assert f"({3_000 - len(told):,} more lines)" in lines
