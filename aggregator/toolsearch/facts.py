"""A search's answer for programs."""

from aggregator.catalog import Changes, ToolEntry
from aggregator.json import JsonObject
from aggregator.search.hits import Contribution
from aggregator.toolsearch.find import Explained, Found, Missing, copies
from aggregator.toolsearch.status import Unready, failed, pending
from aggregator.toolsearch.view import View

EXPLAIN = "aggregator/explain"
"""The key in a request's `_meta` by which a program asks why each tool was found."""


def facts(found: Found, view: View) -> JsonObject:
    """Return what `_meta["aggregator/search"]` of the result says."""
    known = view.catalog.entries
    told: dict[str, object] = {
        "matches": [entry.name for entry in found.matches],
        "tools": [_tool(entry, view) for entry in found.matches],
        "missing": [_missing(each) for result in found.results for each in result.missing],
        "total_deferred_tools": len(known) - sum(name in known for name in view.visible),
        "pending_mcp_servers": [_server(each) for each in pending(view)],
        "failed_mcp_servers": [_server(each) for each in failed(view)],
        "tool_references": [
            {"type": "tool_reference", "tool_name": entry.name} for entry in found.matches
        ],
    }
    if same := copies(found, view):
        told["copies"] = same
    if view.problem is not None:
        told["problem"] = view.problem
    if view.changes is not None:
        told["changes"] = _changes(view.changes)
    if found.request.explain:
        told["explained"] = [
            _explained(each) for result in found.results for each in result.explained
        ]
    return told


def _tool(entry: ToolEntry, view: View) -> JsonObject:
    return {
        "name": entry.name,
        "server": entry.server,
        "description": entry.description,
        "inputSchema": entry.input_schema,
        "annotations": entry.tool.get("annotations") or {},
        "call": view.way(entry),
    }


def _explained(explained: Explained) -> JsonObject:
    hit = explained.hit
    return {
        "name": explained.entry.name,
        "score": hit and round(hit.score, 3),
        "meaning": None if hit is None or hit.meaning is None else round(hit.meaning, 3),
        "why": [_contribution(each) for each in explained.why],
    }


def _contribution(each: Contribution) -> JsonObject:
    return {
        "word": each.word,
        "term": each.term,
        "field": each.field,
        "score": round(each.score, 3),
    }


def _missing(missing: Missing) -> JsonObject:
    return {"name": missing.name, "nearest": list(missing.nearest)}


def _server(server: Unready) -> JsonObject:
    return {
        "name": server.name,
        "state": server.state,
        "reason": server.reason,
        "seconds": server.seconds,
    }


def _changes(changes: Changes) -> JsonObject:
    return {
        "tools_added": list(changes.tools_added),
        "tools_removed": list(changes.tools_removed),
        "servers_added": list(changes.servers_added),
        "servers_removed": list(changes.servers_removed),
    }
