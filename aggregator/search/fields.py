"""The searchable texts of one tool, read from a definition that may hold anything."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeGuard

from aggregator.catalog import ToolEntry
from aggregator.json import JsonObject

MAX_NAME = 256
"""Characters of a name or title that are indexed."""
MAX_DESCRIPTION = 2048
"""Characters of a description that are indexed: enough to say what a tool does."""
MAX_DETAIL = 256
"""Characters of one parameter's description that are indexed."""
MAX_PARAMETERS = 64
"""Parameters of one tool that are indexed, nested ones included."""
MAX_DEPTH = 5
"""Levels of nesting below which parameters are not looked for."""
MAX_CHOICES = 24
"""Enum values of one parameter, or kinds it may be of, that are indexed."""
MAX_CHOICE = 64
"""Characters of one enum value that are indexed."""


@dataclass(frozen=True, slots=True)
class Texts:
    """What a tool says in each of its fields."""

    name: str
    title: str
    hint: str
    description: str
    parameters: str
    details: str


def texts(entry: ToolEntry) -> Texts:
    """Collect what can be searched of one tool."""
    tool = entry.tool
    found = list(_parameters(tool.get("inputSchema")))
    return Texts(
        name=_text(tool.get("name"), MAX_NAME) or entry.name.partition("__")[2],
        title=_text(tool.get("title") or _mapping(tool.get("annotations")).get("title"), MAX_NAME),
        hint=_text(entry.hint, MAX_DESCRIPTION),
        description=_text(tool.get("description"), MAX_DESCRIPTION),
        parameters=" . ".join(name for name, _ in found),
        details=" . ".join(detail for _, detail in found if detail),
    )


def _parameters(schema: object) -> Iterator[tuple[str, str]]:
    """Yield the name and the details of each parameter, outer ones first, within bounds."""
    root = _mapping(schema)
    level = _with_parameters(root, root)
    left = MAX_PARAMETERS
    for _ in range(MAX_DEPTH):
        below: list[JsonObject] = []
        for parent in level:
            for name, value in islice(_mapping(parent["properties"]).items(), left):
                child = _resolved(value, root)
                yield _text(name, MAX_NAME), _detail(child)
                below += _with_parameters(child, root)
                left -= 1
        level = below[:left]


def _with_parameters(schema: JsonObject, root: JsonObject) -> list[JsonObject]:
    """Return the schemas in which the parameters of one may be: itself, its items, its kinds."""
    found = [schema, _resolved(schema.get("items"), root)]
    for key in ("anyOf", "oneOf", "allOf"):
        found += [_resolved(each, root) for each in _sequence(schema.get(key))[:MAX_CHOICES]]
    return [each for each in found if "properties" in each]


def _resolved(value: object, root: JsonObject) -> JsonObject:
    """Return a schema, or the one in the same document that it refers to."""
    schema = _mapping(value)
    section, _, name = _text(schema.get("$ref"), MAX_NAME).removeprefix("#/").partition("/")
    return _mapping(_mapping(root.get(section)).get(name)) if name else schema


def _detail(schema: JsonObject) -> str:
    """Return what one parameter says of itself: its description and its choices."""
    said = _text(schema.get("description"), MAX_DETAIL)
    choices = _sequence(schema.get("enum")) or _sequence(_mapping(schema.get("items")).get("enum"))
    named = [_text(each, MAX_CHOICE) for each in choices[:MAX_CHOICES]]
    return " . ".join(each for each in (said, *named) if each)


def _text(value: object, limit: int) -> str:
    return value[:limit] if isinstance(value, str) else ""


def _mapping(value: object) -> JsonObject:
    return value if _is_mapping(value) else {}


def _sequence(value: object) -> Sequence[object]:
    return value if _is_sequence(value) else ()


def _is_mapping(value: object) -> TypeGuard[JsonObject]:
    return isinstance(value, Mapping)


def _is_sequence(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, list | tuple)
