"""JSON values as they came, and what kind of value each is."""

from collections.abc import Mapping
from typing import Any, TypeGuard

JsonObject = Mapping[str, Any]
"""A JSON object as it came over the wire."""


def is_object(value: object) -> TypeGuard[JsonObject]:
    """Whether a JSON value is an object."""
    # Nearly all are plain dictionaries or nothing, and asking for those is far quicker.
    return isinstance(value, dict) or (value is not None and isinstance(value, Mapping))


def as_object(value: object) -> JsonObject:
    """Return a JSON value if it is an object, and an empty one in its place if not."""
    if value is None:
        return {}
    return value if is_object(value) else {}


def is_plain_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether a value is an object as it comes out of a parser, which may be changed."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[Any]]:
    """Whether a JSON value is an array."""
    return isinstance(value, list)


def items(value: object) -> list[Any]:
    """Return a JSON value if it is an array, and an empty one in its place if not."""
    return value if is_array(value) else []


EACH = 64
"""Bytes that any JSON value takes at least, as it is in memory."""


def weight(value: object, most: int) -> int:
    """Return how many bytes a JSON value takes, or something above `most` if that is more.

    It is counted no further than that, however large the value is.
    """
    found, rest = 0, [value]
    while rest and found <= most:
        each = rest.pop()
        found += EACH
        if isinstance(each, str):
            # As many bytes as characters at least: what is too long is not copied to see that.
            is_counted = found + len(each) > most or each.isascii()
            found += len(each) if is_counted else len(each.encode(errors="surrogatepass"))
        elif is_object(each) or is_array(each):
            if found + EACH * len(each) > most:
                return most + 1
            rest += each
            rest += each.values() if is_object(each) else ()
    return found
