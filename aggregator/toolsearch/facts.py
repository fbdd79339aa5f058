"""A search's answer for programs."""

from aggregator.basics.json import JsonObject
from aggregator.catalog import Changes, ToolEntry
from aggregator.search.hits import Contribution
from aggregator.toolsearch.find import Explained, Found, Missing
from aggregator.toolsearch.offers import Offer
from aggregator.toolsearch.status import Unready, failed, pending
from aggregator.toolsearch.view import View

EXPLAIN = "aggregator/explain"
"""The key in a request's `_meta` by which a program asks why each tool was found."""


def facts(found: Found, view: View) -> JsonObject:
    """Return what `_meta["aggregator/search"]` of the result says."""
    known, leading = view.catalog.entries, found.leading
    # Who asks for names is sent names, not hundreds of definitions beside them.
    defined = () if found.request.names else found.matches
    told: dict[str, object] = {
        "matches": [entry.name for entry in found.matches],
        "tools": [_tool(entry, view) for entry in defined],
        "missing": [_missing(each) for result in found.results for each in result.missing],
        "total_deferred_tools": len(known) - sum(name in known for name in view.visible),
        "pending_mcp_servers": [_server(each, view) for each in pending(view)],
        "failed_mcp_servers": [_server(each, view) for each in failed(view)],
        "tool_references": [
            {"type": "tool_reference", "tool_name": entry.name}
            for entry in defined
            if entry.name in leading
        ],
    }
    if found.offers:
        told["offers"] = [_offer(each, view) for each in found.offers]
    if found.copies:
        told["copies"] = dict(found.copies)
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
    drift = view.catalog.drift_of(entry)
    return {
        "name": entry.name,
        "server": entry.server,
        "description": entry.description,
        "inputSchema": entry.input_schema,
        "annotations": entry.shown.get("annotations") or {},
        "call": view.way(entry).through or "direct",
        **({"drift": drift.kind.name.lower()} if drift else {}),
    }


def _offer(offer: Offer, view: View) -> JsonObject:
    return {
        "kind": offer.kind,
        "name": offer.entry.name,
        "server": offer.entry.server or None,
        "description": offer.entry.description,
        "inputSchema": offer.entry.input_schema,
        "call": view.way(offer.entry).through,
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
    withheld = {} if missing.withheld is None else {"withheld": missing.withheld}
    return {"name": missing.name, "nearest": list(missing.nearest), **withheld}


def _server(server: Unready, view: View) -> JsonObject:
    return {
        "name": server.name,
        "state": server.state,
        "reason": server.reason,
        "seconds": server.seconds,
        **({} if server.login is None else {"login": _login(server, view)}),
    }


def _login(server: Unready, view: View) -> JsonObject:
    tool = next((each.name for each in view.catalog.logins if each.server == server.name), None)
    return {"command": server.login, **({} if tool is None else {"tool": tool})}


def _changes(changes: Changes) -> JsonObject:
    return {
        "tools_added": list(changes.tools_added),
        "tools_removed": list(changes.tools_removed),
        "servers_added": list(changes.servers_added),
        "servers_removed": list(changes.servers_removed),
    }
