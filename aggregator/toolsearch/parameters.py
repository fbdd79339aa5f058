"""The parameters of a tool, one to a line.

A line says what a model needs to write an argument: name, type, whether it is required, the values
it may have, its default and what it means. Where a schema says something that words cannot, the
schema itself stands on the line.
"""

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import NamedTuple

from aggregator.basics.effort import Effort
from aggregator.basics.json import as_object, is_object
from aggregator.toolsearch.definition_cache import DefinitionCache
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
from aggregator.toolsearch.wording import CUT, compact, listed, one_line

MAX_REFERRED = 50
"""Definitions written out because a schema on a line refers to them."""
MAX_UNTOLD = 200
"""Characters of the names of parameters that are not told."""

_CONSTRAINTS = (
    "format", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
    "multipleOf", "minLength", "maxLength", "minItems", "maxItems", "uniqueItems",
    "minProperties", "maxProperties",
)  # fmt: skip
"""What limits a value in a way that words can say."""
_LIMITING = frozenset(_CONSTRAINTS)
_ALL_TOGETHER = frozenset({
    "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "patternProperties", "propertyNames",
    "dependencies", "dependentRequired", "dependentSchemas", "minProperties", "maxProperties",
})  # fmt: skip
"""What a schema says of all arguments together."""
_told = DefinitionCache[list[str]]()
_PLAIN_NAME = re.compile(r"[^\W\d][\w.$@/-]{0,99}")


class Detail(NamedTuple):
    """How much of a definition is shown."""

    description: int
    """Characters of the tool's description."""
    parameter: int
    """Characters of each parameter's description."""
    depth: int = MAX_DEPTH
    """Levels of parameters that have lines of their own."""
    values: int | None = None
    """Characters of a parameter's type and values, if they are not shown whole."""


def parameter_lines(schema: Schema, detail: Detail, room: int, effort: Effort) -> list[str]:
    """Return the lines that say what arguments a tool takes, one too many if there is no room."""
    if (known := _told.find(schema, detail, room, effort)) is not None:
        return known
    before = effort.left
    lines = _lines(schema, detail, room, effort)
    length = sum(len(line) + 1 for line in lines)
    if not lines or length > room or effort.is_spent:
        return lines
    return _told.keep(schema, detail, lines, length=length, steps=before - effort.left)


def _lines(schema: Schema, detail: Detail, room: int, effort: Effort) -> list[str]:
    top = resolved(schema, schema, effort)
    lines = list(_taken(_object_lines(top, Place(schema, effort), detail), room))
    if together := {key: top[key] for key in top if key in _ALL_TOGETHER}:
        lines.append(f"- all together: {excerpt(together, detail.parameter, effort)}")
    text = "\n".join(lines)
    return lines + list(_taken(_referred(text, schema, detail, effort), room - len(text)))


def _object_lines(schema: Schema, place: Place, detail: Detail) -> Iterator[str]:
    """Yield the lines of an object's properties."""
    declared, needed = properties(schema), dict.fromkeys(required(schema))
    place.effort.gather(len(declared) + len(needed))
    named = {**declared, **{name: True for name in needed if name not in declared}}
    for number, (name, each) in enumerate(named.items()):
        if place.effort.is_spent:
            yield f"{'  ' * place.depth}- {_untold(list(named)[number:], needed)}"
            return
        yield from _property_lines(name, each, place, detail, needed=name in needed)
    other = schema.get("additionalProperties")
    if is_object(other) and other:
        told = kind(other, place) or f"schema {excerpt(other, detail.parameter, place.effort)}"
        yield f"{'  ' * place.depth}- any other name ({told})"


def _untold(names: Sequence[str], needed: Container[str]) -> str:
    """Name the parameters that there is no effort left for."""
    heads = names[:MAX_UNTOLD]
    told = [one_line(each, 60) + (" (required)" if each in needed else "") for each in heads]
    rest = listed(told, MAX_UNTOLD, len(names) - len(heads))
    return f"too intricate to be told: {rest}{CUT}"


def _property_lines(
    name: str, schema: Json, place: Place, detail: Detail, *, needed: bool
) -> Iterator[str]:
    """Yield the line of one property, and the lines of what is inside of it."""
    shown = name if _PLAIN_NAME.fullmatch(name) else one_line(compact(name), 100)
    here = place._replace(path=f"{place.path}.{shown}" if place.path else shown, depth=0)
    known = resolved(as_object(schema), place.root, place.effort)
    inner = inner_object(schema, here)
    told = kind(schema, here) if not inner or place.depth + 1 < MAX_DEPTH else None
    traits = _traits(told, known, place, detail, needed=needed)
    said = known.get("description")
    about = one_line(said, detail.parameter) if isinstance(said, str) else ""
    yield f"{'  ' * place.depth}- {shown} ({traits})" + (f": {about}" if about else "")
    if told and inner and place.depth + 1 < detail.depth:
        under = inner[1]._replace(depth=place.depth + 1, chosen=False)
        yield from _object_lines(inner[0], under, detail)


def _traits(told: str | None, schema: Schema, place: Place, detail: Detail, *, needed: bool) -> str:
    """Return what stands in brackets after a parameter's name."""
    must = ["required"] if needed else []
    limits = list(_limits(schema, place)) if told and detail.values is None else []
    if told is None:
        place.effort.gather(len(schema))
        rest = {key: schema[key] for key in schema if key != "description"}
        told = f"schema {excerpt(rest, detail.parameter, place.effort)}"
    if detail.values is not None:
        told = one_line(told, detail.values)
    return ", ".join([told, *must, *limits])


def _limits(schema: Schema, place: Place) -> Iterator[str]:
    """Yield what is said of a value beside its type, as far as there is effort for it."""
    if "default" in schema:
        yield _said("default", schema, place.effort)
    yield from _constraints(schema, place)
    for option in alternatives(schema):
        if place.effort.is_spent:
            break
        yield from _constraints(as_object(option), place)
    for limit in _constraints(as_object(schema.get("items")), place):
        yield f"each {limit}"
    if schema.get("deprecated") is True:
        yield "deprecated"


def _constraints(schema: Schema, place: Place) -> Iterator[str]:
    if place.effort.spend():
        known = resolved(schema, place.root, place.effort)
        if not _LIMITING.isdisjoint(known):
            yield from (_said(each, known, place.effort) for each in _CONSTRAINTS if each in known)


def _said(keyword: str, schema: Schema, effort: Effort) -> str:
    if effort.is_spent:
        return f"{keyword}{CUT}"
    text = compact(schema[keyword])
    effort.copy(len(text))
    return f"{keyword} {text}"


def _referred(text: str, root: Schema, detail: Detail, effort: Effort) -> Iterator[str]:
    """Yield a line for each definition that a schema on some line refers to."""
    waiting = references(text)
    told: set[str] = set()
    while waiting and len(told) < MAX_REFERRED:
        target = waiting.pop(0)
        if target not in told and is_object(found := pointed(target, root)):
            told.add(target)
            line = f"- {target}: {excerpt(found, detail.parameter, effort)}"
            waiting += references(line)
            yield line


def _taken(lines: Iterable[str], room: int) -> Iterator[str]:
    """Yield lines up to the first that has no room: what would follow is never looked at."""
    for line in lines:
        yield line
        room -= len(line) + 1
        if room < 0:
            break
