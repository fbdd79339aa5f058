"""What a server lists beside what was approved of it: what differs, and what that leaves."""

import shlex
from collections.abc import Generator, Iterable, Sequence
from dataclasses import replace
from operator import is_
from pathlib import Path

from aggregator.basics.effort import Turn
from aggregator.basics.json import JsonObject
from aggregator.catalog import Idle, Pending, Ready, ServerState, ToolEntry
from aggregator.catalog.lock import (
    SHOWN,
    Drift,
    Kind,
    LockedServer,
    Record,
    drift_of,
    edited,
    kept,
    ordered,
    removed,
    retold,
    veiled,
)
from aggregator.config import ServerConfig
from aggregator.secrecy import forms

UNKNOWN = "is new, as its server is not in the lock yet"
DIFFERING = 200
"""Steps that it takes to say how a tool differs."""
RECORDING = 16
"""Steps that it takes to write down a tool, beside looking at all it says."""
MAX_TOLD = 3
"""Tools of which it is said in one line how they differ."""

ELSEWHERE = "is not the one that was approved: its server is another program or address"

UNSEEN = "has instructions that nobody has approved"
INSTRUCTIONS = ""
"""What stands for a server's instructions where tools have their names."""

_HARMLESS = (Kind.REMOVED, Kind.NOTATION)
"""What is no reason to withhold a tool."""


def compare(
    server: ServerConfig, locked: LockedServer | None, known: Ready
) -> Generator[None, None, tuple[Drift, ...]]:
    """Return what differs from what was approved, the gravest first; yield where a turn is over."""
    entries = known.whole
    if locked is None or locked.source != server.source:
        why = UNKNOWN if locked is None else ELSEWHERE
        unseen = [Drift(each.own_name, Kind.NEW, (why,)) for each in entries]
        unsaid = retold("", known.instructions, UNSEEN)
        return tuple(ordered([*unseen, unsaid] if unsaid else unseen))
    turn, found, hidden = Turn(), list[Drift](), secrets(server)
    names = set[str]()
    for entry in entries:
        drift = _drift(hidden, locked, entry)
        names.add(entry.own_name)
        if drift is not None and drift.kind is not Kind.NOTATION:
            found.append(drift)
        if turn.is_over(8 if drift is None else DIFFERING, cleaned=entry.characters):
            yield
    # What the configuration has forbidden since is not gone, nor what has not been read yet, nor
    # what is only shown to clients that can be asked more: it was approved as all of them see it.
    is_whole = not known.is_partial and "tools" not in known.offers.unlisted
    approved = locked.spans if is_whole else ()
    gone = (each for each in approved if each not in names and server.allows(each))
    said = retold(locked.facts.get("instructions", ""), _said(known, hidden)["instructions"])
    return tuple(ordered([*found, *map(removed, gone), *([said] if said else ())]))


def _drift(hidden: Sequence[str], locked: LockedServer, entry: ToolEntry) -> Drift | None:
    name = entry.own_name
    claim, after = locked.claim(name), kept(entry.tool)
    # Nearly all are as they were, and have no secret in them.
    if claim == after:
        return None
    before, now = locked.tool(name), veiled(after, hidden)
    if claim is not None and before is None and claim != now:
        return edited(name)
    return drift_of(name, claim, now)


def sifted(server: ServerConfig, state: Ready, drift: tuple[Drift, ...], shown: Ready) -> Ready:
    """Return what a server offers when so much differs; what is as it is shown stays the same."""
    hidden = _hidden(server, drift)
    whole, is_muted = state.whole, INSTRUCTIONS in hidden
    if hidden <= {INSTRUCTIONS}:
        return replace(state, drift=drift, entries=whole, listed=(), is_muted=is_muted)
    entries = tuple(each for each in whole if each.own_name not in hidden)
    if whole is shown.whole and len(entries) == len(shown.entries):
        entries = shown.entries if all(map(is_, entries, shown.entries)) else entries
    return replace(state, drift=drift, entries=entries, listed=whole, is_muted=is_muted)


def _hidden(server: ServerConfig, drift: Iterable[Drift]) -> frozenset[str]:
    if server.drift != "block":
        return frozenset()
    return frozenset(each.tool for each in drift if each.kind not in _HARMLESS)


def with_known(state: ServerState, known: Ready) -> ServerState:
    """Return a state in which something else is known of what its server offers."""
    match state:
        case Ready():
            return known
        case Pending() | Idle():
            return replace(state, known=known)
        case _:
            return state


def adapted(state: ServerState, shown: ServerState) -> ServerState:
    """Return a newer state of a server that lists the same, with what is known of that."""
    before, after = shown.known, state.known
    if before is None or after is None or before.whole is not after.whole:
        return state
    same = replace(
        after,
        entries=before.entries,
        listed=before.listed,
        drift=before.drift,
        is_muted=before.is_muted,
        is_new=before.is_new,
    )
    return with_known(state, same)


def recording(server: ServerConfig, state: Ready) -> Generator[None, None, Record]:
    """Return what is written down of a server, without what it was given in confidence.

    Yield where a turn is over.
    """
    hidden, turn, tools = secrets(server), Turn(), dict[str, JsonObject]()
    for entry in state.whole:
        tools[entry.own_name] = veiled(_recorded(entry), hidden)
        if turn.is_over(RECORDING + len(hidden), cleaned=entry.characters):
            yield
    return Record(server.source, tools=tools, **_said(state, hidden))


def _said(state: Ready, hidden: Sequence[str]) -> JsonObject:
    """Return what is written down of a server beside its tools."""
    said = {
        "version": state.version,
        "protocol": state.protocol_version,
        "instructions": state.instructions,
    }
    return veiled(said, hidden)


def _recorded(entry: ToolEntry) -> JsonObject:
    """Return what is kept of a tool, and what the configuration makes of it."""
    if not entry.put_right:
        return kept(entry.tool)
    return {**kept(entry.tool), SHOWN: {**entry.put_right, "name": entry.name}}


def secrets(server: ServerConfig) -> list[str]:
    """Return what a server is given that is for nobody to see, in every form it is written in."""
    return [form for _, value in server.confidential() for form in forms(value)]


def tell(
    server: ServerConfig, drift: Sequence[Drift], config: Path | None, *, is_new: bool = False
) -> str:
    """Say in a line what of a server is not as it was approved, and what can be done about it."""
    shown = "; ".join(map(str, drift[:MAX_TOLD]))
    rest = f"; and {len(drift) - MAX_TOLD} more" if drift[MAX_TOLD:] else ""
    withheld = len(_hidden(server, drift))
    what = f", {withheld} withheld" if withheld else ""
    tools = sum(bool(each.tool) for each in drift)
    counted = [f"{tools} tool{'' if tools == 1 else 's'}"] if tools else []
    own = "instructions" if is_new else "its instructions"
    counted += [own] if tools < len(drift) else []
    there = command("lock --diff", server.name, config)
    approving = f"`{command('approve', server.name, config)}` approves"
    if is_new:
        return (
            f"not in the lock yet, with {' and '.join(counted)} to approve{what}. "
            f"`{there}` shows what it offers, {approving} that"
        )
    verb = "differs" if tools == len(drift) == 1 else "differ"
    return (
        f"{' and '.join(counted)} {verb} from what was approved{what}: {shown}{rest}. "
        f"`{there}` shows how, {approving} it"
    )


def command(words: str, name: str, config: Path | None) -> str:
    """Return a command about a server or a tool, as it is typed anywhere on this machine."""
    place = "" if config is None else f" --config {shlex.quote(str(config))}"
    return f"aggregator {words} {shlex.quote(name)}{place}"
