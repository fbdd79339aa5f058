"""Which tools a model is not shown until it has found them, and whether that is worth it."""

import json
from collections.abc import Container, Iterable
from typing import NamedTuple

from aggregator.host.pool import Tool

PREAMBLE = 500
"""Tokens that a vendor's counter adds for any tools at all, however many."""
CHARACTERS_PER_TOKEN = 2.5
"""Characters of a definition to a token: fewer than in prose, as definitions are dense."""
USUAL_PERCENT = 10
"""The part of the context window that definitions may take under `auto`."""
USUAL_WINDOW = 200_000
"""Tokens of a context window where nothing else is said."""


class Mode(NamedTuple):
    """How much of the context window definitions may take before they are deferred."""

    percent: int

    @property
    def always(self) -> bool:
        """Whether every tool that can be deferred is."""
        return self.percent <= 0

    @property
    def never(self) -> bool:
        """Whether everything is shown."""
        return self.percent >= 100  # noqa: PLR2004 - percent


ALWAYS = Mode(0)


def read_mode(value: bool | str) -> Mode:
    """Read when to defer: `True`, `False`, `auto` or `auto:N` with N percent of the window.

    Raises:
        ValueError: It is none of these.
    """
    text = str(value).strip().lower()
    if text in ("true", "false"):
        return Mode(0 if text == "true" else 100)
    head, colon, percent = text.partition(":")
    if head != "auto" or (colon and not percent.isdecimal()):
        raise ValueError(f"`defer` is True, False, 'auto' or 'auto:N', not {value!r}")
    return Mode(min(int(percent), 100) if colon else USUAL_PERCENT)


def is_deferred(
    tool: Tool, search: str, keep: Container[str] = (), *, is_marked: bool = False
) -> bool:
    """Decide whether a model has to find a tool before it is shown.

    Args:
        tool: One behind the aggregator, or one of the author's.
        search: The name of the search itself, without which nothing could be found.
        keep: The names of tools that are needed on the first turn.
        is_marked: Whether the author asks for it; what servers offer is deferred unasked.
    """
    if tool.always_load or tool.name == search or tool.name in keep:
        return False
    return bool(tool.server) or is_marked


def threshold(window: int, percent: int) -> int:
    """Return how many tokens definitions may take before they are deferred."""
    return window * percent // 100


def approximate_tokens(tools: Iterable[Tool]) -> int:
    """Return about what definitions cost, where nobody can count it."""
    return int(sum(map(_characters, tools)) / CHARACTERS_PER_TOKEN)


def without_preamble(tokens: int) -> int:
    """Return what tools cost of what a vendor's counter says of a request with them."""
    return max(0, tokens - PREAMBLE)


def _characters(tool: Tool) -> int:
    schema = json.dumps(tool.input_schema, ensure_ascii=False, separators=(",", ":"), default=dict)
    return len(tool.name) + len(tool.description) + len(schema)
