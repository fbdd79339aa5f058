"""Definitions come from servers nobody checked: anything may be in them, and much of it."""

from time import thread_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.names import ServerName
from aggregator.search.analysis import documents
from tests.search.tools import entry, index_of, search

json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)
schemas = st.fixed_dictionaries(
    {},
    optional={
        "title": json,
        "annotations": json,
        "inputSchema": json | st.fixed_dictionaries({"properties": json, "anyOf": json}),
    },
)


@given(schemas, json)
def test_any_json_can_be_indexed(tool: dict[str, Any], description: Any):
    index = index_of(entry("a__ping", description, **tool))
    assert search(index, "ping") == ["a__ping"]


def test_parameters_are_found_at_any_depth_within_bounds():
    schema: dict[str, Any] = {
        "properties": {
            "order": {
                "properties": {
                    "lines": {"items": {"properties": {"sku": {"description": "zebra"}}}},
                    "colour": {"enum": ["magenta", 7]},
                },
            },
            "either": {"anyOf": [{"properties": {"giraffe": {}}}]},
            "kind": {"$ref": "#/$defs/Kind"},
        },
        "$defs": {"Kind": {"description": "A kind of okapi", "enum": ["okapi"]}},
    }
    index = index_of(entry("shop__buy", inputSchema=schema))
    for word in ("sku", "zebra", "magenta", "giraffe", "okapi", "colour"):
        assert search(index, word) == ["shop__buy"]


def test_a_schema_that_contains_itself_ends():
    schema: dict[str, Any] = {"properties": {}}
    schema["properties"]["again"] = schema
    assert search(index_of(entry("a__loop", inputSchema=schema)), "again") == ["a__loop"]


def test_a_reference_to_itself_ends():
    schema = {
        "properties": {"node": {"$ref": "#/$defs/Node"}},
        "$defs": {"Node": {"properties": {"next": {"$ref": "#/$defs/Node"}}}},
    }
    assert search(index_of(entry("a__tree", inputSchema=schema)), "node") == ["a__tree"]


@pytest.mark.parametrize("kind", ["description", "properties", "enum"])
def test_a_huge_definition_costs_no_more_than_a_large_one(kind: str):
    properties: dict[str, Any] = {"x": {}}
    description = ""
    if kind == "description":
        description = "word " * 200_000
    elif kind == "properties":
        properties = {f"parameter{n}": {"description": "text " * 50} for n in range(20_000)}
    else:
        properties = {"x": {"enum": [f"choice{n}" for n in range(100_000)]}}
    huge = entry("a__huge", description, inputSchema={"properties": properties})
    began = thread_time()
    (document,) = documents(ServerName("a"), [huge])
    assert thread_time() - began < 0.5
    assert len(document.terms) < 1000


def test_only_the_beginning_of_a_description_is_indexed():
    index = index_of(entry("a__x", "start " + "filler " * 400 + "ending"))
    assert search(index, "start") == ["a__x"]
    assert search(index, "ending") == []
