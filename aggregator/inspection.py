"""The catalog as documents: what the `catalog://` resources say."""

from collections.abc import Mapping
from typing import Any

from aggregator.catalog import Catalog, Failed, Pending, ServerState, ToolEntry
from aggregator.exposure import approximate_tokens
from aggregator.names import ServerName

SERVERS_URI = "catalog://servers"
TOOLS_URI = "catalog://tools"


def servers_document(
    catalog: Catalog,
    descriptions: Mapping[ServerName, str],
    now: float,
    problem: str | None = None,
) -> dict[str, Any]:
    """Describe each server: its state, why, for how long, and what it offers.

    `problem` is why the file as it is now is not the configuration in use.
    """
    return {
        "problem": problem,
        "servers": [
            {"name": name, "description": descriptions.get(name, ""), **_state(state, now)}
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
                "tool": entry.own_name,
                "alwaysLoad": entry.always_load,
                "readOnly": entry.read_only,
                "tokens": approximate_tokens(entry),
                "description": _first_line(entry.description),
            }
            for entry in catalog.entries.values()
        ]
    }


def tool_document(entry: ToolEntry) -> dict[str, Any]:
    """Describe one entry whole."""
    return {
        "name": entry.name,
        "server": entry.server,
        "alwaysLoad": entry.always_load,
        "readOnly": entry.read_only,
        "tokens": approximate_tokens(entry),
        "definition": entry.tool,
    }


def _state(state: ServerState, now: float) -> dict[str, Any]:
    seconds = round(max(0.0, now - state.since), 1)
    match state:
        case Pending():
            return {
                "state": "pending",
                "phase": state.phase,
                "reason": state.reason,
                "seconds": seconds,
                "tools": 0,
                "stderr": list(state.last_words),
            }
        case Failed():
            return {
                "state": "failed",
                "reason": state.reason,
                "seconds": seconds,
                "tools": 0,
                "stderr": list(state.last_words),
            }
        case _:
            return {
                "state": "ready",
                "reason": None,
                "seconds": seconds,
                "tools": len(state.entries),
                "tokens": sum(approximate_tokens(entry) for entry in state.entries),
                "protocol": state.protocol_version,
                "version": state.version,
                "instructions": state.instructions,
                "refused": list(state.refused),
                "unmatched": list(state.unmatched),
            }


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]
