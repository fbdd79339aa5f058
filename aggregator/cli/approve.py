"""`aggregator approve`: take what a server offers now for what it is meant to offer."""

import argparse
import re
from collections.abc import Collection, Mapping
from difflib import SequenceMatcher

from aggregator.basics.json import JsonObject
from aggregator.catalog.lock import Drift, Lock, Record
from aggregator.cli.environment import CommandError, Environment, ExitStatus
from aggregator.cli.locking import (
    Offered,
    ask,
    begin,
    brought,
    compared_of,
    differences,
    place_of,
    read_lock,
    refuse_unpinned,
    rewrite,
    tell_absent,
    tell_altered,
)
from aggregator.cli.opening import owners, place
from aggregator.config import Config
from aggregator.names import Ambiguous, Lookup, ServerName, ToolName
from aggregator.search.repair import nearest

SUGGESTED = 3
"""Names that are offered for one that does not exist."""

ALIKE = 0.8
"""The likeness of two words of which one may be the other, mistyped."""

_WORD = re.compile(r"[^\W_]+")

NOTHING = Record()


def run(options: argparse.Namespace, environment: Environment) -> ExitStatus:
    """Write what is approved into the file, and say what it was."""
    subject: str | None = options.subject
    if subject and options.all:
        raise CommandError(
            f"`--all` approves everything, and not only `{subject}`",
            f"Leave out one of the two: `aggregator approve {subject}{place(options)}`",
            ExitStatus.USAGE,
        )
    if not subject and not options.all:
        raise CommandError(
            "say what to approve: a server, a tool, or `--all`",
            f"`aggregator lock --check{place(options)}` shows what there is",
            ExitStatus.USAGE,
        )
    config = begin(options, environment)
    path = place_of(options, environment)
    lock = read_lock(path)
    if lock is None:
        raise CommandError(
            f"there is no `{path}`, so nothing waits to be approved",
            f"`aggregator lock{place(options)}` writes it",
        )
    tell_altered(lock, path, environment)
    only = () if subject is None else owners(subject, config, place(options))
    if subject is not None and not only:
        _refuse_unknown(subject, lock, config, options)
    refuse_unpinned(only, config)
    offered = ask(config, environment, options.wait, only)
    found = differences(config, lock, offered)
    server, tool = None, None
    if subject is not None:
        is_server = subject in config.servers
        server, tool = (
            (ServerName(subject), None) if is_server else _meant(subject, lock, offered, options)
        )
    chosen = {
        (name, drift.tool): drift
        for name, drifts in found.items()
        for drift in drifts
        if server in (None, name) and tool in (None, drift.tool)
    }

    def approve(known: Lock | None) -> Lock:
        # By now, somebody else may have approved something too.
        return _approved(known or {}, config, offered, server, tool)

    new = found.keys() & offered.records.keys() - lock.keys() if tool is None else ()
    is_written = rewrite(path, approve)
    tell_absent(offered, environment, lock)
    return _tell(chosen, new, offered, environment, is_written=is_written)


def _approved(
    lock: Lock, config: Config, offered: Offered, server: ServerName | None, tool: str | None
) -> Lock:
    """Return what the file is to say once a tool, a server or everything is approved."""
    if server is not None and tool is not None:
        return {**lock, server: _with_tool(lock.get(server), offered, server, tool)}
    now = {name: each for name, each in offered.records.items() if server in (None, name)}
    # What is not configured any more is approved to be gone.
    left = {name: each for name, each in lock.items() if server or name in config.servers}
    return {**left, **now}


def _with_tool(before: Record | None, offered: Offered, server: ServerName, tool: str) -> Record:
    """Return a record with one tool as it is now."""
    after = offered.records[server]
    # What was approved of another program says nothing of this one.
    is_same = before is not None and before.source == after.source
    tools: dict[str, JsonObject] = dict(before.tools) if before is not None and is_same else {}
    tools.pop(tool, None)
    if tool in after.tools:
        tools[tool] = after.tools[tool]
    # What it says of all its tools is approved with all of them.
    said = before.instructions if before is not None and is_same else ""
    return after._replace(tools=tools, instructions=said)


def _refuse_unknown(subject: str, lock: Lock, config: Config, options: argparse.Namespace) -> None:
    """Refuse, before anything starts, what names no server and no tool that is known.

    Raises:
        CommandError: It names none, nor may a server that names its tools otherwise have it.
    """
    meant = subject.casefold()
    names = {each.casefold() for each in (*config.servers, *lock)}
    is_led = any(name in meant for name in names) or "__" in subject
    if is_led or not all(server.prefix for server in config.enabled.values()):
        return
    tools = {
        ToolName(f"{server}__{shown}"): (server, tool)
        for server, record in lock.items()
        for tool in record.tools
        for shown in (
            tool,
            config.servers[server].renamed(tool) if server in config.servers else tool,
        )
    }
    if Lookup.of((name, *each) for name, each in tools.items()).find(subject) is None:
        raise _unknown(subject, tools, options)


def _unknown(
    subject: str, names: Collection[ToolName], options: argparse.Namespace
) -> CommandError:
    lists = (
        f"`aggregator lock --check{place(options)}` lists what can be approved; "
        "a tool is named with its server: `SERVER__TOOL`"
    )
    close = [name for name in nearest(subject, names, SUGGESTED) if _is_meant_by(subject, name)]
    near = f"Did you mean {' or '.join(f'`{name}`' for name in close)}?" if close else lists
    return CommandError(f"there is no server or tool `{subject}`", near, ExitStatus.UNKNOWN)


def _meant(
    subject: str, lock: Lock, offered: Offered, options: argparse.Namespace
) -> tuple[ServerName, str]:
    """Return the tool that a person means, however they write it.

    Raises:
        CommandError: There is none, or its server is not there.
    """
    tools = {
        (server, tool)
        for server in offered.records
        for tool in (*offered.records[server].tools, *lock.get(server, NOTHING).tools)
    }
    named = {ToolName(offered.name(*each)): each for each in sorted(tools)}
    found = Lookup.of((name, *each) for name, each in named.items()).find(subject)
    if isinstance(found, Ambiguous):
        several = ", ".join(f"`{each}`" for each in found.candidates)
        raise CommandError(
            f"several tools are called `{subject}`: {several}", status=ExitStatus.UNKNOWN
        )
    if found is None:
        if offered.absent:
            absent = ", ".join(f"`{name}` ({why})" for name, why in offered.absent.items())
            hint = f"Not ready, so their tools are not known: {absent}"
            raise CommandError(
                f"there is no server or tool `{subject}`", hint, ExitStatus.UNAVAILABLE
            )
        raise _unknown(subject, named, options)
    return named[found]


def _is_meant_by(subject: str, name: str) -> bool:
    """Whether a name is more than spelled somewhat like another: nobody approves by chance."""
    # That it is of the same server says nothing of which tool it is.
    own = subject.rpartition("__")[2]
    words, others = (set(_WORD.findall(each.lower())) for each in (own, name))
    # Of a word that was mistyped, most of its letters are there in their order.
    return bool(words & others) or any(
        SequenceMatcher(None, word, other).ratio() >= ALIKE for word in words for other in others
    )


def _tell(
    chosen: Mapping[tuple[ServerName, str], Drift],
    new: Collection[ServerName],
    offered: Offered,
    environment: Environment,
    *,
    is_written: bool,
) -> ExitStatus:
    told = [
        (offered.name(server, tool), ", ".join(drift.details))
        for (server, tool), drift in chosen.items()
        if server not in new
    ]
    # Of a server that is new as a whole, one line is enough.
    for server in new:
        own = [drift for (owner, _), drift in chosen.items() if owner == server]
        told += [(server, f"new, with {brought(own)}")] if own else []
    for name, what in told:
        environment.say(environment.paper.fill(f"Approved {name}: {what}"))
    if offered.absent:
        what = f"{len(chosen)} approved" if chosen else "nothing new to approve"
        environment.note(f"{compared_of(offered)}, {what}")
    elif not chosen:
        environment.note(
            "Approved what is said beside the tools" if is_written else "It was approved already"
        )
    return ExitStatus.UNAVAILABLE if offered.absent else ExitStatus.FINE
