"""Whatever a server lists, others have their turn while it is taken in."""

import sys
from dataclasses import replace
from types import FrameType
from typing import Any

import pytest

from aggregator.basics.effort import finished
from aggregator.catalog import Offers, Ready
from aggregator.config import ServerConfig
from aggregator.downstream.intake import (
    Admitted,
    Intake,
    named_tools,
    prompts_of,
    take_in,
    unmatched,
)
from aggregator.downstream.review import restricted, review, reviewed
from aggregator.names import ServerName
from tests.downstream.test_intake import SERVER, told, tool
from tests.work import TURN_BOUND, calls, longest_turn


def test_each_tool_is_spelt_once_however_many_entries_match_none() -> None:
    server = ServerConfig(ServerName("s"), "s", deny=tuple(f"no_{each}" for each in range(10)))
    intake = Intake(allows=server.allows)
    for number in range(100):
        intake.add(tool(f"t{number}"))
    spelt = 0

    def count(frame: FrameType, event: str, _arg: object) -> None:
        nonlocal spelt
        spelt += event == "call" and frame.f_code.co_name == "spellings"

    sys.setprofile(count)
    try:
        found = told(server, intake)
    finally:
        sys.setprofile(None)

    assert len(found) == 10
    assert spelt == 100


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("page", "number"),
    [
        pytest.param([tool("x", description="a\n" * 500_000)], 1, id="a long description"),
        pytest.param([tool("a\n" * 500_000)], 0, id="a long name"),
        pytest.param([tool("x", title="a\n" * 120_000)], 1, id="a text of many lines"),
        pytest.param([tool("x", title="a\x00" * 120_000)], 1, id="a text of one line"),
        pytest.param([tool("x", **{"a\n" * 120_000: 1})], 1, id="a long key"),
        pytest.param(
            [tool("x", **{f"{each}" + "a\n" * 1_000: 1 for each in range(120)})], 1, id="long keys"
        ),
        pytest.param([tool(f"t{each}", title="a\n" * 4_000) for each in range(30)], 30, id="texts"),
        pytest.param([tool(f"t{each}", of=[{}] * 19_000) for each in range(5)], 5, id="values"),
        pytest.param(
            [
                tool(f"t{each}", of={f"p{key}": {"type": "a"} for key in range(4_900)})
                for each in (1, 2)
            ],
            2,
            id="properties",
        ),
        pytest.param([tool("x", of=[0] * 1_000_000)], 0, id="a broad array"),
        pytest.param(["" for _ in range(100_000)], 0, id="rubbish"),
    ],
)
def test_whatever_is_listed_others_have_their_turn(page: list[Any], number: int) -> None:
    intake = Intake()

    assert longest_turn(intake.take_in(page)) < TURN_BOUND
    assert len(intake.admitted.definitions) == number


@pytest.mark.no_cover
@pytest.mark.parametrize("prefix", ["a", ""])
@pytest.mark.parametrize("name", ["é{}" + "éa" * 120, "mcp_{}_" + "a_" * 120])
def test_while_thousands_of_tools_are_named_others_have_their_turn(prefix: str, name: str) -> None:
    server = replace(SERVER, prefix=prefix, others={ServerName("db"): "db"})
    admitted = Admitted(tuple(tool(name.format(each)) for each in range(1_500)), ())

    assert longest_turn(named_tools(server, admitted)) < TURN_BOUND


@pytest.mark.parametrize("prefix", ["a", ""])
def test_while_another_configuration_is_worked_out_others_have_their_turn(prefix: str) -> None:
    server = replace(SERVER, prefix=prefix, others={ServerName("db"): "db"} if not prefix else {})
    names = [f"é{each}" + "éA_" * 80 for each in range(1_500)]
    entries, _ = take_in(server, map(tool, names))
    prompts, _ = prompts_of(server, Admitted(tuple({"name": name} for name in names), ()))
    state = Ready(tuple(entries), offers=Offers(prompts))
    stricter = replace(server, deny=("*7*", "x?y*"), search_hints={"x": "y"})

    assert longest_turn(review(stricter, state)) < TURN_BOUND
    known = finished(review(stricter, state))
    for same in (state, replace(state, since=1.0)):
        assert calls(lambda same=same: reviewed(stricter, same, known)) < 50
        assert calls(lambda same=same: restricted(stricter, same, known)) < 50
    assert reviewed(stricter, state, known) == known.reviewed
    assert restricted(stricter, state, known) == known.restricted
    another = replace(state, entries=state.entries[:9])
    assert len(reviewed(stricter, another, known).entries) < len(another.entries)


def test_what_is_withheld_is_worked_out_with_the_rest() -> None:
    entries, _ = take_in(SERVER, map(tool, ("a", "b", "c")))
    state = Ready((entries[0],), listed=tuple(entries))
    stricter = replace(SERVER, deny=("c",))
    known = finished(review(stricter, state))

    assert restricted(stricter, state, known).entries == (entries[0],)
    assert restricted(stricter, state, known).listed == tuple(entries[:2])
    as_listed = Ready(state.listed)
    assert calls(lambda: reviewed(stricter, as_listed, known)) < 50
    assert reviewed(stricter, as_listed, known) == Ready(tuple(entries[:2]))


def test_while_rules_are_tried_others_have_their_turn() -> None:
    server = replace(SERVER, deny=("x?y*", "*q7"))
    intake = Intake(allows=server.allows)

    page = [tool(f"é{each}" + "éA_" * 80) for each in range(1_500)]
    assert longest_turn(intake.take_in(page)) < TURN_BOUND
    steps = unmatched(server, intake)
    assert longest_turn(each for each in steps if each is None) < TURN_BOUND


def test_what_matches_none_is_compared_with_few() -> None:
    server = ServerConfig(ServerName("s"), "s", deny=("abcdefghijklmnop" * 2,))
    intake = Intake(allows=server.allows)
    for number in range(500):
        intake.add(tool(f"{number}_" + "ponmlkjihgfedcba" * 2))

    assert longest_turn(each for each in unmatched(server, intake) if each is None) < TURN_BOUND


@pytest.mark.no_cover
def test_while_thousands_of_tools_are_spelt_others_have_their_turn() -> None:
    intake = Intake()
    for number in range(1_500):
        intake.add(tool(f"é{number}" + "éa" * 120))
    steps = unmatched(ServerConfig(ServerName("s"), "s"), intake)

    assert longest_turn(each for each in steps if each is None) < TURN_BOUND
