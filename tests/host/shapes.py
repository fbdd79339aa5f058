"""Whether values are what a vendor's published types say: an unknown key is an error."""

import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import typing_extensions

from aggregator.basics.json import is_array, is_object


def problems(value: Any, kind: Any, path: str = "") -> list[str]:
    """Return what is wrong with a value, nothing if it is of a type."""
    return list(_problems(value, kind, path))


def _problems(value: Any, kind: Any, path: str) -> Iterator[str]:
    origin = get_origin(kind)
    if kind in (Any, object):
        return
    if origin in (typing_extensions.Required, typing_extensions.NotRequired, typing.Annotated):
        yield from _problems(value, get_args(kind)[0], path)
    elif origin in (Union, types.UnionType):
        yield from _of_union(value, get_args(kind), path)
    elif typing_extensions.is_typeddict(kind):
        yield from _of_object(value, kind, path)
    elif origin is not None and origin not in (Literal, typing_extensions.Literal):
        yield from _of_container(value, kind, path)
    else:
        yield from _of_plain(value, kind, path)


def _of_container(value: Any, kind: Any, path: str) -> Iterator[str]:
    if not issubclass(get_origin(kind), Mapping):
        yield from _of_array(value, get_args(kind)[0], path)
    elif not isinstance(value, Mapping):
        yield f"{path}: {value!r} is no object"


def _of_union(value: Any, kinds: tuple[Any, ...], path: str) -> Iterator[str]:
    tried = [problems(value, each, path) for each in kinds]
    if all(tried):
        # The alternative that is meant is the one whose `type` or `role` fits.
        meant = [each for each in tried if not any(f"{path}.type:" in line for line in each)]
        yield from min(meant or tried, key=len)


def _of_object(value: Any, kind: Any, path: str) -> Iterator[str]:
    if not is_object(value):
        yield f"{path}: {value!r} is no object"
        return
    hints = get_type_hints(kind, include_extras=True)
    allows_more = getattr(kind, "__pydantic_config__", {}).get("extra") == "allow"
    for key, inside in value.items():
        if key in hints:
            yield from _problems(inside, hints[key], f"{path}.{key}")
        elif not allows_more:
            yield f"{path}.{key}: unknown to {kind.__name__}"
    for key in kind.__required_keys__ - value.keys():
        yield f"{path}.{key}: missing"


def _of_array(value: Any, kind: Any, path: str) -> Iterator[str]:
    if not is_array(value):
        yield f"{path}: {value!r} is no array"
        return
    for at, each in enumerate(value):
        yield from _problems(each, kind, f"{path}[{at}]")


def _of_plain(value: Any, kind: Any, path: str) -> Iterator[str]:
    if get_origin(kind) is not None:
        if value not in get_args(kind):
            yield f"{path}: {value!r} is none of {get_args(kind)}"
        return
    allowed = (int, float) if kind is float else (kind or type(None),)
    if not isinstance(value, allowed) or (isinstance(value, bool) and kind is not bool):
        yield f"{path}: {value!r} is no {kind}"
