"""Which tools are always loaded because their server wants it: a few, and the rest is deferred.

A server's wish costs every client tokens in its first list, on every turn; so what it may impose
by itself is little. What a person configures as always-load is not counted.
"""

from collections.abc import Iterable
from dataclasses import replace

from aggregator.basics.json import as_object
from aggregator.catalog import ToolEntry
from aggregator.config import ServerConfig
from aggregator.exposure import ALWAYS_LOAD, approximate_tokens

MAX_GRANTED = 10
"""Tools of one server that are always loaded because it wants that."""
MAX_GRANTED_TOKENS = 2_000
"""Tokens that their definitions may cost together."""
MAX_WEIGHED = 100
"""Wishes whose cost is worked out; whoever has more does not mean them."""


def grant(
    server: ServerConfig, entries: Iterable[ToolEntry]
) -> tuple[list[ToolEntry], tuple[str, ...]]:
    """Grant a server's wishes in the order of its list, as far as they fit; say what is left."""
    shown = list[ToolEntry]()
    wanted = granted = tokens = 0
    for entry in entries:
        is_wanted = server.honour_always_load and not entry.always_load and _is_wanted(entry)
        wanted += is_wanted
        if is_wanted and granted < MAX_GRANTED and wanted <= MAX_WEIGHED:
            cost = approximate_tokens(entry)
            if tokens + cost <= MAX_GRANTED_TOKENS:
                granted, tokens = granted + 1, tokens + cost
                shown.append(replace(entry, always_load=True))
                continue
        shown.append(entry)
    return shown, () if granted == wanted else (_left(wanted, granted),)


def _is_wanted(entry: ToolEntry) -> bool:
    return as_object(entry.tool.get("_meta")).get(ALWAYS_LOAD) is True


def _left(wanted: int, granted: int) -> str:
    return (
        f"It wants {wanted:,} tools in every client's first list; {granted:,} are, and the rest is "
        f"deferred, since its wishes may cost {MAX_GRANTED} tools and {MAX_GRANTED_TOKENS:,} "
        "tokens; name those you need in `alwaysLoad`"
    )
