"""Whatever listing can be made up, no turn of taking it in costs more than its budget."""

from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.basics.effort import finished
from aggregator.catalog import Ready
from aggregator.config import ServerConfig
from aggregator.downstream.intake import Intake, entries_of, named_tools, unmatched
from aggregator.downstream.review import review
from aggregator.names import ServerName
from tests.downstream.test_intake import SERVER
from tests.work import TURN_BOUND, longest_turn

Json = dict[str, Any]

STEMS = st.sampled_from(
    ["{}", "same", "T{}", "t-{}", "db__{}", "DB.{}", "mcp_{}_", "s_{}", "\u00e9{}", "\u202e{}", ""]
)


def repeated(part: str, times: int) -> str:
    return part * times


TAILS = st.builds(
    repeated,
    st.sampled_from(["", "a", "_", "A_", "\u00e9A_", "a\n", "\ufb03", "\ufdfa", "{"]),
    st.integers(0, 130),
)
"""What makes a name long: ends of words, what is spelt otherwise, what is cleaned."""
RUBBISH = st.sampled_from([None, 0, "x", [], {}, {"name": 1}, {"name": "x", "inputSchema": 3}])


def nested(value: Any, depth: int) -> Any:
    for level in range(depth):
        value = {"of": value} if level % 2 else [value]
    return value


def broad(size: int) -> Json:
    return {"inputSchema": {f"k\n{each}": Json() for each in range(size)}}


CONTENTS: st.SearchStrategy[Json] = st.one_of(
    st.just(Json()),
    st.integers(0, 20_000).map(lambda size: {"description": "a\n" * size}),
    st.integers(0, 300).map(lambda size: {"title": "a\x00" * size}),
    st.integers(0, 70).map(lambda depth: {"_meta": nested(1, depth)}),
    st.integers(0, 400).map(broad),
    st.integers(0, 4_000).map(lambda size: {"annotations": {"of": [0] * size}}),
    st.just({"_meta": {"anthropic/alwaysLoad": True, "anthropic/searchHint": "x\n" * 200}}),
)


def several(stem: str, tail: str, content: Json, times: int) -> list[Any]:
    names = (stem.format(each) + tail for each in range(times))
    return [{"name": name, "inputSchema": {}, **content} for name in names]


def rubbish(what: Any, times: int) -> list[Any]:
    return [what] * times


BLOCKS = st.one_of(
    st.builds(several, STEMS, TAILS, CONTENTS, st.integers(1, 60)),
    st.builds(several, STEMS, TAILS, st.just(Json()), st.sampled_from([300, 700])),
    st.builds(rubbish, RUBBISH, st.integers(1, 2_000)),
)
LISTINGS = st.lists(BLOCKS, min_size=1, max_size=3)


def ruled(prefix: str, deny: tuple[str, ...], allow: tuple[str, ...]) -> ServerConfig:
    others = {} if prefix else {ServerName("db"): "db"}
    return replace(SERVER, prefix=prefix, deny=deny, allow=allow, others=others)


SERVERS = st.builds(
    ruled,
    st.sampled_from(["s", ""]),
    st.sampled_from([(), ("*7*",), ("a?_*", "delete_*", "*q9*z"), ("s_*", "db__1*")]),
    st.sampled_from([("*",), ("*1*", "t_*")]),
)


@pytest.mark.no_cover
@given(LISTINGS, SERVERS)
@settings(deadline=None, max_examples=25)
def test_no_listing_that_can_be_made_up_costs_a_turn_more_than_its_effort(
    blocks: list[list[Any]], server: ServerConfig
) -> None:
    listing = [*chain(*blocks)]
    intake = Intake(allows=server.allows)
    stages: list[Callable[[], Any]] = [
        lambda: intake.take_in(listing),
        lambda: named_tools(server, intake.admitted),
        lambda: (each for each in unmatched(server, intake) if each is None),
    ]
    assert [longest_turn(stage()) < TURN_BOUND for stage in stages] == [True] * len(stages)

    entries, _ = entries_of(server, intake.admitted)
    stricter = replace(server, deny=("*3*",), allow=("*",))
    assert longest_turn(review(stricter, Ready(tuple(entries)))) < TURN_BOUND
    left = finished(review(stricter, Ready(tuple(entries)))).reviewed
    assert not any("3" in each.own_name for each in left.entries)
