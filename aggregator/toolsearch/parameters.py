"""The parameters of a tool, one to a line.

A line says what a model needs to write an argument: name, type, whether it is required, the values
it may have, its default and what it means. Where a schema says something that words cannot, the
schema itself stands on the line.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from aggregator.catalog import as_object, is_object
from aggregator.toolsearch.kinds import MAX_DEPTH, Place, inner_object, kind
from aggregator.toolsearch.schema import (
    Json,
    Schema,
    alternatives,
    is_array,
    pointed,
    properties,
    required,
    resolved,
)
from aggregator.toolsearch.wording import compact, one_line

MAX_LINES = 1000
"""Lines of one definition: more than any answer can hold."""
MAX_REFERRED = 50
"""Definitions written out because a schema on a line refers to them."""
MAX_RAW_DEPTH = 24
"""Levels of a schema that stands on a line."""

_CONSTRAINTS = (
    "format", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
    "multipleOf", "minLength", "maxLength", "minItems", "maxItems", "uniqueItems",
    "minProperties", "maxProperties",
)  # fmt: skip
"""What limits a value in a way that words can say."""
_ALL_TOGETHER = frozenset({
    "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "patternProperties", "propertyNames",
    "dependencies", "dependentRequired", "dependentSchemas", "minProperties", "maxProperties",
})  # fmt: skip
"""What a schema says of all arguments together."""
_SPARED = frozenset({"title", "examples", "$comment", "$schema", "$id", "$defs", "definitions"})
"""What a schema on a line can do without."""
_NAMES_INSIDE = frozenset({"properties", "patternProperties", "dependentSchemas", "dependencies"})
"""Keywords whose value has names for keys."""
_DATA_INSIDE = frozenset({"enum", "const", "default", "required", "type"})
"""Keywords whose value is no schema."""
_PLAIN_NAME = re.compile(r"[^\W\d][\w.$@/-]{0,99}")
_REFERENCE = re.compile(r'"\$ref": "(#/[^"\\]{1,200})"')


@dataclass(frozen=True, slots=True)
class Detail:
    """How much of a definition is shown."""

    description: int
    """Characters of the tool's description."""
    parameter: int
    """Characters of each parameter's description."""
    depth: int = MAX_DEPTH
    """Levels of parameters that have lines of their own."""
    values: int | None = None
    """Characters of a parameter's type and values, if they are not shown whole."""


def parameter_lines(schema: Schema, detail: Detail) -> list[str]:
    """Return the lines that say what arguments a tool takes."""
    top = resolved(schema, schema)
    lines = list(islice(_object_lines(top, Place(schema), detail), MAX_LINES))
    if together := {key: top[key] for key in top if key in _ALL_TOGETHER}:
        lines.append(f"- all together: {_raw(together, detail)}")
    return lines + _referred("\n".join(lines), schema, detail)


def _object_lines(schema: Schema, place: Place, detail: Detail) -> Iterator[str]:
    """Yield the lines of an object's properties."""
    declared, needed = properties(schema), frozenset(required(schema))
    undeclared = {name: True for name in required(schema) if name not in declared}
    for name, each in {**declared, **undeclared}.items():
        yield from _property_lines(name, each, place, detail, needed=name in needed)
    other = schema.get("additionalProperties")
    if is_object(other) and other:
        told = kind(other, place) or f"schema {_raw(other, detail)}"
        yield f"{'  ' * place.depth}- any other name ({told})"


def _property_lines(
    name: str, schema: Json, place: Place, detail: Detail, *, needed: bool
) -> Iterator[str]:
    """Yield the line of one property, and the lines of what is inside of it."""
    shown = name if _PLAIN_NAME.fullmatch(name) else one_line(compact(name), 100)
    here = replace(place, path=f"{place.path}.{shown}" if place.path else shown, depth=0)
    known = resolved(as_object(schema), place.root)
    inner = inner_object(schema, here)
    told = kind(schema, here) if not inner or place.depth + 1 < MAX_DEPTH else None
    traits = _traits(told, known, place.root, detail, needed=needed)
    about = one_line(str(known.get("description") or ""), detail.parameter)
    yield f"{'  ' * place.depth}- {shown} ({traits})" + (f": {about}" if about else "")
    if told and inner and place.depth + 1 < detail.depth:
        under = replace(inner[1], depth=place.depth + 1, chosen=False)
        yield from _object_lines(inner[0], under, detail)


def _traits(told: str | None, schema: Schema, root: Schema, detail: Detail, *, needed: bool) -> str:
    """Return what stands in brackets after a parameter's name."""
    must = ["required"] if needed else []
    limits = list(_limits(schema, root)) if told and detail.values is None else []
    if told is None:
        told = (
            f"schema {_raw({key: schema[key] for key in schema if key != 'description'}, detail)}"
        )
    if detail.values is not None:
        told = one_line(told, detail.values)
    return ", ".join([told, *must, *limits])


def _limits(schema: Schema, root: Schema) -> Iterator[str]:
    """Yield what is said of a value beside its type."""
    if "default" in schema:
        yield f"default {compact(schema['default'])}"
    yield from _constraints(schema)
    for option in alternatives(schema):
        yield from _constraints(resolved(as_object(option), root))
    for limit in _constraints(resolved(as_object(schema.get("items")), root)):
        yield f"each {limit}"
    if schema.get("deprecated") is True:
        yield "deprecated"


def _constraints(schema: Schema) -> Iterator[str]:
    return (f"{each} {compact(schema[each])}" for each in _CONSTRAINTS if each in schema)


def _raw(schema: Schema, detail: Detail) -> str:
    """Write a schema itself, without what a caller can do without."""
    return compact(_pruned(schema, detail.parameter))


def _pruned(schema: Json, limit: int, depth: int = 0) -> Json:
    """Return a schema with short descriptions and nothing superfluous."""
    if depth > MAX_RAW_DEPTH:
        return {}
    if is_array(schema):
        return [_pruned(each, limit, depth + 1) for each in schema]
    if not is_object(schema):
        return schema
    kept = {
        key: _pruned_keyword(key, each, limit, depth + 1)
        for key, each in schema.items()
        if key not in _SPARED
    }
    return {key: each for key, each in kept.items() if key != "description" or each}


def _pruned_keyword(key: str, value: Json, limit: int, depth: int) -> Json:
    if key in _DATA_INSIDE:
        return value
    if key == "description":
        return one_line(str(value), limit)
    if key in _NAMES_INSIDE and is_object(value):
        return {name: _pruned(each, limit, depth + 1) for name, each in value.items()}
    return _pruned(value, limit, depth)


def _referred(text: str, root: Schema, detail: Detail) -> list[str]:
    """Return a line for each definition that a schema on some line refers to."""
    lines: dict[str, str] = {}
    waiting = _REFERENCE.findall(text)
    while waiting and len(lines) < MAX_REFERRED:
        target = waiting.pop(0)
        if target not in lines and is_object(found := pointed(target, root)):
            lines[target] = f"- {target}: {_raw(found, detail)}"
            waiting += _REFERENCE.findall(lines[target])
    return list(lines.values())
