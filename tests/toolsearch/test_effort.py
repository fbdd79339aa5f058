"""What a schema of a server costs, whatever it is: work is counted, no clock is looked at."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.basics.effort import Effort
from aggregator.downstream.intake import admit
from aggregator.toolsearch import conform, parse_search
from aggregator.toolsearch.refusal import unfit
from aggregator.toolsearch.view import View
from tests.toolsearch.views import answer, ask, entry_of, ready, view_of
from tests.work import BOUND, calls, slow


def test_an_effort_that_is_spent_stays_spent():
    effort = Effort(10)

    assert effort.spend(10)
    assert not effort.is_spent
    assert not effort.spend()
    assert effort.is_spent
    assert not effort.spend(0)


def test_who_spends_a_part_takes_no_more_than_that_from_the_whole():
    effort = Effort(100)

    part = effort.part(4)

    assert part.spend(20)
    assert not part.spend(1_000)
    assert effort.spend(75)
    assert not effort.spend()


def test_what_a_part_leaves_is_there_for_the_others():
    effort = Effort(100)

    assert effort.part(2).spend(10)
    assert effort.spend(90)


def misses(view: View) -> tuple[list[bool], str]:
    """Ask for many names that no tool has, and say of which of them others were found like it."""
    selects = ["select:" + ",".join(f"tol{q}{each:02}" for each in range(64)) for q in range(8)]
    found = answer(parse_search({"queries": selects}), view)
    return [bool(each["nearest"]) for each in found.meta["missing"]], found.text


@pytest.mark.no_cover
def test_names_that_no_tool_has_are_compared_with_thousands_only_as_far_as_the_effort_goes():
    large = view_of({"demo": ready("demo", *({"name": f"tool{each}"} for each in range(3_000)))})

    near, told = misses(large)

    assert len(near) == 8 * 64
    assert 2 <= sum(near) < 12
    assert near == sorted(near, reverse=True)
    assert (
        "Close names are told only for the first that mean no tool: ask for fewer at a time."
        in told
    )


@pytest.mark.no_cover
def test_two_names_are_compared_with_however_many_tools():
    huge = view_of({"demo": ready("demo", *({"name": f"tool{each}"} for each in range(30_000)))})

    found = ask(huge, "select:demo__tol7,demo__tol8")

    assert all(each["nearest"] for each in found.meta["missing"])


def test_in_a_small_catalog_every_name_that_no_tool_has_is_compared():
    small = view_of({"demo": ready("demo", *({"name": f"tool{each}"} for each in range(20)))})

    near, told = misses(small)

    assert near == [True] * 512
    assert "only for the first" not in told


def names(number: int) -> list[str]:
    return [f"p{each}" for each in range(number)]


def recursive(number: int) -> dict[str, Any]:
    """Describe an object that needs as many more of its own kind."""
    needed = names(number)
    return {
        "type": "object",
        "properties": {key: {"$ref": "#"} for key in needed},
        "required": needed,
    }


def wide(number: int) -> dict[str, Any]:
    """Describe an object that is its own definition, with many keys beside."""
    return {"$ref": "#", **recursive(number), "required": [], **dict.fromkeys(names(number), 1)}


def referring(definition: Any, number: int = 3_000) -> dict[str, Any]:
    """Describe many parameters that are all the same."""
    properties = {key: {"$ref": "#/$defs/d"} for key in names(number)}
    return {"type": "object", "properties": properties, "$defs": {"d": definition}}


def schemas() -> Iterator[Any]:
    yield pytest.param(recursive(20), id="20 required properties, recursive")
    yield pytest.param(recursive(40), id="40 required properties, recursive")
    yield pytest.param(recursive(2_000), id="2,000 required properties, recursive")
    yield pytest.param(wide(3_500), id="3,500 keys, recursive")
    yield pytest.param(referring({"anyOf": [{"type": "string"}] * 9_000}), id="many choices")
    yield pytest.param(referring({"type": names(9_000)}), id="many types")
    yield pytest.param(referring({"required": names(9_000), "properties": {}}), id="many needed")
    yield pytest.param(referring({"default": ["x"] * 9_000}), id="large defaults")
    yield pytest.param(referring({"description": ["x"] * 9_000}), id="odd descriptions")
    yield pytest.param(
        referring({"anyOf": [{"$ref": "#/$defs/e"}] * 9_000}) | {"e": {"pattern": "x" * 99_000}},
        id="many patterns",
    )
    yield pytest.param(referring({"allOf": [{"type": "string"}] * 1_900}), id="beyond words")
    yield pytest.param(
        recursive(40) | {"properties": {key: {"items": {"$ref": "#"}} for key in names(40)}},
        id="arrays of itself",
    )


@pytest.mark.no_cover
@pytest.mark.parametrize("schema", [*schemas()])
def test_no_schema_costs_a_search_or_a_call_more_than_its_effort(schema: Any):
    costs = [*cost_of(schema, 1), *cost_of(schema, 30)]

    assert max(costs) < BOUND


def cost_of(schema: Any, number: int) -> Iterator[int]:
    """Count what it costs to find tools that take this, and to refuse a call of one."""
    costly = slow(schema)
    tools = [{"name": f"run{each}", "inputSchema": costly} for each in range(number)]
    view = view_of({"demo": ready("demo", *tools)})
    entry = entry_of(tools[0])
    effort = Effort()
    ask(view, "run")
    yield calls(lambda: ask(view, "run", max_results=number))
    yield calls(lambda: ask(view, "select:run0"))
    yield calls(lambda: conform({"p0": "x", "p1": [{}], "z": None}, costly, effort))
    yield calls(lambda: unfit(entry, ["p0: required"], effort=effort))


def test_what_is_too_intricate_is_told_in_the_short_form_and_said():
    told = ask(view_of({"demo": ready("demo", {"name": "run", "inputSchema": wide(3_500)})}), "run")

    assert "- too intricate to be told: p" in told.text
    assert "more [...]\nShortened; whole in the resource catalog://tools/demo__run" in told.text


def test_an_intricate_tool_does_not_shorten_what_is_told_of_others():
    plain = {"type": "object", "properties": {"path": {"type": "string", "default": "/"}}}
    tools = [{"name": f"run{each}", "inputSchema": wide(3_500)} for each in range(9)]
    tools += [{"name": "run_plain", "inputSchema": plain}]

    told = ask(view_of({"demo": ready("demo", *tools)}), "run", max_results=10)

    assert 'run_plain", "arguments": {}' in told.text
    assert '- path (string, default "/")' in told.text


def test_an_example_is_given_where_it_is_short_enough_to_be_one():
    needs_two = recursive(2) | {"properties": {key: {"type": "string"} for key in names(2)}}
    tools = [
        {"name": "two", "inputSchema": needs_two},
        {"name": "many", "inputSchema": recursive(40)},
    ]
    view = view_of({"demo": ready("demo", *tools)})

    assert '"arguments": {"p0": "<p0>", "p1": "<p1>"}' in ask(view, "select:two").text
    assert '"arguments": {...}' in ask(view, "select:many").text


NAMES = st.integers(0, 100).map(names)
TARGETS = st.sampled_from(["#", "#/$defs/a", "#/$defs/b", "#/properties/p0", "#/$defs//a"])
KEYWORDS = st.sampled_from(["anyOf", "oneOf", "allOf", "prefixItems"])
SIZES = st.integers(0, 3_000)

Schemas = st.SearchStrategy[Any]


def refers(target: str, keys: list[str]) -> dict[str, Any]:
    return {"$ref": target, **dict.fromkeys(keys, 1)}


def repeats(keyword: str, schema: Any, number: int) -> dict[str, Any]:
    return {keyword: [schema] * number}


def holds(schema: Any, keys: list[str], needed: bool) -> dict[str, Any]:
    required = keys if needed else []
    return {"type": "object", "properties": dict.fromkeys(keys, schema), "required": required}


def whole(top: dict[str, Any], a: Any, b: Any) -> dict[str, Any]:
    return {**top, "$defs": {"a": a, "b": b}}


LEAVES: Schemas = st.one_of(
    st.just({"type": "string"}),
    st.builds(refers, TARGETS, st.just([]) | NAMES),
    st.builds(repeats, st.sampled_from(["enum", "type", "required", "const"]), st.just("x"), SIZES),
    NAMES.map(lambda values: {"enum": values}),
    NAMES.map(lambda values: {"type": "object", "required": values}),
    SIZES.map(lambda size: {"default": "x" * size, "pattern": "y" * size}),
)


def grown(inner: Schemas) -> Schemas:
    """Make more of schemas: the same one over and over, which is small to write."""
    return st.one_of(
        st.fixed_dictionaries({"type": st.just("array"), "items": inner}),
        st.fixed_dictionaries({"type": st.just("object"), "additionalProperties": inner}),
        st.builds(repeats, KEYWORDS, inner, st.integers(0, 100)),
        st.builds(holds, inner, NAMES, st.booleans()),
    )


PARTS: Schemas = st.recursive(LEAVES, grown, max_leaves=5)
HOSTILE: Schemas = st.builds(whole, grown(PARTS), PARTS, PARTS)


@pytest.mark.no_cover
@given(HOSTILE, st.integers(1, 6))
@settings(deadline=None, max_examples=15)
def test_no_schema_that_can_be_made_up_costs_more_than_its_effort(schema: Any, number: int):
    listing = [{"name": "run", "inputSchema": schema}] * number

    assert calls(lambda: admit(listing)) < BOUND
    for definition in admit(listing).definitions:
        assert max(cost_of(definition["inputSchema"], number)) < BOUND
