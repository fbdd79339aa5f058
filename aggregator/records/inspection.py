"""The catalog as documents: what the `catalog://` resources say."""

from collections.abc import Mapping, Sequence
from typing import Any

from aggregator.basics.glyphs import on_its_lines, on_one_line
from aggregator.catalog import (
    BY_LENGTH,
    Catalog,
    Failed,
    Idle,
    Pending,
    Ready,
    Scale,
    ServerState,
    ToolEntry,
    explain_unreachable,
)
from aggregator.catalog.lock import Drift
from aggregator.names import ServerName
from aggregator.records.events import state_word

SERVERS_URI = "catalog://servers"
TOOLS_URI = "catalog://tools"
LOCK_URI = "catalog://lock"
POOL_URI = "catalog://pool"
"""For programs that make the requests to a model themselves; no list shows it."""


def servers_document(
    catalog: Catalog,
    descriptions: Mapping[ServerName, str],
    now: float,
    problem: str | None = None,
    *,
    noise: Mapping[ServerName, int] | None = None,
    unpinned: str | None = None,
    unaudited: str | None = None,
    uncounted: str | None = None,
    processes: Mapping[ServerName, int | None] | None = None,
) -> dict[str, Any]:
    """Describe each server: its state, why, for how long, and what it offers.

    `problem` is why the file as it is now is not the configuration in use, and `noise` how many
    lines that are no messages each server has written since it was started. `unpinned` is why
    nothing is compared with what was approved, `unaudited` why calls are not written down,
    `uncounted` why tokens are told by length though they were to be counted.
    `processes` has the servers of which each client has its own process, and how many do, where
    clients share us.
    """
    return {
        "problem": problem and on_one_line(problem),
        "unpinned": unpinned and on_one_line(unpinned),
        **({} if unaudited is None else {"unaudited": on_one_line(unaudited)}),
        **({} if uncounted is None else {"uncounted": on_one_line(uncounted)}),
        **({"counting": True} if catalog.scale.awaits(catalog.known) else {}),
        "servers": [
            {
                "name": name,
                "description": on_one_line(descriptions.get(name, "")),
                **_state(state, now, catalog.scale),
                **_hidden(catalog, name),
                "noise": (noise or {}).get(name, 0),
                **_own(processes or {}, name),
            }
            for name, state in catalog.servers.items()
        ],
    }


def tools_document(catalog: Catalog) -> dict[str, Any]:
    """List every entry with what a person wants to know at a glance."""
    return {
        "tools": [
            {
                "name": entry.name,
                "server": entry.server,
                "tool": on_one_line(entry.own_name),
                "alwaysLoad": entry.always_load,
                "readOnly": entry.read_only,
                "tokens": catalog.scale.tokens(entry),
                "description": _first_line(entry.description),
                "drift": _kind(catalog.drift_of(entry)),
            }
            for entry in catalog.entries.values()
        ]
    }


def pool_document(catalog: Catalog) -> dict[str, Any]:
    """Define every entry as clients list it, and name the servers that more may come from."""
    return {
        "servers": [
            {"name": name, "state": state_word(state)} for name, state in catalog.servers.items()
        ],
        "tools": [
            {
                "name": entry.name,
                "server": entry.server,
                "description": entry.description,
                "inputSchema": entry.input_schema,
                "alwaysLoad": entry.always_load,
                "readOnly": entry.read_only,
            }
            for entry in catalog.entries.values()
        ],
    }


def tool_document(entry: ToolEntry, scale: Scale = BY_LENGTH) -> dict[str, Any]:
    """Describe one entry whole."""
    return {
        "name": entry.name,
        "server": entry.server,
        "alwaysLoad": entry.always_load,
        "readOnly": entry.read_only,
        "tokens": scale.tokens(entry),
        "definition": {**entry.tool, **entry.put_right, "name": entry.own_name},
    }


def _own(processes: Mapping[ServerName, int | None], server: ServerName) -> dict[str, Any]:
    """Describe a server of which each client has its own process."""
    if server not in processes:
        return {}
    number = processes[server]
    return {"perClient": True, **({} if number is None else {"processes": number})}


def _state(state: ServerState, now: float, scale: Scale) -> dict[str, Any]:
    seconds = round(max(0.0, now - state.since), 1)
    match state:
        case Pending():
            return {
                "state": "pending",
                "phase": state.phase,
                "reason": state.reason and on_one_line(state.reason),
                "seconds": seconds,
                **(_offered(state.known, scale) if state.known else {"tools": 0}),
                "stderr": _lines(state.last_words),
            }
        case Failed():
            login = {} if state.login is None else {"login": {"command": state.login}}
            return {
                "state": "needs login" if login else "failed",
                "reason": on_one_line(state.reason),
                "seconds": seconds,
                "tools": 0,
                "stderr": _lines(state.last_words),
                **login,
            }
        case Idle():
            return {
                "state": "idle",
                "reason": state.reason and on_one_line(state.reason),
                "seconds": seconds,
                **_offered(state.known, scale),
                "stderr": _lines(state.last_words),
            }
        case Ready():
            return {"state": "ready", "reason": None, "seconds": seconds, **_offered(state, scale)}


def _offered(known: Ready, scale: Scale) -> dict[str, Any]:
    """Describe what a server offers, or is known to."""
    return {
        "tools": len(known.entries),
        "tokens": sum(map(scale.tokens, known.entries)),
        "protocol": known.protocol_version,
        "version": on_one_line(known.version),
        "instructions": on_its_lines(known.told),
        # Where a server has nothing else to say of itself, it is the beginning of these.
        "about": "" if known.is_muted else on_one_line(known.about),
        "refused": _lines(known.refused),
        "unmatched": _lines(known.unmatched),
        "drift": _drifts(known),
        **({"new": True} if known.is_new else {}),
    }


def _kind(drift: Drift | None) -> str | None:
    return drift and drift.kind.name.lower()


def _drifts(known: Ready) -> list[dict[str, Any]]:
    """Describe what is not as it was approved."""
    offered = {entry.own_name for entry in known.entries}
    withheld = {entry.own_name for entry in known.listed} - offered
    names = {entry.own_name: entry.name for entry in known.whole} if known.drift else {}
    return [
        {
            "tool": on_one_line(drift.tool),
            "name": names.get(drift.tool),
            "kind": _kind(drift),
            "details": list(drift.details),
            "withheld": drift.tool in withheld if drift.tool else known.is_muted,
        }
        for drift in known.drift
    ]


def _hidden(catalog: Catalog, server: ServerName) -> dict[str, Any]:
    """Correct what is said of a server whose names lead to another."""
    state, sentence = catalog.known.get(server), explain_unreachable(catalog, server)
    if sentence is None or state is None:
        return {}
    hidden = catalog.unreachable(server)
    reachable = [entry for entry in state.entries if entry.name not in hidden]
    return {
        "tools": len(reachable),
        "tokens": sum(map(catalog.scale.tokens, reachable)),
        "refused": [*state.refused, sentence],
    }


def _lines(texts: Sequence[str]) -> list[str]:
    """Return lines of which none can begin another; what stands before a text is a part of it."""
    return [on_its_lines(text).replace("\n", " ") for text in texts]


def _first_line(text: str) -> str:
    return on_its_lines(text).strip().partition("\n")[0]
