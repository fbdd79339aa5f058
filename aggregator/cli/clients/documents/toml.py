"""TOML, whose library keeps comments and layout by itself."""

import tomllib
from collections.abc import Sequence
from typing import Any

import tomlkit

from aggregator.cli.clients.documents.trees import Tree


def read(text: str) -> Tree:
    """Return what the text says.

    Raises:
        ValueError: It is not TOML.
    """
    return tomllib.loads(text)


def put(text: str, path: Sequence[str], value: object, _listed: bool = False) -> str:
    """Return the text with a value at a path."""
    document = tomlkit.parse(text)
    holder: Any = document
    for key in path[:-1]:
        if key not in holder:
            holder[key] = tomlkit.table(is_super_table=True)
        holder = holder[key]
    holder[path[-1]] = tomlkit.item(value, _parent=holder)
    return tomlkit.dumps(document)


def drop(text: str, path: Sequence[str]) -> str:
    """Return the text with nothing at a path."""
    document = tomlkit.parse(text)
    holder: Any = document
    for key in path[:-1]:
        holder = holder[key]
    del holder[path[-1]]
    return tomlkit.dumps(document)
