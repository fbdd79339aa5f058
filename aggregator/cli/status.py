"""`aggregator status`: which fleets run in the background, for whom, and since when."""

import argparse
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from aggregator import __version__
from aggregator.cli.environment import Environment, ExitStatus
from aggregator.cli.hubs import Running, running
from aggregator.cli.pages import as_json, counted

MEBIBYTE = 1 << 20
APART = 6
"""Reasons that are named where there may be many."""


def run(options: argparse.Namespace, environment: Environment) -> ExitStatus:
    """Say what runs; that nothing does is no error."""
    found = list(running(environment))
    if options.json:
        hubs = [each.report or {"process": each.process, "fleets": None} for each in found]
        environment.say(as_json({"hubs": hubs}))
    elif not found:
        environment.tell(
            "Nothing is shared now: no background process is running; "
            "the first `aggregator serve --shared` starts one"
        )
    for each in () if options.json else found:
        environment.tell("\n".join(_told(each)))
    return ExitStatus.FINE


def _told(hub: Running) -> Iterator[str]:
    if hub.report is None:
        yield f"The hub in process {hub.process} does not answer; `aggregator stop` ends it"
        return
    said = hub.report
    other = "" if said["version"] == __version__ else " (not the version of this command)"
    memory = f", {said['memory'] / MEBIBYTE:.0f} MiB with its servers" if said["memory"] else ""
    yield (
        f"Hub {said['version']}{other}, process {said['process']}, "
        f"since {_time(said['since'])}{memory}"
    )
    for fleet in said["fleets"]:
        yield from (f"  {line}" for line in _fleet(fleet))
    if not said["fleets"]:
        yield "  no servers"
    yield f"  log: {said['log']}"


def _fleet(fleet: dict[str, Any]) -> Iterator[str]:
    yield f"{fleet['config']}, since {_time(fleet['since'])}"
    yield from (f"  {line}" for line in _servers(fleet["servers"]))
    if apart := fleet["apart"]:
        more = f" and {len(apart) - APART} more" if apart[APART:] else ""
        yield f"  not shared with the fleet above: {', '.join(apart[:APART])}{more} differ"
    for client in fleet["clients"]:
        name = client["name"] or "a client"
        yield (
            f"  {name} (process {client['process']}) since {_time(client['since'])}, "
            f"in {client['directory']}"
        )
    if not fleet["clients"]:
        yield f"  {counted(0, 'client')}"


def _servers(states: dict[str, str]) -> Iterator[str]:
    """Name the servers in each state."""
    named = defaultdict[str, list[str]](list)
    for name, state in states.items():
        named[state].append(name)
    for state, names in named.items():
        yield f"{counted(len(names), 'server')} {state}: {', '.join(names)}"
    if not states:
        yield "servers are starting"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().isoformat(" ", "seconds")[:19]
