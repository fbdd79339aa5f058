"""The searchable texts of one tool, read from a definition that may hold anything."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aggregator.catalog import ToolEntry

MAX_NAME = 256
"""Characters of a name or title that are indexed."""
MAX_DESCRIPTION = 2048
"""Characters of a description that are indexed: enough to say what a tool does, too few to stuff."""
MAX_DETAIL = 256
"""Characters of one parameter's description that are indexed."""
MAX_PARAMETERS = 64
"""Parameters of one tool that are indexed, nested ones included."""
MAX_DEPTH = 5
"""Levels of nesting below which parameters are not looked for."""
MAX_CHOICES = 24
"""Enum values of one parameter that are indexed."""

_BRANCHES = ("anyOf", "oneOf", "allOf")


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
    level: list[Mapping[str, Any]] = [_mapping(schema)]
    left = MAX_PARAMETERS
    for _ in range(MAX_DEPTH):
        below: list[Mapping[str, Any]] = []
        for parent in level:
            for name, child in list(_mapping(parent.get("properties")).items())[:left]:
                left -= 1
                yield _text(name, MAX_NAME), _detail(_mapping(child))
                below += _inside(_mapping(child))
        level = below[:MAX_PARAMETERS]
        if left <= 0 or not level:
            return


def _inside(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the schemas in which the parameters of a parameter may be."""
    found = [schema, _mapping(schema.get("items"))]
    for key in _BRANCHES:
        found += [_mapping(each) for each in _sequence(schema.get(key))[:MAX_CHOICES]]
    return [each for each in found if "properties" in each or any(key in each for key in _BRANCHES)]


def _detail(schema: Mapping[str, Any]) -> str:
    """Return what one parameter says of itself: its description and its choices."""
    said = _text(schema.get("description"), MAX_DETAIL)
    choices = _sequence(schema.get("enum")) or _sequence(_mapping(schema.get("items")).get("enum"))
    named = [_text(each, MAX_DETAIL // 4) for each in choices[:MAX_CHOICES]]
    return " . ".join(each for each in (said, *named) if each)


def _text(value: object, limit: int) -> str:
    return value[:limit] if isinstance(value, str) else ""


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _sequence(value: object) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()
