"""A schema itself on one line, for what words cannot say."""

import re

from aggregator.basics.effort import Effort
from aggregator.basics.json import is_array, is_object
from aggregator.toolsearch.schema import Json, Schema
from aggregator.toolsearch.wording import CUT, compact, one_line

MAX_DEPTH = 24
"""Levels of a schema that are written."""
MAX_NODES = 2000
"""Values in a schema that is written at all: more than an answer can hold."""

_SPARED = frozenset({"title", "examples", "$comment", "$schema", "$id", "$defs", "definitions"})
"""What a caller can do without."""
_NAMES_INSIDE = frozenset({"properties", "patternProperties", "dependentSchemas", "dependencies"})
"""Keywords whose value has names for keys."""
_DATA_INSIDE = frozenset({"enum", "const", "default", "required", "type"})
"""Keywords whose value is no schema."""
_REFERENCE = re.compile(r'"\$ref": "(#/[^"\\]{1,200})"')


def excerpt(schema: Schema, limit: int, effort: Effort) -> str:
    """Write a schema with descriptions of at most `limit` characters and nothing superfluous."""
    if effort.is_spent or _is_large(schema, effort):
        return "{...}" + CUT
    text = compact(_pruned(schema, limit))
    effort.copy(len(text))
    return text


def references(text: str) -> list[str]:
    """Return the local references in excerpts."""
    return _REFERENCE.findall(text)


def _is_large(schema: Schema, effort: Effort) -> bool:
    """Tell whether a schema holds more than can be written, or than there is effort for."""
    seen = 0
    waiting: list[Json] = [schema]
    while waiting and seen <= MAX_NODES:
        value = waiting.pop()
        inside = value.values() if is_object(value) else value if is_array(value) else ()
        seen += len(inside)
        waiting.extend(inside)
    return not effort.spend(seen // 2) or seen > MAX_NODES


def _pruned(schema: Json, limit: int, depth: int = 0) -> Json:
    if depth > MAX_DEPTH:
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
        return one_line(value, limit) if isinstance(value, str) else ""
    if key in _NAMES_INSIDE and is_object(value):
        return {name: _pruned(each, limit, depth + 1) for name, each in value.items()}
    return _pruned(value, limit, depth)
