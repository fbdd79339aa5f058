from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.basics.effort import Effort
from aggregator.basics.json import is_object
from aggregator.toolsearch import Conformed, conform
from aggregator.toolsearch.schema import resolved
from tests.toolsearch.test_arguments import JSON
from tests.work import BOUND, calls


def takes(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


INTEGER = {"type": "integer"}
STRING = {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "sent", "meant"),
    [
        (INTEGER, "5", 5),
        (INTEGER, " -5 ", -5),
        (INTEGER, "5.0", 5),
        ({"type": "number"}, "2.5", 2.5),
        ({"type": "number"}, "5", 5),
        ({"type": "boolean"}, "True", True),
        ({"type": "boolean"}, "false", False),
        ({"type": ["integer", "null"]}, "null", None),
        (STRING, 5, "5"),
        (STRING, True, "true"),
        ({"type": "object"}, '{"a": 1}', {"a": 1}),
        ({"type": "array"}, "[1, 2]", [1, 2]),
        ({"type": "array", "items": INTEGER}, '["1", 2]', [1, 2]),
        ({"type": "array", "items": STRING}, "bug", ["bug"]),
        ({"type": "array", "items": INTEGER}, "7", [7]),
        ({"type": "array", "items": {"type": "object"}}, {"a": 1}, [{"a": 1}]),
        ({"type": "object", "properties": {"n": INTEGER}}, {"n": "3"}, {"n": 3}),
        ({"enum": [1, 2]}, "2", 2),
        ({"enum": ["1", "2"]}, 2, "2"),
        ({"const": True}, "true", True),
        ({"anyOf": [INTEGER, {"type": "null"}]}, "4", 4),
        ({"oneOf": [{"type": "object"}, {"type": "array"}]}, "[]", []),
        ({"allOf": [INTEGER, {"minimum": 3}]}, "4", 4),
        ({"type": "array", "prefixItems": [INTEGER, STRING]}, ["1", 2], [1, "2"]),
        ({"type": "object", "additionalProperties": INTEGER}, {"any": "1"}, {"any": 1}),
    ],
)
def test_a_value_that_only_needs_another_type_gets_it(schema: object, sent: object, meant: object):
    assert conform({"value": sent}, takes(value=schema)) == Conformed({"value": meant})


@pytest.mark.parametrize(
    ("schema", "sent"),
    [
        ({"type": ["string", "integer"]}, "5"),
        ({"anyOf": [STRING, INTEGER]}, 5),
        ({"anyOf": [{"type": "object"}, STRING]}, '{"a": 1}'),
        ({"type": "string", "pattern": "^(a+)+$"}, "a" * 40 + "!"),
        ({"type": "string", "format": "date"}, "tomorrow"),
        ({"$ref": "https://example.com/schema.json"}, "anything"),
        ({"$ref": "#/nowhere"}, 5),
        ({"type": "something new"}, 5),
        ({"type": 7}, 5),
        ({"not": {}}, 5),
        ({"type": "object", "patternProperties": {"^(a|aa)+$": STRING}}, {"a" * 50: 5}),
        (
            {
                "type": "object",
                "patternProperties": {"^x": {}},
                "additionalProperties": False,
            },
            {"x": 5},
        ),
        (True, 5),
        ("nonsense", 5),
        (INTEGER, 5.0),
    ],
)
def test_what_fits_or_is_not_understood_stays_as_it_was_sent(schema: object, sent: object):
    arguments = {"value": sent}

    conformed = conform(arguments, takes(value=schema))

    assert conformed.problems == ()
    assert conformed.arguments is arguments


@pytest.mark.parametrize(
    ("schema", "sent", "problem"),
    [
        (INTEGER, "five", 'value: must be integer, not "five"'),
        (INTEGER, 5.5, "value: must be integer, not 5.5"),
        (INTEGER, {"a": 1}, "value: must be integer, not an object"),
        ({"type": "array", "items": STRING}, "a,b", 'value: must be string[], not "a,b"'),
        ({"type": "array", "items": INTEGER}, [1, "x"], 'value[1]: must be integer, not "x"'),
        ({"enum": ["a", "b"]}, "c", 'value: must be one of "a", "b", not "c"'),
        ({"enum": [1]}, True, "value: must be one of 1, not true"),
        ({"anyOf": [INTEGER, {"type": "null"}]}, "x", 'value: must be integer | null, not "x"'),
        (False, 1, "value: not allowed"),
        (
            {"type": "object", "properties": {"name": STRING}, "required": ["name"]},
            {},
            "value.name: required, but missing",
        ),
        (
            {"type": "object", "properties": {"channel": {}}, "additionalProperties": False},
            {"chanel": 1},
            "value.chanel: no such parameter; there is channel",
        ),
        (
            {"type": "object", "additionalProperties": False},
            {"a": 1},
            "value.a: no such parameter",
        ),
        (
            {"anyOf": [{"type": "object", "required": ["a"]}, {"type": "null"}]},
            {"b": 1},
            "value.a: required, but missing",
        ),
    ],
)
def test_what_does_not_fit_is_said(schema: object, sent: object, problem: str):
    assert conform({"value": sent}, takes(value=schema)) == Conformed({"value": sent}, (problem,))


def test_null_for_what_may_be_left_out_is_left_out():
    schema = {**takes(name=STRING, limit=INTEGER), "required": ["name"]}

    assert conform({"name": "x", "limit": None}, schema) == Conformed({"name": "x"})
    assert conform({"name": None}, schema).problems == ("name: must be string, not null",)


def test_one_wrong_value_does_not_keep_others_from_being_converted():
    conformed = conform({"a": "1", "b": "x"}, takes(a=INTEGER, b=INTEGER))

    assert conformed == Conformed({"a": 1, "b": "x"}, ('b: must be integer, not "x"',))


def test_local_references_are_followed_through_recursion():
    schema = {
        **takes(tree={"$ref": "#/$defs/node"}),
        "$defs": {
            "node": takes(
                size=INTEGER, children={"type": "array", "items": {"$ref": "#/$defs/node"}}
            )
        },
    }

    sent = {"tree": {"size": "1", "children": [{"size": "2"}, {"size": "x"}]}}
    assert conform(sent, schema) == Conformed(
        {"tree": {"size": 1, "children": [{"size": 2}, {"size": "x"}]}},
        ('tree.children[1].size: must be integer, not "x"',),
    )


@pytest.mark.parametrize(
    "knot",
    [
        {"$ref": "#/$defs/knot"},
        {"allOf": [{"$ref": "#/$defs/knot"}]},
        {"anyOf": [{"$ref": "#/$defs/knot"}, {"$ref": "#/$defs/knot"}, {"type": "null"}]},
        {"type": "array", "items": {"$ref": "#/$defs/knot"}},
    ],
)
def test_a_schema_that_refers_to_itself_without_end_accepts_everything(knot: object):
    schema = {**takes(value={"$ref": "#/$defs/knot"}), "$defs": {"knot": knot}}
    arguments = {"value": "x"}

    assert conform(arguments, schema).arguments is arguments


def test_a_schema_that_contradicts_itself_leaves_the_value_alone():
    schema = takes(value={"allOf": [INTEGER, STRING]})

    assert conform({"value": 5.0}, schema).arguments == {"value": 5.0}


def test_many_values_are_accepted_rather_than_checked_for_ever():
    arguments = {"value": ["1"] * 50_000}

    conformed = conform(arguments, takes(value={"type": "array", "items": INTEGER}))

    assert conformed.arguments is arguments


def test_no_more_problems_are_told_than_anyone_reads():
    assert len(conform({"value": ["x"] * 500}, takes(value={"items": INTEGER})).problems) == 20


def chosen(definition: Mapping[str, Any], times: int = 2000) -> dict[str, Any]:
    """Return a schema that is small to write, and repeats a definition for one value."""
    return {**takes(x={"anyOf": [{"$ref": "#/d"}] * times}), "d": definition}


def costly() -> Iterator[Any]:
    words = [f"v{number}" for number in range(9_000)]
    closed = {"type": "object", "additionalProperties": False}
    odd = {f"key{number}": 1 for number in range(50)}
    yield pytest.param(chosen({"enum": words}), "x", id="many values")
    yield pytest.param(chosen({"enum": list(range(9_000))}), "x", id="many numbers")
    yield pytest.param(chosen({"type": "integer", "enum": words}), "x", id="values and type")
    yield pytest.param(chosen({"enum": [[1] * 9_000]}), "x", id="one large value")
    yield pytest.param(takes(x={"items": {"enum": words}}), ["x"] * 2000, id="many items")
    yield pytest.param(chosen({"required": words}), {"a": 1}, id="many required")
    yield pytest.param(
        chosen({**closed, "properties": dict.fromkeys(words, True)}), odd, id="many properties"
    )
    yield pytest.param(chosen({"type": ["null"] * 9_000}), "x", id="many types")


@pytest.mark.parametrize(("schema", "sent"), [*costly()])
def test_a_check_costs_no_more_than_its_steps(schema: Any, sent: Any):
    conform({"warm": 1}, takes(warm=INTEGER))

    assert calls(lambda: conform({"x": sent}, schema)) < BOUND


@pytest.mark.parametrize(
    "definition",
    [
        {"enum": list(range(9_000))},
        {"type": "integer", "$ref": "#/d", **{f"key{number}": 1 for number in range(9_000)}},
        {"type": "integer", "$ref": "#" + "/" * 1_900 + "d"},
    ],
    ids=["many values", "a wide reference", "a long reference"],
)
def test_a_schema_that_costs_too_much_accepts_everything(definition: Mapping[str, Any]):
    arguments = {"x": "word"}

    assert conform(arguments, chosen(definition)) == Conformed(arguments)


def test_no_reference_is_read_that_is_longer_than_any_path():
    refers = {"$ref": "#" + "/" * 200_000 + "d"}

    assert resolved(refers, {"d": INTEGER}, Effort()) is refers


def test_few_of_many_unknown_keys_are_compared_with_many_names():
    names = {f"property{number}": STRING for number in range(1_000)}
    sent = {f"propety{number}": 1 for number in range(100)}

    problems = conform(sent, {**takes(**names), "additionalProperties": False}).problems

    assert len(problems) == 20
    assert problems[0].startswith("propety0: no such parameter; there is property0, ")
    assert not problems[0].endswith("more")
    assert problems[-1].endswith("more")


SCHEMAS: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"]).map(
            lambda name: {"type": name}
        ),
        st.lists(JSON, max_size=3).map(lambda values: {"enum": values}),
        st.sampled_from(["#/$defs/a", "#", "#/properties", "http://x"]).map(
            lambda target: {"$ref": target}
        ),
        JSON,
    ),
    lambda inner: st.one_of(
        st.fixed_dictionaries(
            {},
            optional={
                "type": st.sampled_from(["object", "array", ["string", "array"]]),
                "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
                "required": st.lists(st.sampled_from("abc"), max_size=2),
                "items": inner,
                "additionalProperties": inner | st.booleans(),
                "anyOf": st.lists(inner, max_size=3),
                "allOf": st.lists(inner, max_size=3),
                "description": st.text(),
                "default": JSON,
            },
        ),
        st.fixed_dictionaries({"$defs": st.fixed_dictionaries({"a": inner}), "allOf": st.just([])}),
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from("abcd"), JSON), SCHEMAS)
@settings(deadline=None)
def test_conforming_never_fails_and_conforming_twice_changes_nothing(arguments: Any, schema: Any):
    root = schema if is_object(schema) else takes(a=schema)

    once = conform(arguments, root)

    assert conform(once.arguments, root).arguments is once.arguments
