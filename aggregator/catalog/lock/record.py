"""What one server offered when it was approved, and what stands for each of its tools."""

import json
from collections.abc import Collection, Mapping
from hashlib import sha256
from typing import Any, NamedTuple

from aggregator.basics.json import JsonObject, is_array, is_object
from aggregator.names import ServerName
from aggregator.secrecy import HIDDEN

MAX_DEPTH = 64
"""Levels of a definition that are looked into: a server's may have no more."""

SHOWN = "shown"
"""The key of what the configuration makes of a tool, beside its definition."""
_PASSING = frozenset({"_meta", "icons", "name", "sha256", SHOWN})
"""What of a definition is not kept: times, addresses that expire, and what is said of it here."""


_NAMES = frozenset({"name", "uri", "uriTemplate"})
"""What something is called by: without it, it could not be called."""
_NAMELESS: frozenset[str] = frozenset()


class Record(NamedTuple):
    """What one server was last known to offer."""

    source: str = ""
    """What stands for how it is reached: another program is another server."""
    version: str = ""
    """The name and version it gave itself."""
    protocol: str = ""
    instructions: str = ""
    tools: Mapping[str, JsonObject] = {}
    """What is kept of each definition, by the name the tool has on its server.

    With it, under a key of its own, what the configuration makes of it.
    """
    altered: tuple[str, ...] = ()
    """Tools that a file names and that are not as they were written: nobody has seen them so."""


Lock = Mapping[ServerName, Record]
"""What is known of each server."""


def kept(definition: JsonObject) -> dict[str, Any]:
    """Return what of a tool's definition says what it does."""
    return {key: value for key, value in definition.items() if key not in _PASSING}


def fingerprint(tool: JsonObject) -> str:
    """Return what stands for all that is kept of a tool, in whatever order it is written.

    Files hold it: another way to compute it is another version of the file.
    """
    return sha256(_PLAIN.encode(kept(tool)).encode()).hexdigest()


_PLAIN = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=dict)


def veiled(tool: JsonObject, secrets: Collection[str]) -> JsonObject:
    """Return a definition without the secrets that a server may have put into it."""
    if not secrets:
        return tool
    text = json.dumps(tool, ensure_ascii=False, default=dict)
    found = [each for each in secrets if json.dumps(each, ensure_ascii=False)[1:-1] in text]
    longest_first = sorted(found, key=len, reverse=True)
    return _veil(tool, longest_first, MAX_DEPTH + 2) if found else tool


def _veil(value: Any, secrets: Collection[str], depth: int, names: frozenset[str] = _NAMES) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, HIDDEN)
        return value
    if depth and is_object(value):
        # Names are what it is called by, and shown to everybody who may call it.
        return {
            key: each
            if key in names and isinstance(each, str)
            else _veil_member(key, each, secrets, depth - 1)
            for key, each in value.items()
        }
    if depth and is_array(value):
        return [_veil(each, secrets, depth - 1, names) for each in value]
    # What is deeper than any definition may be was not admitted, or not by us.
    return None if is_object(value) or is_array(value) else value


def _veil_member(key: str, value: Any, secrets: Collection[str], depth: int) -> Any:  # noqa: ANN401 - JSON
    if key == "required" and is_array(value):
        # Of a schema, the names of parameters.
        return [
            each if isinstance(each, str) else _veil(each, secrets, depth, _NAMELESS)
            for each in value
        ]
    # A prompt has its arguments in a list, each with a name of its own.
    is_named = key == "arguments" and is_array(value)
    return _veil(value, secrets, depth, _NAMES if is_named else _NAMELESS)
