"""The catalog as text for people: plain columns, nothing that a pipe would mind."""

import json
from collections.abc import Callable, Mapping, Sequence
from textwrap import fill, shorten
from typing import Any

from aggregator.cli.environment import Colour

Style = Callable[[str, Colour], str]
"""Gives a text a colour, or leaves it as it is."""

WIDTH = 100
"""Columns a page may take."""


def as_json(value: object) -> str:
    """Return a value as JSON that a person can read too."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def overview(catalog: dict[str, Any], style: Style) -> str:
    """Show every server, and what a client would see of them."""
    servers: list[dict[str, Any]] = catalog["servers"]
    rows = [_server_row(server) for server in servers]
    head = ("SERVER", "STATE", "TOOLS", "TOKENS", "PROTOCOL", "ABOUT")
    table = columns(head, rows, style=style)
    return "\n\n".join([table, *_reasons(servers), _sums(catalog)])


def server_page(server: dict[str, Any], style: Style) -> str:
    """Show one server and its tools."""
    head = f"{style(server['name'], 'bold')}: {style(server['state'], _colour(server['state']))}"
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
    parts = [head, *(fill(fact, WIDTH) for fact in facts if fact)]
    text = "\n".join(parts)
    none = "It offers no tools" if server["state"] == "ready" else ""
    table = columns(("TOOL", "LOADED", "TOKENS", "ABOUT"), rows, style=style) if rows else none
    refused = "\n".join(f"refused: {sentence}" for sentence in server.get("refused", ()))
    said = "\n".join(f"  {line}" for line in server["stderr"])
    words = f"It wrote to stderr:\n{said}" if said else ""
    return "\n\n".join(part for part in (text, table, refused, words) if part)


def tool_page(tool: dict[str, Any]) -> str:
    """Show one tool whole."""
    definition: dict[str, Any] = tool["definition"]
    loaded = "always loaded" if tool["alwaysLoad"] else "deferred"
    head = f"{tool['name']} ({tool['server']}, {loaded}, about {tool['tokens']:,} tokens)"
    rest = {key: value for key, value in definition.items() if key not in ("name", "description")}
    about = definition.get("description") or "It does not say what it does"
    return f"{head}\n\n{about}\n\n{json.dumps(rest, ensure_ascii=False, indent=2)}"


def columns(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, style: Style = lambda text, _: text
) -> str:
    """Align rows under a head; the last column takes what room is left."""
    table = [head, *rows]
    widths = [max(len(row[at]) for row in table) for at in range(len(head) - 1)]
    room = max(20, WIDTH - sum(widths) - 2 * len(widths))
    lines = [style(_row(head, widths, room), "bold")]
    lines.extend(_row(row, widths, room, style) for row in rows)
    return "\n".join(lines)


def _row(
    row: Sequence[str], widths: Sequence[int], room: int, style: Style = lambda text, _: text
) -> str:
    # Coloured only after it is aligned: the codes of a colour have no width.
    cells = [
        style(cell.ljust(width), _COLOURS[cell]) if cell in _COLOURS else cell.ljust(width)
        for cell, width in zip(row, widths, strict=False)
    ]
    return "  ".join([*cells, shorten(row[-1], room, placeholder="…")]).rstrip()


_COLOURS: Mapping[str, Colour] = {
    "ready": "green",
    "fine": "green",
    "pending": "yellow",
    "warning": "yellow",
    "failed": "red",
    "error": "red",
}


def _colour(state: str) -> Colour:
    return _COLOURS.get(state, "bold")


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
    lines = [_reason(server) for server in servers if server["state"] != "ready"]
    refused = [
        f"{server['name']}: {sentence}"
        for server in servers
        for sentence in server.get("refused", ())
    ]
    return ["\n".join([*lines, *refused])] if lines or refused else []


def _reason(server: dict[str, Any]) -> str:
    """Say why a server is not ready, wrapped so that it stays readable."""
    said = server["reason"] or "still starting"
    phase = f", {server['phase']}" if server.get("phase", "starting") != "starting" else ""
    text = f"{server['name']}: {said} (for {server['seconds']:g} s{phase})"
    return fill(text, WIDTH, subsequent_indent="  ", break_long_words=False)


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
