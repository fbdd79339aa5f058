"""No query costs much, whatever it is and however many tools and servers there are."""

from collections.abc import Iterator
from functools import cache

import pytest

from aggregator.catalog import Pending
from aggregator.names import Lookup, ServerName, ToolName, plain_server
from aggregator.toolsearch import SearchRequest, parse_search
from aggregator.toolsearch.answer import tell
from aggregator.toolsearch.concern import awaited
from aggregator.toolsearch.find import search, searching
from aggregator.toolsearch.view import View
from tests.toolsearch.views import ready, text, tool, view_of
from tests.work import TURN_BOUND, calls, longest_turn

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


HOSTILE = (
    {"queries": [" ".join(COMMON[at:] + COMMON[:at]) * 4 for at in range(8)]},
    {"queries": ["select:" + ",".join(f"no_{at}_{each}" for each in range(64)) for at in range(8)]},
    {"queries": [f"/(.*)(.*)(.*)zz{at}/" for at in range(8)]},
)


@pytest.mark.parametrize("arguments", HOSTILE)
def test_others_have_their_turn_between_several_queries(arguments: dict[str, object]) -> None:
    """However many queries there are, none of their turns takes longer than one query may."""
    asked, view = parse_search(arguments), many()
    search(asked, view)

    longest = longest_turn(_turns(asked, view))

    assert longest < TURN_BOUND // 3
    assert sum(1 for _ in searching(asked, view)) >= len(asked.queries)


def _turns(asked: SearchRequest, view: View) -> Iterator[None]:
    found = yield from searching(asked, view)
    tell(found, view)


def test_many_names_that_mean_no_tool_are_looked_for_in_turns() -> None:
    view = crowded()
    asked = parse_search({"query": "select:" + ",".join(f"no_{each}" for each in range(64))})

    missing = search(asked, view).results[0].missing

    assert sum(1 for _ in searching(asked, view)) >= 2
    assert len(missing) == 64
    assert sum(bool(each.nearest) for each in missing) >= 2


def test_many_names_are_looked_for_in_turns_however_few_servers_there_are() -> None:
    view = view_of({f"server-{at}": ready(f"server-{at}", tool("get_data")) for at in range(20)})
    asked = parse_search({"query": "select:" + ",".join(f"no_{'a_' * 60}{at}" for at in range(64))})

    assert sum(1 for _ in searching(asked, view)) >= 3


def test_many_tools_are_told_in_another_turn_than_found() -> None:
    few, many_ = (parse_search({"query": "get data", "max_results": most}) for most in (8, 50))

    assert [sum(1 for _ in searching(asked, many())) for asked in (few, many_)] == [0, 1]


def test_what_is_waited_for_is_worked_out_without_a_look_for_each_of_many_names() -> None:
    servers = {f"server-{at}": ready(f"server-{at}", tool("get_data")) for at in range(1_000)}
    view = view_of({**servers, "late": Pending()})
    few, many_ = (
        parse_search({"query": "select:" + ",".join(f"late__no_{at}" for at in range(number))})
        for number in (8, 64)
    )

    assert awaited(many_, view.catalog, view.lookup) == ("late",)
    cost = calls(lambda: awaited(few, view.catalog, view.lookup))
    assert calls(lambda: awaited(many_, view.catalog, view.lookup)) < 2 * cost + 2_000


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
