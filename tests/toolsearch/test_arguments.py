from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.names import MetaTools
from aggregator.search.query import parse_query
from aggregator.toolsearch import CallRequest, Problem, SearchRequest, parse_call, parse_search

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
KEYS = ["query", "queries", "max_results", "wait", "offset", "name", "arguments", "tool", "args"]


@pytest.mark.parametrize(
    ("sent", "queries"),
    [
        ({"query": "send"}, ("send",)),
        ({"query": ["send", "receive"]}, ("send", "receive")),
        ({"queries": "send"}, ("send",)),
        ({"queries": '["send", "receive"]'}, ("send", "receive")),
        ({"query": "a", "queries": ["b", "a", ""]}, ("a", "b")),
        ({"queries": [{"query": "send"}, 7, None]}, ("send", "7")),
        ('{"query": "send"}', ("send",)),
        ("send", ("send",)),
        (["send"], ("send",)),
        ({"query": None}, ("",)),
        ({"query": {"deep": {}}}, ("",)),
        ({}, ("",)),
        (None, ("",)),
        (True, ("",)),
    ],
)
def test_a_query_is_read_in_whatever_shape_it_comes(sent: object, queries: tuple[str, ...]):
    assert tuple(query.text for query in parse_search(sent).queries) == queries


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        (3, 3),
        ("3", 3),
        (2.9, 2),
        (0, 1),
        (-5, 1),
        (10**400, 100),
        ("1e999", 100),
        (None, 8),
        ("many", 8),
        (True, 8),
        (float("nan"), 8),
    ],
)
def test_max_results_is_brought_into_range(sent: object, read: int):
    assert parse_search({"query": "x", "max_results": sent}).max_results == read


def test_a_number_that_is_none_is_told():
    assert parse_search({"max_results": "many"}).notes == (
        "`max_results` was not a number; 8 was used.",
    )


def test_wait_and_offset_are_bounded():
    request = parse_search({"query": "x", "wait": 4000, "offset": "12"})

    assert (request.wait, request.offset) == (30.0, 12)


def test_the_configured_number_of_results_is_the_default():
    assert parse_search({"query": "x"}, 9) == SearchRequest((parse_query("x"),), 9)
    assert parse_search("x", 9) == SearchRequest((parse_query("x"),), 9)


def test_too_many_queries_are_answered_in_part_and_said_so():
    request = parse_search({"queries": [f"need {each}" for each in range(40)]})

    assert len(request.queries) == 8
    assert request.notes == ("Only the first 8 queries were answered.",)


SEND = {"channel": "general"}


@pytest.mark.parametrize(
    "sent",
    [
        {"name": "slack__send", "arguments": SEND},
        {"name": "slack__send", "arguments": '{"channel": "general"}'},
        {"name": "`slack__send`", **SEND},
        {"name": "slack__send", "arguments": None, **SEND},
        {"name": "slack__send", "arguments": "", **SEND},
        {"tool": "slack__send", "args": SEND},
        {"tool_name": "slack__send", "input": '{"channel": "general"}'},
        {"toolName": "slack__send", "params": SEND},
        '{"name": "slack__send", "arguments": {"channel": "general"}}',
        {"name": "CallTool", "arguments": {"name": "slack__send", "arguments": SEND}},
        {"name": "mcp__us__CallReadOnlyTool", "arguments": {"name": "slack__send", **SEND}},
    ],
)
def test_a_call_is_understood_in_whatever_shape_it_comes(sent: object):
    assert parse_call(sent) == CallRequest("slack__send", SEND)


def test_arguments_put_beside_join_those_inside_which_win():
    sent = {"name": "x", "arguments": {"a": 1}, "a": 2, "b": 3}

    assert parse_call(sent) == CallRequest("x", {"a": 1, "b": 3})


def test_a_parameter_that_is_called_input_stays_a_parameter():
    assert parse_call({"name": "x", "input": "text"}) == CallRequest("x", {"input": "text"})
    assert parse_call({"name": "x", "input": {"a": 1}, "b": 2}) == CallRequest(
        "x", {"input": {"a": 1}, "b": 2}
    )


def test_of_two_possible_names_the_known_one_is_the_tool():
    sent = {"name": "my-repo", "tool": "github__create_repo"}

    assert parse_call(sent, lambda name: name.startswith("github")) == CallRequest(
        "github__create_repo", {"name": "my-repo"}
    )


@pytest.mark.parametrize(
    ("sent", "wrong"),
    [
        (None, "must be an object"),
        ({}, "`name` is missing"),
        ({"name": 7}, "`name` is missing"),
        ({"arguments": {}}, "`name` is missing"),
        ({"name": "x", "arguments": "channel=general"}, "`arguments` must be an object"),
        ({"name": "x", "arguments": [1, 2]}, "`arguments` must be an object"),
        ({"name": "x", "arguments": "[" * 100_000}, "`arguments` must be an object"),
        ({"name": "x", "arguments": '{"a": NaN}'}, "`arguments` must be an object"),
        ({"name": "CallTool", "arguments": {"name": "CallTool"}}, "not `CallTool` itself"),
    ],
)
def test_a_call_that_cannot_be_understood_says_what_to_send(sent: object, wrong: str):
    problem = parse_call(sent)

    assert isinstance(problem, Problem)
    assert wrong in problem.text
    assert '"arguments": {...}' in problem.text
    assert len(problem.text) < 400


@pytest.mark.parametrize("name", ["ToolSearch", "mcp__toolbox__ToolSearch"])
def test_a_search_is_not_called_through_call_tool(name: str):
    problem = parse_call({"name": name, "arguments": {"query": "x"}})

    assert isinstance(problem, Problem)
    assert "call it directly" in problem.text


@pytest.mark.parametrize("own", [MetaTools(search="search"), MetaTools(call="search")])
def test_a_tool_of_a_server_is_not_taken_for_ours_of_the_same_name(own: MetaTools) -> None:
    inner = {"name": "other__wipe", "arguments": {"all": True}}
    sent: Any = {"name": "web__search", "arguments": inner}

    request = parse_call(sent, names=own, is_theirs={"web__search", "other__wipe"}.__contains__)

    assert request == CallRequest("web__search", inner)


@given(JSON | st.dictionaries(st.sampled_from(KEYS), JSON))
def test_anything_at_all_is_a_search(sent: Any):
    request = parse_search(sent)

    assert 1 <= len(request.queries) <= 8
    assert 1 <= request.max_results <= 100
    assert 0 <= request.wait <= 30
    assert request.offset >= 0


@given(JSON | st.dictionaries(st.sampled_from(KEYS), JSON))
def test_anything_at_all_is_a_call_or_a_readable_problem(sent: Any):
    request = parse_call(sent)

    assert request.name if isinstance(request, CallRequest) else request.text
