"""Whether arguments fit a tool's input schema, and what makes them fit without guessing.

Only the structure is checked: what is there, and of which type. No pattern of a server is ever
run, nothing is fetched, and whatever is not understood is accepted: the server has the last word.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple

from aggregator.basics.effort import Effort
from aggregator.basics.json import JsonObject, is_array, is_object
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
MAX_PROBLEMS = 20
"""Problems that are told."""
MAX_ALLOWED = 300
"""Characters of the values there may be that are told."""

_Problem = Callable[[], str]
"""Something wrong, to be put in words only if it is told."""
_Outcome = tuple[Json, tuple[_Problem, ...]]
"""A value, converted where that makes it fit, and what is wrong with it."""


class Conformed(NamedTuple):
    """Arguments, with values converted where they only needed another type."""

    arguments: JsonObject
    problems: tuple[str, ...] = ()
    """What does not fit, one sentence each."""


class Plain(NamedTuple):
    """What a plain schema asks of a few plain values, as nearly all do of nearly all calls."""

    needed: tuple[str, ...]
    kinds: Mapping[str, tuple[type, ...]]
    """What a value may be, by the names of those that are plain."""

    def fits(self, arguments: JsonObject) -> bool:
        """Whether all values are as they should be; of others, somebody else has to say."""
        for name in self.needed:
            if name not in arguments:
                return False
        for name, value in arguments.items():
            if type(value) not in self.kinds.get(name, ()):
                return False
        return len(arguments) <= MAX_PLAIN


def plain_form(schema: JsonObject) -> Plain | None:
    """Return what a schema asks for, if it is plain."""
    needed, declared = schema.get("required", []), schema.get("properties")
    if schema.get("type") != "object" or not schema.keys().isdisjoint(_INTRICATE):
        return None
    if not is_object(declared) or not is_array(needed):
        return None
    names = tuple(name for name in needed if isinstance(name, str))
    if len(declared) > MAX_DECLARED or len(names) != len(needed):
        return None
    kinds = {name: _plain_kinds(each) for name, each in declared.items()}
    return Plain(names, {name: each for name, each in kinds.items() if each})


def _plain_kinds(schema: Json) -> tuple[type, ...]:
    if not is_object(schema) or not schema.keys().isdisjoint(_INTRICATE):
        return ()
    kind: Json = schema.get("type")
    return _PLAIN.get(kind, ()) if isinstance(kind, str) else ()


MAX_PLAIN = 32
"""Arguments up to which it is worth looking whether they are plain."""
MAX_DECLARED = 100
"""Parameters of a schema up to which the same holds."""
_INTRICATE = frozenset(("$ref", "allOf", "anyOf", "oneOf", "enum", "const"))
_PLAIN: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}


def conform(arguments: JsonObject, schema: JsonObject, effort: Effort | None = None) -> Conformed:
    """Check arguments against an input schema and convert what only needs another type.

    What costs more than half the effort to check counts as fitting; the rest is for the words.
    """
    plain = plain_form(schema)
    if plain is not None and plain.fits(arguments):
        return Conformed(arguments)
    fitted, problems = _fitted(arguments, schema, MAX_PROBLEMS, effort or Effort())
    told = dict.fromkeys(problem() for problem in problems)
    return Conformed(fitted, tuple(told))


def _fitted(
    arguments: JsonObject, schema: JsonObject, max_problems: int, effort: Effort
) -> _Outcome:
    fitting = _Fitting(schema, max_problems, effort)
    try:
        fitted, problems = fitting.fit(arguments, schema, "")
        # A schema that contradicts itself could turn a value back and forth.
        settled = fitted is arguments or fitted is fitting.fit(fitted, schema, "")[0]
    except _TooIntricateError:
        return arguments, ()
    return fitted if settled else arguments, problems


class _TooIntricateError(Exception):
    """The schema asks for more steps than a check may take."""


class _Fitting:
    """One check of arguments against a schema; unchanged values stay the very same objects."""

    def __init__(self, root: Schema, max_problems: int, effort: Effort) -> None:
        self._root = root
        self._max_problems = max_problems
        self._effort = effort.part(2)
        self._words = _Words(root, effort)

    def fit(self, value: Json, schema: Json, path: str, depth: int = 0) -> _Outcome:
        """Fit one value to one schema."""
        self._spend(1)
        if schema is False:
            return value, (partial(_forbidden, path),)
        if not is_object(schema) or depth > MAX_DEPTH:
            return value, ()
        known = resolved(schema, self._root, self._effort)
        self._spend(0)
        problems: list[_Problem] = []
        for check in (self._typed, self._listed, self._all_of, self._any_of):
            value, wrong = check(value, known, path, depth)
            problems += wrong
        return value, self._enough(problems)

    def _spend(self, steps: int) -> None:
        """Take steps that cost as much as to check one plain value.

        Raises:
            _TooIntricateError: There were not as many left.
        """
        if not self._effort.spend(steps):
            raise _TooIntricateError

    def _enough(self, problems: Sequence[_Problem]) -> tuple[_Problem, ...]:
        return tuple(problems[: self._max_problems])

    def _typed(self, value: Json, schema: Schema, path: str, depth: int) -> _Outcome:
        """Check the type, and what is inside."""
        names = type_names(schema)
        if len(names) > 1:
            self._spend(len(names) // 16)
            names = tuple(dict.fromkeys(names))
        if not names or any(is_of(value, name) for name in names):
            return self._inside(value, schema, path, depth)
        # A text may be read as JSON.
        self._spend(len(value) // 256 if isinstance(value, str) else 0)
        for reading in readings(value, names):
            inside, problems = self._inside(reading, schema, path, depth)
            if not problems and not _wrapped_twice(value, reading, inside):
                return inside, ()
        return value, (partial(self._words.mismatch, path, value, schema),)

    def _inside(self, value: Json, schema: Schema, path: str, depth: int) -> _Outcome:
        if is_object(value):
            return self._object(value, schema, path, depth)
        if is_array(value):
            return self._array(value, schema, path, depth)
        return value, ()

    def _object(self, value: Mapping[str, Json], schema: Schema, path: str, depth: int) -> _Outcome:
        self._spend(len(value) // 8)
        needed = required(schema)
        self._spend(len(needed) // 4)
        missing = (name for name in needed if name not in value)
        problems: list[_Problem] = [
            partial(_missing, path, name) for name in islice(missing, self._max_problems)
        ]
        fitted: dict[str, Json] = {}
        for name, each in value.items():
            inner, wrong = each, ()
            if len(problems) < self._max_problems:
                inner, wrong = self._property(name, each, schema, path, depth)
            if wrong and each is None and not self._is_needed(name, needed):
                # Many models send null for what they mean to leave out.
                continue
            fitted[name] = inner
            problems += wrong
        unchanged = len(fitted) == len(value) and all(fitted[name] is value[name] for name in value)
        return value if unchanged else fitted, self._enough(problems)

    def _is_needed(self, name: str, needed: Sequence[str]) -> bool:
        self._spend(len(needed) // 64)
        return name in needed

    def _property(self, name: str, value: Json, schema: Schema, path: str, depth: int) -> _Outcome:
        declared = properties(schema)
        if name in declared:
            return self.fit(value, declared[name], _at(path, name), depth + 1)
        other = schema.get("additionalProperties")
        if other is None or schema.get("patternProperties"):
            return value, ()
        if other is False:
            self._spend(1)
            return value, (partial(self._words.unknown, path, name, declared),)
        return self.fit(value, other, _at(path, name), depth + 1)

    def _array(self, value: Sequence[Json], schema: Schema, path: str, depth: int) -> _Outcome:
        self._spend(len(value) // 8)
        first = schema.get("prefixItems")
        heads: Sequence[Json] = first if is_array(first) else ()
        items = schema.get("items")
        fitted: list[Json] = []
        problems: list[_Problem] = []
        for place, each in enumerate(value):
            if len(problems) >= self._max_problems:
                fitted += value[place:]
                break
            rule = heads[place] if place < len(heads) else items
            inner, wrong = self.fit(each, rule, f"{path}[{place}]", depth + 1)
            fitted.append(inner)
            problems += wrong
        unchanged = all(new is old for new, old in zip(fitted, value, strict=True))
        return value if unchanged else fitted, self._enough(problems)

    def _listed(self, value: Json, schema: Schema, path: str, _depth: int) -> _Outcome:
        """Check a value against the values there may be."""
        values = [schema["const"]] if "const" in schema else schema.get("enum")
        if not is_array(values):
            return value, ()
        self._spend(len(values) // 64)
        # Nearly all are told apart by the first look, which is the quick one.
        if value in values and any(same(value, each) for each in values):
            return value, ()
        self._spend(len(values) // 4)
        written = value if isinstance(value, str) else _written(value)
        meant = [each for each in values if _written(each) == written]
        if len(meant) == 1:
            return meant[0], ()
        return value, (partial(self._words.unlisted, path, value, values),)

    def _all_of(self, value: Json, schema: Schema, path: str, depth: int) -> _Outcome:
        parts = schema.get("allOf")
        problems: list[_Problem] = []
        for part in parts if is_array(parts) else ():
            value, wrong = self.fit(value, part, path, depth + 1)
            problems += wrong
            if len(problems) >= self._max_problems:
                break
        return value, self._enough(problems)

    def _any_of(self, value: Json, schema: Schema, path: str, depth: int) -> _Outcome:
        """Accept what fits one alternative as it is, or else what can be made to fit one."""
        closest: _Outcome | None = None
        options = alternatives(schema)
        self._spend(len(options) // 256)
        for option in options:
            outcome = self.fit(value, option, path, depth + 1)
            if outcome[0] is value and not outcome[1]:
                return outcome
            if closest is None or len(outcome[1]) < len(closest[1]):
                closest = outcome
        if closest is None or not closest[1]:
            return closest or (value, ())
        if is_object(value) or is_array(value):
            return value, closest[1]
        return value, (partial(self._words.mismatch, path, value, schema),)


class _Words:
    """Says what is wrong, with the effort that is left of the check."""

    def __init__(self, root: Schema, effort: Effort) -> None:
        self._effort = effort
        self._place = Place(root, effort)

    def mismatch(self, path: str, value: Json, schema: Schema) -> str:
        """Say that a value is of another type."""
        wanted = one_line(kind(schema, self._place) or "as its schema says", 200)
        return f"{path or 'arguments'}: must be {wanted}, not {_shown(value)}"

    def unlisted(self, path: str, value: Json, values: Sequence[Json]) -> str:
        """Say that a value is none of those there may be."""
        # Each takes three characters at the least.
        heads = values[: MAX_ALLOWED // 3 + 1]
        told = [compact(each) for each in heads if self._effort.spend()]
        self._effort.spend(sum(map(len, told)) // 64)
        allowed = listed(told, MAX_ALLOWED, len(values) - len(told))
        wanted = f"one of {allowed}" if told else "as its schema says"
        return f"{path}: must be {wanted}, not {_shown(value)}"

    def unknown(self, path: str, name: str, declared: Mapping[str, Json]) -> str:
        """Say that there is no such property, and which there are."""
        near = nearest(name, declared) if self._affords(declared) else []
        names = near or list(declared)
        known = f"; there is {listed(names, 200)}" if names else ""
        return f"{_at(path, name)}: no such parameter{known}"

    def _affords(self, names: Mapping[str, Json]) -> bool:
        return self._effort.spend(len(names) + sum(map(len, names)) // 16)


def _forbidden(path: str) -> str:
    return f"{path or 'arguments'}: not allowed"


def _missing(path: str, name: str) -> str:
    return f"{_at(path, name)}: required, but missing"


def _wrapped_twice(value: Json, reading: Json, inside: Json) -> bool:
    """Tell whether a single value was put into an array inside of an array."""
    return is_array(reading) and bool(reading) and reading[0] is value and is_array(inside[0])


def _at(path: str, name: str) -> str:
    shown = one_line(name, 60)
    return f"{path}.{shown}" if path else shown


def _written(value: Json) -> str:
    """Return a plain value as text."""
    if isinstance(value, str):
        return value
    if type(value) is int:
        return str(value)
    return "" if is_object(value) or is_array(value) else compact(value)


def _shown(value: Json) -> str:
    """Return a value for a message, whatever its size."""
    if is_object(value):
        return "an object"
    if is_array(value):
        return "an array"
    return one_line(compact(value[:100] if isinstance(value, str) else value), 60)
