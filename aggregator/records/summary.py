"""What was counted, as one document for programs: uses, searches, and what nobody uses."""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from aggregator.catalog import BY_LENGTH, Scale, ToolEntry
from aggregator.config import Config
from aggregator.names import ServerName
from aggregator.records.tally import Tally, Use, proposed


class Unused(NamedTuple):
    """A server, and what of it nobody has called."""

    server: ServerName
    tools: tuple[str, ...]
    tokens: int
    """What their definitions are worth."""
    is_whole: bool
    """Whether it is all that the server has."""
    listed: int
    """Tokens by which each list would be shorter without the server."""


def unused(
    found: Tally,
    entries: Mapping[ServerName, Sequence[ToolEntry]],
    config: Config,
    scale: Scale = BY_LENGTH,
) -> Iterator[Unused]:
    """Yield what was never called of each server, first what costs the most."""
    used = {use.name for use in found.tools}
    idle = [_idle(name, own, used, config, scale) for name, own in entries.items()]
    left = [each for each in idle if each.tools]
    yield from sorted(left, key=lambda each: (not each.is_whole, -each.listed, -each.tokens))


def document(
    found: Tally, idle: Sequence[Unused], unseen: Sequence[str], since: float
) -> dict[str, Any]:
    """Return everything as JSON has it; `unseen` are servers whose tools are not known."""
    searches = found.searches
    return {
        "since": _moment(since),
        "first": None if found.first is None else _moment(found.first),
        "calls": found.calls,
        "errors": found.errors,
        "unknownTools": found.unknown,
        "tools": [_use(use) for use in found.tools],
        "servers": [_use(use) for use in found.servers],
        "searches": {
            "queries": searches.queries,
            "hits": searches.hits,
            "followed": [each._asdict() for each in searches.followed],
            "foundNothing": [{"query": query, "times": n} for query, n in searches.nothing],
            "tokens": searches.tokens,
        },
        "lists": {
            "served": found.lists.served,
            "weighed": found.lists.weighed,
            "partial": found.lists.partial,
            "tokensSaved": found.lists.tokens,
        },
        "proposedSearches": [
            {"query": each.query, "expect": each.tool, "within": each.rank}
            for each in proposed(found)
        ],
        "unused": [
            {
                "server": each.server,
                "tools": list(each.tools),
                "tokens": each.tokens,
                "whole": each.is_whole,
                "savedByDropping": each.listed if each.is_whole else 0,
            }
            for each in idle
        ],
        "unseenServers": list(unseen),
        "days": [
            {
                "date": each.date,
                "calls": each.calls,
                "errors": each.errors,
                "queries": each.queries,
                "tokensSaved": each.saved,
                "searchTokens": each.cost,
            }
            for each in found.days
        ],
        "lost": found.lost,
        "damaged": found.damaged,
    }


def _idle(
    name: ServerName, entries: Sequence[ToolEntry], used: set[str], config: Config, scale: Scale
) -> Unused:
    idle = [entry for entry in entries if entry.name not in used]
    is_full = config.settings.tool_search.never
    listed = sum(scale.tokens(each) for each in entries if each.always_load or is_full)
    # Its line in what the search says of itself.
    told = scale.tokens_of_text(len(name) + len(config.servers[name].description))
    return Unused(
        name,
        tuple(entry.name for entry in idle),
        sum(map(scale.tokens, idle)),
        len(idle) == len(entries),
        listed + (0 if is_full else told),
    )


def _use(use: Use) -> dict[str, Any]:
    milliseconds = {"p50": use.p50, "p95": use.p95}
    counts = {"calls": use.calls, "errors": use.errors, "milliseconds": milliseconds}
    return {"name": use.name, "server": use.server, **counts}


def _moment(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
