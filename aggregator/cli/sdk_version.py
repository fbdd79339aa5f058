"""Python servers that need version 1 of the MCP SDK, known by what they say when they get another.

Most packages ask for any version, and what runs them takes the newest.
"""

import re
from collections.abc import Iterable

from aggregator.config import ServerConfig

_RUNNERS = ("uvx", "uvx.exe")

_NEEDS_FIRST = re.compile(
    r"'(?:Server|ClientSession)' object has no attribute '\w+'"
    r"|cannot import name '\w+' from 'mcp(?:\.[\w.]+)?'"
    r"|No module named 'mcp\.[\w.]+'"
    r"|pin 'mcp<2'"
)


def tell_older_sdk(words: Iterable[str], server: ServerConfig) -> str | None:
    """Say how a server gets the version that it was written for, if it is that which fails it."""
    command = server.command
    if command is None or not any(map(_NEEDS_FIRST.search, words)):
        return None
    if re.split(r"[\\/]", command)[-1] not in _RUNNERS:
        return "it was written for version 1 of the MCP SDK: install `mcp<2` beside it"
    return (
        "it was written for version 1 of the MCP SDK, and runs with another: "
        "put `--with`, `mcp<2` at the beginning of its `args`"
    )
