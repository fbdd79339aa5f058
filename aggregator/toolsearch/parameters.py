"""The parameters of a tool, one to a line.

A line says what a model needs to write an argument: name, type, whether it is required, the values
it may have, its default and what it means. Where a schema says something that words cannot, the
schema itself stands on the line.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from aggregator.json import as_object, is_object
from aggregator.toolsearch.excerpt import excerpt, references
from aggregator.toolsearch.kinds import MAX_DEPTH, Place, inner_object, kind
from aggregator.toolsearch.schema import (
    Json,
    Schema,
    alternatives,
    pointed,
    properties,
    required,
    resolved,
)
from aggregator.toolsearch.wording import compact, one_line

MAX_REFERRED = 50
"""Definitions written out because a schema on a line refers to them."""

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
_PLAIN_NAME = re.compile(r"[^\W\d][\w.$@/-]{0,99}")


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


def parameter_lines(schema: Schema, detail: Detail, room: int) -> list[str]:
    """Return the lines that say what arguments a tool takes, one too many if there is no room."""
    top = resolved(schema, schema)
    lines = list(_taken(_object_lines(top, Place(schema), detail), room))
    if together := {key: top[key] for key in top if key in _ALL_TOGETHER}:
        lines.append(f"- all together: {excerpt(together, detail.parameter)}")
    text = "\n".join(lines)
    return lines + list(_taken(_referred(text, schema, detail), room - len(text)))


def _object_lines(schema: Schema, place: Place, detail: Detail) -> Iterator[str]:
    """Yield the lines of an object's properties."""
    declared, needed = properties(schema), frozenset(required(schema))
    undeclared = {name: True for name in required(schema) if name not in declared}
    for name, each in {**declared, **undeclared}.items():
        yield from _property_lines(name, each, place, detail, needed=name in needed)
    other = schema.get("additionalProperties")
    if is_object(other) and other:
        told = kind(other, place) or f"schema {excerpt(other, detail.parameter)}"
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
        rest = {key: schema[key] for key in schema if key != "description"}
        told = f"schema {excerpt(rest, detail.parameter)}"
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


def _referred(text: str, root: Schema, detail: Detail) -> Iterator[str]:
    """Yield a line for each definition that a schema on some line refers to."""
    waiting = references(text)
    told: set[str] = set()
    while waiting and len(told) < MAX_REFERRED:
        target = waiting.pop(0)
        if target not in told and is_object(found := pointed(target, root)):
            told.add(target)
            line = f"- {target}: {excerpt(found, detail.parameter)}"
            waiting += references(line)
            yield line


def _taken(lines: Iterable[str], room: int) -> Iterator[str]:
    """Yield lines up to the first that has no room: what would follow is never looked at."""
    for line in lines:
        yield line
        room -= len(line) + 1
        if room < 0:
            break
