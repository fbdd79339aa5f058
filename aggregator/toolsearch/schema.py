"""JSON Schema as servers write it, read without trusting its shape."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from aggregator.basics.effort import Effort
from aggregator.basics.json import is_array, is_object

Json = Any
"""Any JSON value."""
Schema = Mapping[str, Any]

MAX_HOPS = 8
"""References followed from one to the next."""
MAX_POINTER = 2000
"""Characters a reference may have."""


def reference(schema: Schema) -> str | None:
    """Return the reference a schema consists of, if it is one."""
    target = schema.get("$ref")
    return target if isinstance(target, str) else None


def resolved(schema: Schema, root: Schema, effort: Effort) -> Schema:
    """Follow local references; what stands beside a reference stays.

    Nothing is ever fetched: a reference to anywhere else, to nothing or round in a circle is left
    as it is, and so is one that there is no effort left for.
    """
    if "$ref" not in schema:
        return schema
    followed: list[str] = []
    while (target := reference(schema)) is not None and len(followed) < MAX_HOPS:
        found = pointed(target, root)
        if not is_object(found) or target in followed:
            return schema
        followed.append(target)
        if not (effort.spend() and effort.gather(len(found) + len(schema) + len(target))):
            return schema
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**found, **beside}
    return schema


def pointed(target: str, root: Schema) -> Json:
    """Return what a local reference points to, or None."""
    if not target.startswith("#") or len(target) > MAX_POINTER:
        return None
    place: Json = root
    for step in filter(None, target[1:].split("/")):
        key = unquote(step).replace("~1", "/").replace("~0", "~")
        if is_object(place):
            place = place.get(key)
        elif is_array(place) and key.isdecimal() and int(key[:9]) < len(place):
            place = place[int(key[:9])]
        else:
            return None
    return place


def properties(schema: Schema) -> Mapping[str, Json]:
    """Return the declared properties of an object."""
    declared = schema.get("properties")
    return declared if is_object(declared) else {}


def required(schema: Schema) -> tuple[str, ...]:
    """Return the names of the properties that must be there."""
    names = schema.get("required")
    return tuple(each for each in names if isinstance(each, str)) if is_array(names) else ()


def type_names(schema: Schema) -> tuple[str, ...]:
    """Return the types a schema names; none of them means any."""
    declared = schema.get("type")
    if isinstance(declared, str):
        return (declared,)
    return tuple(each for each in declared if isinstance(each, str)) if is_array(declared) else ()


def alternatives(schema: Schema) -> tuple[Json, ...]:
    """Return the schemas of which one must fit; none means there is no such choice."""
    for keyword in ("anyOf", "oneOf"):
        if is_array(options := schema.get(keyword)) and options:
            return tuple(options)
    return ()
