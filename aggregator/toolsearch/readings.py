"""A value of one JSON type read as another, where there is only one way to read it."""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from aggregator.basics.json import is_array, is_object
from aggregator.toolsearch.arguments import unpacked
from aggregator.toolsearch.schema import Json
from aggregator.toolsearch.wording import compact

_WHOLE = re.compile(r"[+-]?[0-9]{1,300}")
_DECIMAL = re.compile(r"[+-]?[0-9]{1,300}(\.[0-9]{1,300})?([eE][+-]?[0-9]{1,3})?")


def is_of(value: Json, name: str) -> bool:
    """Tell whether a value is of a JSON type; of a type that does not exist everything is."""
    return _TESTS[name](value) if name in _TESTS else True


def readings(value: Json, names: Sequence[str]) -> Iterator[Json]:
    """Yield what a value can mean as one of some types."""
    for name in names:
        if isinstance(value, str):
            yield from _read(value.strip(), name)
        elif name == "string" and (isinstance(value, bool) or _is_number(value)):
            yield compact(value)
        if name == "array" and _stands_alone(value):
            yield [value]


def same(one: Json, other: Json) -> bool:
    """Tell whether two JSON values are equal; true and 1 are not."""
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: Json) -> bool:
    return _is_number(value) and (isinstance(value, int) or value.is_integer())


_TESTS: Mapping[str, Callable[[Json], bool]] = {
    "object": is_object,
    "array": is_array,
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": _is_number,
    "integer": _is_whole,
}


def _read(text: str, name: str) -> Iterator[Json]:
    match name:
        case "integer" | "number":
            yield from _numbers(text, whole=name == "integer")
        case "boolean" if text.lower() in ("true", "false"):
            yield text.lower() == "true"
        case "null" if text.lower() == "null":
            yield None
        case "object" if is_object(held := unpacked(text)):
            yield held
        case "array" if is_array(held := unpacked(text)):
            yield held
        case _:
            pass


def _numbers(text: str, *, whole: bool) -> list[float]:
    if _WHOLE.fullmatch(text):
        return [int(text)]
    number = float(text) if _DECIMAL.fullmatch(text) else math.inf
    fits = math.isfinite(number) and (number.is_integer() or not whole)
    return [int(number) if whole else number] if fits else []


def _stands_alone(value: Json) -> bool:
    """Tell whether a value can only be the single item of an array that was meant."""
    if isinstance(value, str):
        return bool(value) and "," not in value and value.lstrip()[:1] not in ("[", "{")
    return value is not None and not is_array(value)
