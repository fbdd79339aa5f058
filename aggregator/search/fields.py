"""The searchable texts of one tool, read from a definition that may hold anything."""

from collections.abc import Iterator
from itertools import islice

from aggregator.basics.frozen import frozen
from aggregator.basics.json import JsonObject, as_object, items
from aggregator.catalog import ToolEntry
from aggregator.search.weights import (
    MAX_CHOICE,
    MAX_CHOICES,
    MAX_DEPTH,
    MAX_DESCRIPTION,
    MAX_DETAIL,
    MAX_NAME,
    MAX_PARAMETERS,
)


@frozen
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
    tool = {**entry.tool, **entry.put_right} if entry.put_right else entry.tool
    found = list(_parameters(tool.get("inputSchema")))
    return Texts(
        name=_text(tool.get("name"), MAX_NAME) or entry.name.partition("__")[2],
        title=_text(tool.get("title") or as_object(tool.get("annotations")).get("title"), MAX_NAME),
        hint=_text(entry.hint, MAX_DESCRIPTION),
        description=_text(tool.get("description"), MAX_DESCRIPTION),
        parameters=" . ".join(name for name, _ in found),
        details=" . ".join(detail for _, detail in found if detail),
    )


def _parameters(schema: object) -> Iterator[tuple[str, str]]:
    """Yield the name and the details of each parameter, outer ones first, within bounds."""
    root = as_object(schema)
    level = _with_parameters(root, root)
    left = MAX_PARAMETERS
    for _ in range(MAX_DEPTH):
        below: list[JsonObject] = []
        for parent in level:
            for name, value in islice(as_object(parent["properties"]).items(), left):
                child = _resolved(value, root)
                yield _text(name, MAX_NAME), _detail(child)
                below += _with_parameters(child, root)
                left -= 1
        level = below[:left]


def _with_parameters(schema: JsonObject, root: JsonObject) -> list[JsonObject]:
    """Return the schemas in which the parameters of one may be: itself, its items, its kinds."""
    found = [schema, _resolved(schema.get("items"), root)]
    for key in ("anyOf", "oneOf", "allOf"):
        found += [_resolved(each, root) for each in items(schema.get(key))[:MAX_CHOICES]]
    return [each for each in found if "properties" in each]


def _resolved(value: object, root: JsonObject) -> JsonObject:
    """Return a schema, or the one in the same document that it refers to."""
    schema = as_object(value)
    section, _, name = _text(schema.get("$ref"), MAX_NAME).removeprefix("#/").partition("/")
    return as_object(as_object(root.get(section)).get(name)) if name else schema


def _detail(schema: JsonObject) -> str:
    """Return what one parameter says of itself: its description and its choices."""
    said = _text(schema.get("description"), MAX_DETAIL)
    choices = items(schema.get("enum")) or items(as_object(schema.get("items")).get("enum"))
    named = [_text(each, MAX_CHOICE) for each in choices[:MAX_CHOICES]]
    return " . ".join(each for each in (said, *named) if each)


def _text(value: object, limit: int) -> str:
    return value[:limit] if isinstance(value, str) else ""
