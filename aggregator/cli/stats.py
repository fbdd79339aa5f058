"""`aggregator stats`: what was called and searched for, and what was saved."""

import argparse
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import anyio

from aggregator.catalog import BY_LENGTH, Scale, ToolEntry
from aggregator.cli.config_file import read_config
from aggregator.cli.environment import CommandError, Environment, ExitStatus
from aggregator.cli.opening import place
from aggregator.cli.pages import as_json, columns, counted
from aggregator.cli.paper import Paper
from aggregator.config import Config
from aggregator.fleet.counting import Counted
from aggregator.fleet.last_known import open_last_known
from aggregator.memory import open_memory, state_path
from aggregator.names import ServerName
from aggregator.records.keeping import stats_path
from aggregator.records.segments import DAYS, Segments
from aggregator.records.stats import file_mark
from aggregator.records.summary import Unused, document, unused
from aggregator.records.tally import Tally, Use, proposed, tally

SHOWN = 10
"""Tools, queries and servers that are shown of many; `--json` has them all."""
PROPOSED = 5
"""Searches that are proposed for `searches.yaml`."""
DAY = 24 * 3600.0


def run(options: argparse.Namespace, environment: Environment) -> ExitStatus:
    """Show what was counted of one configuration."""
    config = read_config(options, environment)
    state = state_path(environment.variables, environment.platform)
    if state is None:
        raise CommandError("there is no place for stats", "Set HOME or XDG_STATE_HOME")
    since: float = time.time() - DAYS * DAY if options.since is None else options.since
    found = tally(Segments(stats_path(state)).read(since), file_mark(config.path), since)
    entries = anyio.run(_known, state, config)
    idle = list(unused(found, entries, config, _scale(config, entries, environment)))
    if options.json:
        unseen = [name for name in config.enabled if name not in entries]
        environment.say(as_json(document(found, idle, unseen, since)))
    else:
        _remark(config, environment)
        environment.say(_page(found, idle, options, environment.paper))
    return ExitStatus.FINE


def _remark(config: Config, environment: Environment) -> None:
    if not (config.settings.stats and config.settings.state):
        off = "stats" if config.settings.state else "state"
        environment.warn(f"`{off}: false` is configured, so nothing more is counted")


async def _known(state: Path, config: Config) -> dict[ServerName, tuple[ToolEntry, ...]]:
    """Return the tools of each server of which it is known what it offers; none is started."""
    last_known = open_last_known(state, config)
    listings = {name: await last_known.recall_whole(each) for name, each in config.enabled.items()}
    return {
        name: listing.ready.entries for name, listing in listings.items() if listing is not None
    }


def _scale(
    config: Config, entries: Mapping[ServerName, Sequence[ToolEntry]], environment: Environment
) -> Scale:
    """Return what was counted of what definitions cost; nothing is counted for this."""
    source = config.settings.tokens
    if source is None:
        return BY_LENGTH
    memory = open_memory(
        environment.variables, enabled=config.settings.state, platform=environment.platform
    )
    return Counted(source, memory).scale(entries)


def _page(found: Tally, idle: Sequence[Unused], options: argparse.Namespace, paper: Paper) -> str:
    if found.first is None:
        return paper.fill(
            "Nothing has been counted yet: counting begins when a client uses the aggregator.",
            hanging="",
        )
    parts = [
        "\n".join(paper.fill(line) for line in _sums(found)),
        _table("SERVER", found.servers, paper),
        _table("TOOL", found.tools, paper),
        "\n".join(paper.fill(line) for line in _nothing(found, options)),
        _proposed(found),
        _dispensable(idle, paper, place(options)),
        "\n".join(paper.fill(line) for line in _gaps(found)),
    ]
    return "\n\n".join(part for part in parts if part)


def _sums(found: Tally) -> Iterator[str]:
    begun = time.strftime("%Y-%m-%d", time.localtime(found.first))
    tools, servers = counted(len(found.tools), "tool"), counted(len(found.servers), "server")
    unknown = f", {found.unknown:,} to unknown tools" if found.unknown else ""
    yield f"Since {begun}: {counted(found.calls, 'call')} of {tools} on {servers}{unknown}, " + (
        counted(found.errors, "error") if found.errors else "no errors"
    )
    searches = found.searches
    if searches.queries:
        first = sum(each.rank == 1 for each in searches.followed)
        nothing = searches.queries - searches.hits
        yield (
            f"{searches.queries:,} search{'' if searches.queries == 1 else 'es'}: {nothing:,} "
            f"found nothing, {len(searches.followed):,} led to a call, "
            f"{first:,} of them of the first tool found"
        )
    if found.lists.weighed:
        yield _saved(found)


def _saved(found: Tally) -> str:
    saved = found.lists.tokens
    relation = "fewer" if saved >= 0 else "more"
    cost = rounded(found.searches.tokens)
    partial = found.lists.partial
    part = f" ({partial:,} of them while servers were missing)" if partial else ""
    return (
        f"{counted(found.lists.weighed, 'list')} of tools sent{part}: about "
        f"{rounded(abs(saved))} tokens {relation} than with all known tools in each; "
        f"searches cost about {cost} tokens"
    )


def _table(title: str, uses: Sequence[Use], paper: Paper) -> str:
    if not uses:
        return ""
    head = ("CALLS", "ERRORS", "P50", "P95", title)
    rows = [
        (f"{use.calls:,}", f"{use.errors:,}", _time(use.p50), _time(use.p95), use.name)
        for use in uses[:SHOWN]
    ]
    return columns(head, rows, paper, names_last=True) + _rest(len(uses))


def _nothing(found: Tally, options: argparse.Namespace) -> Iterator[str]:
    nothing = found.searches.nothing
    if nothing:
        told = ", ".join(f'"{query}" ({times:,})' for query, times in nothing[:SHOWN])
        more = f" and {len(nothing) - SHOWN:,} more" if nothing[SHOWN:] else ""
        yield f"Found nothing: {told}{more}"
        yield f"`aggregator search --explain WORDS{place(options)}` shows what is closest"


def _proposed(found: Tally) -> str:
    """Return lines for `searches.yaml`, of what was searched and then called."""
    proposals = proposed(found)[:PROPOSED]
    if not proposals:
        return ""
    lines = [
        f"- {{query: {json.dumps(each.query)}, expect: {each.tool}, within: {each.rank}}}"
        for each in proposals
    ]
    return "\n".join(["For `searches.yaml` (see `aggregator check --searches`):", *lines])


def _dispensable(idle: Sequence[Unused], paper: Paper, there: str) -> str:
    whole = [each for each in idle if each.is_whole]
    single = sum(len(each.tools) for each in idle if not each.is_whole)
    parts: list[str] = []
    if whole:
        parts.append(
            paper.fill(
                "Never used: their tools, the tokens of their definitions, and the tokens they "
                "add to each list"
            )
        )
        head = ("TOOLS", "TOKENS", "OF EACH LIST", "SERVER")
        rows = [
            (f"{len(each.tools):,}", f"{each.tokens:,}", f"{each.listed:,}", each.server)
            for each in whole[:SHOWN]
        ]
        parts[-1] += "\n" + columns(head, rows, paper, names_last=True) + _rest(len(whole))
    if single:
        never = f"{counted(single, 'tool')} of servers that are used never had a call"
        names = f"`aggregator stats --json{there}` names what was not called"
        parts.append(paper.fill(f"{never}: {names}"))
    return "\n\n".join(parts)


def _gaps(found: Tally) -> Iterator[str]:
    if found.lost:
        yield f"{counted(found.lost, 'event')} came too fast to be counted"
    if found.damaged:
        yield f"{counted(found.damaged, 'line')} could not be read"


def _rest(number: int) -> str:
    return f"\nand {number - SHOWN:,} more" if number > SHOWN else ""


def _time(milliseconds: float | None) -> str:
    if milliseconds is None:
        return "-"
    if milliseconds < 1000:  # noqa: PLR2004 - a second
        return f"{milliseconds:.0f} ms"
    return f"{milliseconds / 1000:.1f} s"


def rounded(number: int) -> str:
    """Return a number with the precision that one of tokens deserves."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return str(number)
