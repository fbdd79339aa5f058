"""The type of an argument in a few words, where words are enough."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from aggregator.json import is_array, is_object
from aggregator.toolsearch.schema import (
    Json,
    Schema,
    alternatives,
    properties,
    reference,
    resolved,
    type_names,
)
from aggregator.toolsearch.wording import compact, one_line

MAX_DEPTH = 6
"""Levels of one thing inside another that are told in words and lines."""
MAX_STEPS = 5000
"""Values looked at to tell one definition: references can make a small schema endless."""

_BEYOND_WORDS = frozenset({
    "allOf", "not", "if", "then", "else", "patternProperties", "propertyNames", "dependencies",
    "dependentRequired", "dependentSchemas", "prefixItems", "contains", "$ref", "$dynamicRef",
})  # fmt: skip


class Effort:
    """The steps that may still be taken to tell one definition."""

    def __init__(self) -> None:
        self._left = MAX_STEPS

    def spend(self) -> bool:
        """Take a step, and say whether there was one left."""
        self._left -= 1
        return self._left >= 0


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a schema we are."""

    root: Schema
    path: str = ""
    """The parameter this is, or is inside of."""
    depth: int = 0
    inside: Mapping[str, str] = field(default_factory=dict[str, str])
    """The references followed to get here, and the parameter each was met at."""
    chosen: bool = False
    """Is this one of several alternatives?"""
    effort: Effort = field(default_factory=Effort)

    def within(self, schema: Schema) -> "Place":
        """Return the place inside of what a schema refers to."""
        target = reference(schema)
        return replace(self, inside={**self.inside, target: self.path}) if target else self

    def deeper(self, step: str = "") -> "Place":
        """Return the place one level further in."""
        return replace(self, depth=self.depth + 1, path=self.path + step)


def kind(schema: Json, place: Place) -> str | None:
    """Return a type in a few words; None if only the schema itself can say it."""
    if not place.effort.spend():
        return None
    if not is_object(schema):
        return "any"
    if (met := reference(schema) or "") in place.inside:
        return f"same as {place.inside[met]}"
    known = resolved(schema, place.root)
    beyond = place.depth > MAX_DEPTH or not _BEYOND_WORDS.isdisjoint(known)
    return None if beyond else _listed(known) or _unlisted(known, place.within(schema))


def inner_object(schema: Json, place: Place) -> tuple[Schema, Place] | None:
    """Return the object with properties that an argument is or holds, and where it stands."""
    if not place.effort.spend() or place.depth > MAX_DEPTH or not is_object(schema):
        return None
    if (reference(schema) or "") in place.inside:
        return None
    here = place.within(schema)
    known = resolved(schema, place.root)
    if properties(known):
        return known, here
    if is_object(items := known.get("items")):
        return inner_object(items, here.deeper("[]"))
    options = () if place.chosen else alternatives(known)
    inner = (inner_object(each, _option(here)) for each in options)
    return next((each for each in inner if each), None)


def _listed(schema: Schema) -> str | None:
    """Return the values there may be, if the schema lists them."""
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    return " | ".join(compact(each) for each in values) if is_array(values) else None


def _unlisted(schema: Schema, place: Place) -> str | None:
    options = alternatives(schema)
    if options and place.chosen:
        # A choice inside a choice is for the schema to say.
        return None
    return _choice(options, place) if options else _named(schema, place)


def _option(place: Place) -> Place:
    return replace(place.deeper(), chosen=True)


def _choice(options: Sequence[Json], place: Place) -> str | None:
    """Return a choice of types, if at most one of them has properties to lay out."""
    objects = 0
    kinds: list[str] = []
    for option in options:
        told = kind(option, _option(place))
        objects += inner_object(option, _option(place)) is not None
        if told is None or objects > 1:
            return None
        kinds.append(told)
    return " | ".join(dict.fromkeys(kinds))


def _joined(kinds: Sequence[str | None]) -> str | None:
    told = [each for each in kinds if each]
    return " | ".join(dict.fromkeys(told)) if len(told) == len(kinds) else None


def _named(schema: Schema, place: Place) -> str | None:
    """Return the types a schema names."""
    names = type_names(schema) or _implied(schema)
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
