"""The catalog as text for people: plain columns, nothing that a pipe would mind."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from aggregator.basics.glyphs import clean, escaped, on_its_lines, on_one_line
from aggregator.cli.paper import READABLE, Colour, Paper, fill, width_of
from aggregator.downstream.transport import NOISE

LEAST_ROOM = 20
"""Columns that text in the last column needs to be read there."""


def as_json(value: object) -> str:
    """Return a value as JSON that a person can read too: nothing in it is hidden, or lost."""
    return escaped(json.dumps(value, ensure_ascii=False, indent=2))


def overview(catalog: dict[str, Any], paper: Paper, there: str | None = None) -> str:
    """Show every server, and what a client would see of them.

    `there` is what commands about the same file are told, if there are any.
    """
    servers: list[dict[str, Any]] = catalog["servers"]
    rows = [_server_row(server) for server in servers]
    head = ("SERVER", "STATE", "TOOLS", "TOKENS", "PROTOCOL", "ABOUT")
    table = columns(head, rows, paper)
    advice = [paper.fill(catalog["advice"])] if catalog.get("advice") else []
    return "\n\n".join([table, *_reasons(servers, paper, there), _sums(catalog, paper), *advice])


def server_page(server: dict[str, Any], paper: Paper, there: str | None = None) -> str:
    """Show one server and its tools."""
    head = f"{paper.paint(server['name'], 'bold')}: {_painted(server['state'], paper)}"
    facts = [on_one_line(_about(server)), on_one_line(server.get("version") or "")]
    if server["state"] == "idle":
        facts.append("It starts when one of its tools is called")
        facts.append(last_time(server))
    elif server["state"] != "ready":
        facts.append(why_not(server))
    if server.get("perClient"):
        facts.append(_own(server))
    rows = [
        (
            tool["name"],
            "always" if tool["alwaysLoad"] else "when found",
            f"{tool['tokens']:,}",
            tool["description"],
        )
        for tool in server["tools"]
    ]
    parts = [head, *(paper.fill(fact, hanging="") for fact in facts if fact)]
    text = "\n".join(parts)
    none = _no_tools(server) if is_known(server) else ""
    table = columns(("TOOL", "SHOWN", "TOKENS", "ABOUT"), rows, paper) if rows else none
    oddities = [f"refused: {sentence}" for sentence in server.get("refused", ())]
    oddities += [f"without effect: {sentence}" for sentence in server.get("unmatched", ())]
    oddities += _differing(server, there)
    oddities += [f"It {noise_of(server)}"] if server.get("noise") else []
    refused = "\n".join(paper.fill(on_one_line(each)) for each in oddities)
    said = "\n".join(paper.fill(clean(line), "  ") for line in server["stderr"])
    words = f"It wrote to stderr:\n{said}" if said else ""
    return "\n\n".join(part for part in (text, table, refused, words) if part)


def _own(server: dict[str, Any]) -> str:
    """Say that each client has a process of a server to itself, and how many do."""
    number = server.get("processes")
    now = "" if number is None else f": {number} {'process' if number == 1 else 'processes'} now"
    return f"Where clients share it, each has its own process{now}"


def _no_tools(server: dict[str, Any]) -> str:
    if any(each["withheld"] and each["tool"] for each in server.get("drift", ())):
        return "All its tools are withheld until they are approved"
    return "It offers no tools, or none that `tools` allows"


def _next_step(server: dict[str, Any], there: str | None) -> str:
    """Say which commands help where tools are not as they were approved."""
    name = server["name"]
    shows = "them whole" if server.get("new") else "old and new"
    return (
        f"`aggregator lock --diff {name}{there}` shows {shows}, "
        f"`aggregator approve {name}{there}` approves them"
    )


def _differing(server: dict[str, Any], there: str | None) -> list[str]:
    """Say what of a server is not as it was approved; of one that is new, that it is."""
    if not server.get("drift"):
        return []
    if server.get("new"):
        return [f"It is {changed(server, there).partition(': ')[2]}"]
    step = [] if there is None else [_next_step(server, there)]
    return [*map(_drifted, server["drift"]), *step]


def _drifted(drift: dict[str, Any]) -> str:
    """Say how a tool differs from what was approved."""
    what = "withheld" if drift["withheld"] else _SORTS.get(drift["kind"], "changed")
    name = drift.get("name") or drift["tool"]
    return f"{what}: {f'`{name}`' if name else 'it'} {', '.join(drift['details'])}"


def noise_of(server: dict[str, Any]) -> str:
    """Say how much a server has written where only messages belong."""
    lines = counted(server["noise"], "line")
    return (
        f"wrote {lines} besides messages to its standard output, which were ignored; "
        "what is for people belongs on standard error"
    )


def tool_page(tool: dict[str, Any], paper: Paper) -> str:
    """Show one tool whole; its definition is JSON, and so never wrapped."""
    definition: dict[str, Any] = tool["definition"]
    shown = "always shown" if tool["alwaysLoad"] else "shown when found"
    head = f"{tool['name']} ({tool['server']}, {shown}, about {tool['tokens']:,} tokens)"
    rest = {key: value for key, value in definition.items() if key not in ("name", "description")}
    about = on_its_lines(definition.get("description") or "It does not say what it does")
    # Indented, so that none of its lines passes for one of ours.
    return f"{paper.fill(head)}\n\n{paper.fill(about, '  ', '  ')}\n\n{as_json(rest)}"


def columns(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    paper: Paper,
    *,
    names_last: bool = False,
    paths_last: bool = False,
) -> str:
    """Align rows under a head; the last column takes what room is left.

    What a narrow page has no room for stands on further lines, a path whole on one of its own;
    where not even the other columns fit, each row becomes a paragraph that begins with its name:
    the first column, or the last.
    """
    table = [[on_one_line(cell) for cell in row] for row in rows]
    widths = [max(width_of(row[at]) for row in (head, *table)) for at in range(len(head) - 1)]
    taken = sum(widths) + 2 * len(widths)
    longest = max((width_of(row[-1]) for row in (head, *table)), default=0)
    if paper.width - taken < min(longest, LEAST_ROOM):
        if names_last:
            head, table = ["", *head[:-1], ""], [[row[-1], *row[:-1], ""] for row in table]
        return "\n".join(_paragraph(head, row, paper, paths_last) for row in table)
    room = paper.width - taken
    # As many lines as what is readable takes, and these to their end.
    shown = room * max(1, -(-(READABLE - taken) // max(1, room)))
    lines = [paper.paint("  ".join([*map(_padded, head, widths), head[-1]]), "bold")]
    for row in table:
        # Coloured only after it is aligned: the codes of a colour have no width.
        cells = [_coloured(_padded(*each), paper) for each in zip(row, widths, strict=False)]
        if paths_last and width_of(row[-1]) > room:
            lines.extend(["  ".join(cells).rstrip(), f"  {row[-1]}"])
            continue
        about = fill(paper.cut(row[-1], shown), room, hanging="").split("\n")
        lines.append("  ".join([*cells, about[0]]).rstrip())
        lines.extend(" " * taken + line for line in about[1:])
    return "\n".join(line for line in lines if line)


def _paragraph(head: Sequence[str], row: Sequence[str], paper: Paper, has_path: bool) -> str:
    """Write a row on lines of its own: its name, then what there is to say of it."""
    facts = [
        f"{title.lower()} {cell}"
        for title, cell in zip(head[1:-1], row[1:-1], strict=True)
        if cell not in ("", "-")
    ]
    about = "" if has_path else paper.cut(row[-1], READABLE)
    lines = [paper.fill(part, "  ", "  ") for part in (", ".join(facts), about) if part]
    name = [paper.paint(row[0], "bold")] if row[0] else []
    return "\n".join([*name, *lines, *[f"  {row[-1]}"] * has_path])


def _padded(cell: str, width: int) -> str:
    return cell + " " * (width - width_of(cell))


def _coloured(cell: str, paper: Paper) -> str:
    colour = _COLOURS.get(cell.rstrip())
    return cell if colour is None else paper.paint(cell, colour)


_COLOURS: Mapping[str, Colour] = {
    "ready": "green",
    "fine": "green",
    "idle": "green",
    "pending": "yellow",
    "warning": "yellow",
    "needs login": "yellow",
    "failed": "red",
    "error": "red",
}


def _painted(state: str, paper: Paper) -> str:
    return paper.paint(state, _COLOURS.get(state, "bold"))


def _server_row(server: dict[str, Any]) -> tuple[str, ...]:
    known = is_known(server)
    return (
        server["name"],
        server["state"],
        str(server["tools"]) if known else "-",
        f"{server['tokens']:,}" if known else "-",
        server["protocol"] if known else "-",
        _about(server),
    )


def _about(server: dict[str, Any]) -> str:
    """Return what the file says of a server or, without that, what it says of itself."""
    return server["description"] or server.get("about", "")


def _reasons(
    servers: Sequence[dict[str, Any]], paper: Paper, there: str | None = None
) -> list[str]:
    lines = [_reason(server, paper) for server in servers if not is_known(server)]
    lines += [
        paper.fill(f"{server['name']}: {last_time(server)}")
        for server in servers
        if is_known(server) and server["reason"]
    ]
    refused = [
        paper.fill(on_one_line(f"{server['name']}: {sentence}"))
        for server in servers
        for sentence in (*server.get("refused", ()), *server.get("unmatched", ()))
    ]
    names: dict[str, list[str]] = {}
    for name, text in all_changed(servers, there):
        names.setdefault(text, []).append(name)
    drifted = [paper.fill(f"{', '.join(of)}: {text}") for text, of in names.items()]
    told = [*lines, *refused, *drifted]
    return ["\n".join(told)] if told else []


def last_time(server: dict[str, Any]) -> str:
    """Say why a server that rests did not start when it was needed, if it did not."""
    if not is_known(server) or not server["reason"]:
        return ""
    return f"The last time it did not start: {why_not(server)}"


def all_changed(
    servers: Sequence[dict[str, Any]], there: str | None = None
) -> Iterator[tuple[str, str]]:
    """Yield of each server what is not as it was approved; of several new ones the same."""
    drifted = [server for server in servers if server.get("drift")]
    new = [each for each in drifted if each.get("new") and not _withheld(each)]
    step = (
        ""
        if there is None
        else (
            f"; `aggregator lock --diff{there}` shows what they offer, "
            f"`aggregator approve NAME{there}` approves one of them, and `--all` all there is"
        )
    )
    for server in drifted:
        name = server["name"]
        is_one_of_many = len(new) > 1 and server in new
        own = changed(server, there).removeprefix(f"{name}: ")
        yield name, f"not in the lock yet{step}" if is_one_of_many else own


def _withheld(server: dict[str, Any]) -> int:
    return sum(each["withheld"] for each in server["drift"])


def changed(server: dict[str, Any], there: str | None = None) -> str:
    """Say how much of a server is not as it was approved, and what helps."""
    tools = sum(bool(each["tool"]) for each in server["drift"])
    changes = [counted(tools, "tool")] if tools else []
    own = "instructions" if server.get("new") else "its instructions"
    changes += [own] if tools < len(server["drift"]) else []
    withheld = _withheld(server)
    rest = f", {withheld} of them withheld" if withheld else ""
    step = f"; {_next_step(server, there)}" if there is not None else ""
    if server.get("new"):
        what = " and ".join(changes)
        return f"{server['name']}: not in the lock yet, with {what} to approve{rest}{step}"
    sorts = {_SORTS.get(each["kind"], "changed") for each in server["drift"]}
    how = sorts.pop() if len(sorts) == 1 else "changed"
    return f"{server['name']}: {' and '.join(changes)} {how} since approved{rest}{step}"


_SORTS = {"new": "new", "removed": "gone"}
"""What is said of tools that were not there, or are not any more, instead of that they changed."""


def _reason(server: dict[str, Any], paper: Paper) -> str:
    """Say why a server is not ready, wrapped so that it stays readable."""
    said = why_not(server)
    phase = f", {server['phase']}" if server.get("phase", "starting") != "starting" else ""
    since = f"for {server['seconds']:g} s" if server["seconds"] else ""
    state = f"{since}{phase}".removeprefix(", ")
    text = f"{server['name']}: {said}{f' ({state})' if state else ''}"
    return paper.fill(text)


def _sums(catalog: dict[str, Any], paper: Paper) -> str:
    tools: list[dict[str, Any]] = catalog["tools"]
    visible: list[str] = catalog["visible"]
    states = [server["state"] for server in catalog["servers"]]
    number, idle = sum(map(is_known, catalog["servers"])), states.count("idle")
    resting = f", {'all' if idle == number else idle} of them idle until called" if idle else ""
    resting = ", idle until called" if idle == number == 1 else resting
    deferred = [tool for tool in tools if tool["name"] not in visible]
    tokens = sum(tool["tokens"] for tool in deferred)
    return paper.fill(
        f"{number} of {counted(len(states), 'server')} ready{resting}, "
        f"{counted(len(tools), 'tool')}\n"
        f"A client sees {len(visible)}: {', '.join(visible) or 'nothing'}\n"
        f"Deferred until searched for: {counted(len(deferred), 'tool')}, about {tokens:,} tokens"
    )


def is_known(server: dict[str, Any]) -> bool:
    """Return whether it is known what a server offers, and it can be called."""
    return server["state"] in ("ready", "idle")


def why_not(server: dict[str, Any], within: float | None = None) -> str:
    """Say why a server is not ready, in the same words wherever it is said."""
    if server["reason"]:
        return on_one_line(server["reason"])
    if server["state"] != "pending" and within is None:
        return "it is not ready"
    return "still starting" if within is None else f"it was not ready within {within:g} s"


def beside(words: Sequence[str], reason: str) -> list[str]:
    """Return the lines that a server wrote last and that its reason does not repeat."""
    return [each for each in words if not _is_idle(each.removeprefix(NOISE), reason)]


def _is_idle(words: str, reason: str) -> bool:
    """Return whether a line adds nothing to a reason."""
    return words.strip() in reason or words.startswith("npm notice")


def counted(number: int, what: str) -> str:
    """Return a number of things in words that go with it."""
    return f"{number:,} {what if number == 1 else f'{what}s'}"
