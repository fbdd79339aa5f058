"""Variables that a server complains about, and that it could have been given."""

import re
from collections.abc import Iterable, Mapping

from aggregator.config import ServerConfig

SHOWN = 5
"""Variables that are named of those a server complains about."""

_NAME = re.compile(r"[A-Z][A-Z0-9]*_[A-Z0-9_]+|[A-Z][A-Z0-9]{3,}|[a-z]+(?:_[a-zA-Z0-9]+)+")
"""What is written like a variable, and not like a word."""


def tell_withheld(
    words: Iterable[str], server: ServerConfig, variables: Mapping[str, str]
) -> str | None:
    """Say which variables a server's own words name that are set here, but not for it."""
    given = server.env.keys() | server.inherited.keys()
    named = dict.fromkeys(name for line in words for name in _NAME.findall(line))
    found = [name for name in named if name in variables and name not in given][:SHOWN]
    if not found or server.command is None:
        return None
    names = ", ".join(f"`{name}`" for name in found)
    what = "is set here, but is" if len(found) == 1 else "are set here, but are"
    return f"{names} {what} not passed on to it; write `inheritEnv: [{', '.join(found)}]` under it"
