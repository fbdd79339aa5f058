"""A small language to reach into a JSON document: `orders[0].lines[*].price`."""

import re
from collections.abc import Iterator

from pydantic import JsonValue

STEP = re.compile(
    r"""\.?(?P<key>[^.\[\]"]+)          # name  or  .name
      | \[\s*(?P<index>-?\d+)\s*\]      # [0]  or  [-1]
      | \[\s*(?P<every>\*)\s*\]         # [*]
      | \[\s*"(?P<quoted>[^"]*)"\s*\]   # ["any key"]
    """,
    re.VERBOSE,
)

EVERY = None
Step = str | int | None
"""A key, a position, or `EVERY`."""


class JsonPathError(Exception):
    """A path that cannot be followed; the message says where it ends."""


def find(document: JsonValue, path: str) -> list[JsonValue]:
    """Return the values a path leads to.

    Raises:
        JsonPathError: The path is malformed, or leads nowhere.
    """
    values, walked = [document], "The document"
    for written, step in _steps(path.removeprefix("$")):
        values = [found for value in values for found in _follow(value, step, walked)]
        walked = f"`{written}`"
    return values


def _steps(path: str) -> Iterator[tuple[str, Step]]:
    """Yield each step, with the path as written up to and including it."""
    position = 0
    while position < len(path):
        match = STEP.match(path, position)
        if match is None:
            raise JsonPathError(f"The path is not understood from `{path[position:]}` on")
        position = match.end()
        yield path[:position], _step(match)


def _step(match: re.Match[str]) -> Step:
    if match["every"]:
        return EVERY
    if match["index"]:
        return int(match["index"])
    return match["key"] if match["quoted"] is None else match["quoted"]


def _follow(value: JsonValue, step: Step, walked: str) -> list[JsonValue]:
    if isinstance(value, dict):
        if step is EVERY:
            return list(value.values())
        if isinstance(step, str) and step in value:
            return [value[step]]
        raise JsonPathError(f"{walked} has no `{step}`; its keys are {_some(list(value))}")
    if isinstance(value, list):
        if step is EVERY:
            return value
        if isinstance(step, int) and -len(value) <= step < len(value):
            return [value[step]]
        raise JsonPathError(f"{walked} has no `{step}`; it is a list of {len(value)}")
    raise JsonPathError(f"{walked} has nothing inside; it is `{value}`")


def _some(keys: list[str]) -> str:
    shown = ", ".join(f"`{key}`" for key in keys[:10])
    return f"{shown}, …" if len(keys) > len(keys[:10]) else shown or "none"
