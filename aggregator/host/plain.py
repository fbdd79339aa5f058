"""Messages as plain JSON, be they values of a vendor's package or not."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from aggregator.basics.json import is_array, is_object


@runtime_checkable
class Convertible(Protocol):
    """A value of a vendor's package."""

    def to_dict(self) -> dict[str, object]:
        """Return it as its API sends it."""
        ...


def plain(value: object) -> dict[str, Any]:
    """Return a message, or the response of an API, as a dictionary.

    Raises:
        TypeError: It is no such thing.
    """
    if is_object(value):
        whole = dict(value)
    elif isinstance(value, Convertible):
        whole = value.to_dict()
    else:
        raise TypeError(f"a message is a dictionary or has `to_dict()`, not {type(value).__name__}")
    for key in ("content", "output"):
        if is_array(whole.get(key)):
            whole[key] = [plain(each) for each in items_of(whole[key])]
    return whole


def items_of(value: object) -> Sequence[Any]:
    """Return what is in an array."""
    return value if is_array(value) else ()
