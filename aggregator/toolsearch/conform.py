"""Whether arguments fit a tool's input schema, and what makes them fit without guessing.

Only the structure is checked: what is there, and of which type. No pattern of a server is ever
run, nothing is fetched, and whatever is not understood is accepted: the server has the last word.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aggregator.json import JsonObject, is_array, is_object
from aggregator.search.repair import nearest
from aggregator.toolsearch.kinds import Place, kind
from aggregator.toolsearch.readings import is_of, readings, same
from aggregator.toolsearch.schema import (
    Json,
    Schema,
    alternatives,
    properties,
    required,
    resolved,
    type_names,
)
from aggregator.toolsearch.wording import compact, listed, one_line

MAX_DEPTH = 32
"""Levels of arguments that are checked."""
MAX_STEPS = 5000
"""Values checked before a schema counts as too intricate and everything as fitting."""
MAX_PROBLEMS = 20
"""Problems that are told."""

_Outcome = tuple[Json, tuple[str, ...]]
"""A value, converted where that makes it fit, and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Conformed:
    """Arguments, with values converted where they only needed another type."""

    arguments: JsonObject
    problems: tuple[str, ...] = ()
    """What does not fit, one sentence each."""


def conform(arguments: JsonObject, schema: JsonObject) -> Conformed:
    """Check arguments against an input schema and convert what only needs another type."""
    try:
        fitted, problems = _Fitting(schema).fit(arguments, schema, "")
        # A schema that contradicts itself could turn a value back and forth.
        settled = fitted is arguments or fitted is _Fitting(schema).fit(fitted, schema, "")[0]
    except _TooIntricateError:
        return Conformed(arguments)
    return Conformed(fitted if settled else arguments, problems[:MAX_PROBLEMS])


class _TooIntricateError(Exception):
    """The schema asks for more steps than a check may take."""


class _Fitting:
    """One check of arguments against a schema; unchanged values stay the very same objects."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._steps = 0

    def fit(self, value: Json, schema: Json, path: str, depth: int = 0) -> _Outcome:
        """Fit one value to one schema."""
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise _TooIntricateError
        if schema is False:
            return value, (f"{path or 'arguments'}: not allowed",)
        if not is_object(schema) or depth > MAX_DEPTH:
            return value, ()
        known = resolved(schema, self._root)
        problems: list[str] = []
        for check in (self._typed, self._listed, self._all_of, self._any_of):
            value, wrong = check(value, known, path, depth)
            problems += wrong
        return value, tuple(dict.fromkeys(problems))

    def _typed(self, value: Json, schema: Schema, path: str, depth: int) -> _Outcome:
        """Check the type, and what is inside."""
        names = type_names(schema)
        if not names or any(is_of(value, name) for name in names):
            return self._inside(value, schema, path, depth)
        for reading in readings(value, names):
            inside, problems = self._inside(reading, schema, path, depth)
            if not problems and not _wrapped_twice(value, reading, inside):
                return inside, ()
        return value, (self._mismatch(value, schema, path),)

    def _inside(self, value: Json, schema: Schema, path: str, depth: int) -> _Outcome:
        if is_object(value):
            return self._object(value, schema, path, depth)
        if is_array(value):
            return self._array(value, schema, path, depth)
        return value, ()

    def _object(self, value: Mapping[str, Json], schema: Schema, path: str, depth: int) -> _Outcome:
        needed = required(schema)
        missing = [
            f"{_at(path, name)}: required, but missing" for name in needed if name not in value
        ]
        problems: list[str] = missing
        fitted: dict[str, Json] = {}
        for name, each in value.items():
            inner, wrong = self._property(name, each, schema, path, depth)
            if wrong and each is None and name not in needed:
                # Many models send null for what they mean to leave out.
                continue
            fitted[name] = inner
            problems += wrong
        unchanged = len(fitted) == len(value) and all(fitted[name] is value[name] for name in value)
        return value if unchanged else fitted, tuple(problems)

    def _property(self, name: str, value: Json, schema: Schema, path: str, depth: int) -> _Outcome:
        declared = properties(schema)
        if name in declared:
            return self.fit(value, declared[name], _at(path, name), depth + 1)
        other = schema.get("additionalProperties")
        if other is None or schema.get("patternProperties"):
            return value, ()
        if other is False:
            return value, (_unknown(_at(path, name), name, declared),)
        return self.fit(value, other, _at(path, name), depth + 1)

    def _array(self, value: Sequence[Json], schema: Schema, path: str, depth: int) -> _Outcome:
        first = schema.get("prefixItems")
        heads: Sequence[Json] = first if is_array(first) else ()
        items = schema.get("items")
        fitted: list[Json] = []
        problems: list[str] = []
        for place, each in enumerate(value):
            rule = heads[place] if place < len(heads) else items
            inner, wrong = self.fit(each, rule, f"{path}[{place}]", depth + 1)
            fitted.append(inner)
            problems += wrong
        unchanged = all(new is old for new, old in zip(fitted, value, strict=True))
        return value if unchanged else fitted, tuple(problems)

    def _listed(self, value: Json, schema: Schema, path: str, _depth: int) -> _Outcome:
        """Check a value against the values there may be."""
        values = [schema["const"]] if "const" in schema else schema.get("enum")
        if not is_array(values) or any(same(value, each) for each in values):
            return value, ()
        written = value if isinstance(value, str) else _written(value)
        meant = [each for each in values if _written(each) == written]
        if len(meant) == 1:
            return meant[0], ()
        allowed = listed(map(compact, values), 300)
        return value, (f"{path}: must be one of {allowed}, not {_shown(value)}",)

    def _all_of(self, value: Json, schema: Schema, path: str, depth: int) -> _Outcome:
        parts = schema.get("allOf")
        problems: list[str] = []
        for part in parts if is_array(parts) else ():
            value, wrong = self.fit(value, part, path, depth + 1)
            problems += wrong
        return value, tuple(problems)

    def _any_of(self, value: Json, schema: Schema, path: str, depth: int) -> _Outcome:
        """Accept what fits one alternative as it is, or else what can be made to fit one."""
        outcomes: list[_Outcome] = []
        for option in alternatives(schema):
            outcome = self.fit(value, option, path, depth + 1)
            if outcome[0] is value and not outcome[1]:
                return outcome
            outcomes.append(outcome)
        if not outcomes:
            return value, ()
        converted = next((each for each in outcomes if not each[1]), None)
        return converted or (value, self._closest(value, schema, path, outcomes))

    def _closest(
        self, value: Json, schema: Schema, path: str, outcomes: Sequence[_Outcome]
    ) -> tuple[str, ...]:
        """Return what keeps a value from the alternative that it is most like."""
        if is_object(value) or is_array(value):
            return min((problems for _, problems in outcomes), key=len)
        return (self._mismatch(value, schema, path),)

    def _mismatch(self, value: Json, schema: Schema, path: str) -> str:
        wanted = one_line(kind(schema, Place(self._root)) or "as its schema says", 200)
        return f"{path or 'arguments'}: must be {wanted}, not {_shown(value)}"


def _wrapped_twice(value: Json, reading: Json, inside: Json) -> bool:
    """Tell whether a single value was put into an array inside of an array."""
    return is_array(reading) and bool(reading) and reading[0] is value and is_array(inside[0])


def _at(path: str, name: str) -> str:
    shown = one_line(name, 60)
    return f"{path}.{shown}" if path else shown


def _unknown(path: str, name: str, declared: Mapping[str, Json]) -> str:
    names = nearest(name, declared) or list(declared)
    known = f"; there is {listed(names, 200)}" if names else ""
    return f"{path}: no such parameter{known}"


def _written(value: Json) -> str:
    """Return a plain value as text."""
    if is_object(value) or is_array(value):
        return ""
    return value if isinstance(value, str) else compact(value)


def _shown(value: Json) -> str:
    """Return a value for a message, whatever its size."""
    if is_object(value):
        return "an object"
    if is_array(value):
        return "an array"
    return one_line(compact(value[:100] if isinstance(value, str) else value), 60)
