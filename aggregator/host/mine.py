"""A search over the author's own deferred tools, which no server knows.

The scores are those that people know from clients that search by themselves.
"""

import re
from collections.abc import Mapping, Sequence

from aggregator.host.pool import Tool

MAX_QUERY = 1_000
"""Characters of a query that are read."""
PART, INSIDE, ANYWHERE, SAID = 10, 5, 3, 2
"""What a word is worth as a part of a name, inside of one, anywhere in it, in the description."""

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_WORD = re.compile(r"\w+")


def search_mine(query: str, tools: Mapping[str, Tool], limit: int) -> tuple[Tool, ...]:
    """Return the tools that a query names, or the best for its words."""
    text = query[:MAX_QUERY].strip()
    if text.lower().startswith("select:"):
        asked = [each.strip().strip("`'\"") for each in text[7:].split(",")]
        return tuple(tools[name] for name in dict.fromkeys(asked) if name in tools)
    if exact := [tool for name, tool in tools.items() if name.lower() == text.lower()]:
        return tuple(exact)
    words = text.lower().split()
    required = [word[1:] for word in words if len(word) > 1 and word[0] == "+"]
    terms = [bare for word in words if (bare := word.lstrip("+"))]
    scores = [
        (_score(tool, terms), tool)
        for tool in tools.values()
        if all(_score(tool, [word]) for word in required)
    ]
    ranked = sorted((each for each in scores if each[0]), key=lambda each: -each[0])
    return tuple(tool for _, tool in ranked[:limit])


def _score(tool: Tool, terms: Sequence[str]) -> int:
    parts = [part for part in re.split(r"[^a-z0-9]+", _HUMP.sub("_", tool.name).lower()) if part]
    said = frozenset(_WORD.findall(tool.description.lower()))
    total = 0
    for term in terms:
        if term in parts:
            total += PART
        elif any(term in part for part in parts):
            total += INSIDE
        elif not total and term in tool.name.lower():
            total += ANYWHERE
        total += SAID * (term in said)
    return total
