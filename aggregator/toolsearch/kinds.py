"""The type of an argument in a few words, where words are enough."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from aggregator.basics.effort import Effort
from aggregator.basics.json import is_array, is_object
from aggregator.toolsearch.schema import (
    Json,
    Schema,
    alternatives,
    properties,
    reference,
    resolved,
    type_names,
)
from aggregator.toolsearch.wording import CUT, compact, one_line

MAX_DEPTH = 6
"""Levels of one thing inside another that are told in words and lines."""
MAX_VALUES = 2000
"""Values that are told of those an argument may have: as many as an answer has room for."""

_BEYOND_WORDS = frozenset({
    "allOf", "not", "if", "then", "else", "patternProperties", "propertyNames", "dependencies",
    "dependentRequired", "dependentSchemas", "prefixItems", "contains", "$ref", "$dynamicRef",
})  # fmt: skip


_NOWHERE: Mapping[str, str] = MappingProxyType({})


class Place(NamedTuple):
    """Where in a schema we are."""

    root: Schema
    effort: Effort
    """References can make a small schema endless."""
    path: str = ""
    """The parameter this is, or is inside of."""
    depth: int = 0
    inside: Mapping[str, str] = _NOWHERE
    """The references followed to get here, and the parameter each was met at."""
    chosen: bool = False
    """Is this one of several alternatives?"""

    def within(self, schema: Schema) -> "Place":
        """Return the place inside of what a schema refers to."""
        target = reference(schema)
        return self._replace(inside={**self.inside, target: self.path}) if target else self

    def deeper(self, step: str = "") -> "Place":
        """Return the place one level further in."""
        return self._replace(depth=self.depth + 1, path=self.path + step)


def kind(schema: Json, place: Place) -> str | None:
    """Return a type in a few words; None if only the schema itself can say it."""
    if not place.effort.spend():
        return None
    if not is_object(schema):
        return "any"
    if (met := reference(schema) or "") in place.inside:
        return f"same as {place.inside[met]}"
    known = resolved(schema, place.root, place.effort)
    if place.depth > MAX_DEPTH or not _BEYOND_WORDS.isdisjoint(known):
        return None
    values = [known["const"]] if "const" in known else known.get("enum")
    told = _listed(values, place.effort) if is_array(values) else None
    return told if is_array(values) and values else _unlisted(known, place.within(schema))


def inner_object(schema: Json, place: Place) -> tuple[Schema, Place] | None:
    """Return the object with properties that an argument is or holds, and where it stands."""
    if not place.effort.spend() or place.depth > MAX_DEPTH or not is_object(schema):
        return None
    if (reference(schema) or "") in place.inside:
        return None
    here = place.within(schema)
    known = resolved(schema, place.root, place.effort)
    if properties(known):
        return known, here
    if is_object(items := known.get("items")):
        return inner_object(items, here.deeper("[]"))
    options = () if place.chosen else alternatives(known)
    if not options:
        return None
    place.effort.gather(len(options))
    inside = _option(here)
    inner = (inner_object(each, inside) for each in options if not place.effort.is_spent)
    return next((each for each in inner if each), None)


def _listed(values: Sequence[Json], effort: Effort) -> str | None:
    """Return the values there may be, unless they are too many to look at."""
    heads = values[:MAX_VALUES]
    if not effort.spend(len(heads) // 4):
        return None
    told = " | ".join(map(compact, heads)) + (CUT if len(heads) < len(values) else "")
    return told if effort.copy(len(told)) else None


def _unlisted(schema: Schema, place: Place) -> str | None:
    options = alternatives(schema)
    place.effort.gather(len(options))
    if options and place.chosen:
        # A choice inside a choice is for the schema to say.
        return None
    return _choice(options, place) if options else _named(schema, place)


def _option(place: Place) -> Place:
    return place.deeper()._replace(chosen=True)


def _choice(options: Sequence[Json], place: Place) -> str | None:
    """Return a choice of types, if at most one of them has properties to lay out."""
    objects = 0
    kinds: list[str] = []
    here = _option(place)
    for option in options:
        told = kind(option, here)
        objects += inner_object(option, here) is not None
        if told is None or objects > 1:
            return None
        kinds.append(told)
    return " | ".join(dict.fromkeys(kinds))


def _joined(kinds: Sequence[str | None]) -> str | None:
    told = [each for each in kinds if each]
    return " | ".join(dict.fromkeys(told)) if len(told) == len(kinds) else None


def _named(schema: Schema, place: Place) -> str | None:
    """Return the types a schema names."""
    named = type_names(schema) or _implied(schema)
    if not place.effort.gather(len(named)):
        return None
    names = dict.fromkeys(named)
    place.effort.spend(len(names) // 4)
    return _joined([_one(name, schema, place) for name in names])


def _implied(schema: Schema) -> tuple[str, ...]:
    """Return the type that a schema means without naming it."""
    if "properties" in schema:
        return ("object",)
    return ("array",) if "items" in schema else ("any",)


def _one(name: str, schema: Schema, place: Place) -> str | None:
    match name:
        case "array":
            items = kind(schema.get("items"), place.deeper("[]"))
            return items and (f"({items})[]" if " " in items else f"{items}[]")
        case "object":
            return _object(schema, place)
        case "string" | "integer" | "number" | "boolean" | "null" | "any":
            return name
        case _:
            return one_line(name, 40)


def _object(schema: Schema, place: Place) -> str | None:
    """Return the type of an object, with that of its values if they may have any name."""
    values = schema.get("additionalProperties")
    if properties(schema) or not is_object(values) or not values:
        return "object"
    # What such values are made of has no line to stand on.
    if inner_object(values, place.deeper()):
        return None
    told = kind(values, place.deeper())
    return told and f"object of {told}"
