"""Nested values, and what becomes of them when one is put in or taken out."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from aggregator.basics.json import is_array, is_plain_object

Tree = dict[str, Any]
"""What a file says; in a list of mappings, each is found by the name it gives itself."""


def placed(tree: Tree, path: Sequence[str], value: object, *, listed: bool) -> Tree:
    """Return the tree with a value at a path.

    Raises:
        LookupError: Something else is in the way.
    """
    changed = deepcopy(tree)
    holder: Any = changed
    for at, key in enumerate(path[:-1]):
        if _entries(holder).get(key) is None:
            holder[key] = [] if listed and at == len(path) - 2 else {}
        holder = holder[key]
    if is_array(holder):
        holder[:] = [*others(holder, path[-1]), value]
    else:
        _entries(holder)[path[-1]] = value
    return changed


def dropped(tree: Tree, path: Sequence[str]) -> Tree:
    """Return the tree with nothing at a path.

    Raises:
        LookupError: Nothing is there.
    """
    changed = deepcopy(tree)
    holder: Any = changed
    for key in path[:-1]:
        holder = _entries(holder)[key]
    if is_array(holder):
        holder[:] = others(holder, path[-1])
    else:
        del _entries(holder)[path[-1]]
    return changed


def _entries(value: Any) -> Tree:  # noqa: ANN401 - whatever a file has
    if not is_plain_object(value):
        raise LookupError
    return value


def pruned(value: Any) -> Any:  # noqa: ANN401 - whatever a file has
    """Return a value without what holds nothing: in some formats that cannot be written."""
    if not is_plain_object(value):
        return value
    kept = {key: pruned(each) for key, each in value.items()}
    return {key: each for key, each in kept.items() if each not in ({}, [], None)}


def found(tree: Tree, path: Sequence[str]) -> Any:  # noqa: ANN401 - whatever a file has
    """Return what stands at a path, or nothing."""
    here: Any = tree
    for key in path:
        if is_array(here):
            here = next((each for each in here if is_named(each, key)), None)
        else:
            here = here.get(key) if is_plain_object(here) else None
    return here


def others(items: list[Any], name: str) -> list[Any]:
    """Return the items that do not have a name."""
    return [each for each in items if not is_named(each, name)]


def is_named(value: object, name: str) -> bool:
    """Return whether a value is a mapping that says it has this name."""
    return is_plain_object(value) and value.get("name") == name
