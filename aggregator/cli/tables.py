"""The catalog as text for people: plain columns, no colour, nothing that a pipe would mind."""

import json
from collections.abc import Sequence
from textwrap import shorten
from typing import Any

WIDTH = 100
"""Columns a page may take."""


def overview(catalog: dict[str, Any]) -> str:
    """Show every server, and what a client would see of them."""
    servers: list[dict[str, Any]] = catalog["servers"]
    rows = [_server_row(server) for server in servers]
    table = columns(("SERVER", "STATE", "TOOLS", "TOKENS", "PROTOCOL", "ABOUT"), rows)
    return "\n\n".join([table, *_reasons(servers), _sums(catalog)])


def server_page(server: dict[str, Any]) -> str:
    """Show one server and its tools."""
    head = f"{server['name']}: {server['state']}"
    facts = [server.get("description"), server.get("version"), server.get("reason")]
    rows = [
        (
            tool["name"],
            "always" if tool["alwaysLoad"] else "deferred",
            f"{tool['tokens']:,}",
            tool["description"],
        )
        for tool in server["tools"]
    ]
    parts = [head, *(fact for fact in facts if fact)]
    text = "\n".join(parts)
    table = columns(("TOOL", "LOADED", "TOKENS", "ABOUT"), rows) if rows else "It offers no tools"
    refused = "".join(f"\nrefused: {sentence}" for sentence in server.get("refused", ()))
    return f"{text}\n\n{table}{refused}"


def tool_page(tool: dict[str, Any]) -> str:
    """Show one tool whole."""
    definition: dict[str, Any] = tool["definition"]
    loaded = "always loaded" if tool["alwaysLoad"] else "deferred"
    head = f"{tool['name']} ({tool['server']}, {loaded}, about {tool['tokens']:,} tokens)"
    rest = {key: value for key, value in definition.items() if key not in ("name", "description")}
    about = definition.get("description") or "It does not say what it does"
    return f"{head}\n\n{about}\n\n{json.dumps(rest, ensure_ascii=False, indent=2)}"


def columns(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Align rows under a head; the last column takes what room is left."""
    table = [head, *rows]
    widths = [max(len(row[at]) for row in table) for at in range(len(head) - 1)]
    room = max(20, WIDTH - sum(widths) - 2 * len(widths))
    lines: list[str] = []
    for row in table:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        lines.append("  ".join([*cells, shorten(row[-1], room, placeholder="…")]).rstrip())
    return "\n".join(lines)


def _server_row(server: dict[str, Any]) -> tuple[str, ...]:
    ready = server["state"] == "ready"
    return (
        server["name"],
        server["state"],
        str(server["tools"]) if ready else "-",
        f"{server['tokens']:,}" if ready else "-",
        server["protocol"] if ready else "-",
        server["description"],
    )


def _reasons(servers: Sequence[dict[str, Any]]) -> list[str]:
    lines = [
        f"{server['name']}: {server['reason'] or 'still starting'} ({server['seconds']:g} s)"
        for server in servers
        if server["state"] != "ready"
    ]
    refused = [
        f"{server['name']}: {sentence}"
        for server in servers
        for sentence in server.get("refused", ())
    ]
    return ["\n".join([*lines, *refused])] if lines or refused else []


def _sums(catalog: dict[str, Any]) -> str:
    tools: list[dict[str, Any]] = catalog["tools"]
    visible: list[str] = catalog["visible"]
    ready = sum(1 for server in catalog["servers"] if server["state"] == "ready")
    deferred = [tool for tool in tools if tool["name"] not in visible]
    tokens = sum(tool["tokens"] for tool in deferred)
    return (
        f"{ready} of {len(catalog['servers'])} servers ready, {len(tools)} tools\n"
        f"A client sees {len(visible)}: {', '.join(visible) or 'nothing'}\n"
        f"Deferred until searched for: {len(deferred)} tools, about {tokens:,} tokens"
    )
