"""The meta-tools as clients see them, and our instructions: functions of configuration alone.

They are read on every turn, so they say no more than a model needs: what to search for and how,
what is behind us, how a found tool is called.
"""

from collections.abc import Sequence

from aggregator.basics.json import JsonObject
from aggregator.config.settings import DEFAULT_RESULTS
from aggregator.names import RESERVED, MetaTools, ServerName
from aggregator.toolsearch.wording import listed, one_line

MAX_DESCRIPTION = 1500
"""Characters of a meta-tool's description: 600 tokens."""
MAX_INSTRUCTIONS = 2000
"""Characters of our instructions; some clients cut there."""
MAX_FIRST_LINE = 250
"""Characters of the instructions' first line, which is all that one client shows."""
MAX_HINT = 300
"""Characters of the words clients may find the search by."""

MAX_QUERIES = 8
"""Needs that one search may name."""
MAX_WAIT = 30.0
"""Seconds a search may wait for pending servers: half of what the hastiest clients allow."""

Servers = Sequence[tuple[ServerName, str]]
"""The configured servers and what the configuration says of each."""


def definitions(
    servers: Servers,
    surface: str,
    max_results: int = DEFAULT_RESULTS,
    names: MetaTools = RESERVED,
    *,
    relaying: bool = True,
) -> tuple[JsonObject, ...]:
    """Return the meta-tools that a surface shows, those that call another tool where it relays."""
    if surface == "full":
        return ()
    calling = _calling(surface, names, relaying=relaying)
    search = _search(servers, calling, max_results, names)
    return (search, _call(names), _call_read_only(names)) if relaying else (search,)


def instructions(
    servers: Servers, surface: str = "auto", names: MetaTools = RESERVED, *, relaying: bool = True
) -> str:
    """Return what we tell a client about ourselves when it connects; names are as it shows them."""
    known = listed((name for name, _ in servers), 80) or "no servers yet"
    if surface == "full":
        first = f"One server in front of others; all their tools are listed here: {known}."
        head = f"{one_line(first, MAX_FIRST_LINE)}\nServers:\n"
        return head + _served(servers, MAX_INSTRUCTIONS - len(head))
    # What each server is for stands in the definition of the search, which every client shows.
    first = (
        f"`{names.search}` finds tools of {known}, which no other tool search knows: "
        "use it before saying you cannot do it."
    )
    return f"{one_line(first, MAX_FIRST_LINE)}\n{_calling(surface, names, relaying=relaying)}"


def _calling(surface: str, names: MetaTools, *, relaying: bool) -> str:
    """Say how a found tool is called."""
    if not relaying:
        return "A found tool joins your tool list: then call it by its own name."
    if surface == "relay":
        return (
            f"Call a found tool with `{names.call}`, or with `{names.call_read_only}` where the "
            "answer says so."
        )
    return (
        "A found tool joins your tool list: call it by its own name, or with "
        f"`{names.call}` if you do not see it there."
    )


_FORMS = """\
Finds tools behind this server and gives their definitions. Most are not in your tool list, and \
no other tool search knows them: search here before concluding that something cannot be done.
`query` is what you need in words (send slack message), or
- +slack send: a word with + must occur; "a phrase" in quotes
- select:github__create_issue,slack__send_message: exactly these
- server:github issue, readonly:, kind:skill|prompt, /regex/
- empty: all servers
{calling}
Servers:
"""


def _search(servers: Servers, calling: str, max_results: int, names: MetaTools) -> JsonObject:
    head = _FORMS.format(calling=calling)
    known = " ".join(name for name, _ in servers)
    return {
        "name": names.search,
        "title": "Search tools",
        "description": head + _served(servers, MAX_DESCRIPTION - len(head)),
        "inputSchema": _search_schema(max_results),
        "annotations": _annotations("Search tools", reads=True, open_world=False),
        "_meta": _kept(f"find discover load tools of {known}"),
    }


def _served(servers: Servers, room: int) -> str:
    """Name the servers with as much of their descriptions as fits."""
    if not servers:
        return "none configured"
    for limit in (200, 120, 80, 60, 45, 30, 20):
        text = "\n".join(_server_line(name, about, limit) for name, about in servers)
        if len(text) <= room:
            return text
    return listed((name for name, _ in servers), room - len(" and 99,999 more"))


def _server_line(name: ServerName, about: str, limit: int) -> str:
    said = one_line(about, limit)
    return f"- {name}: {said}" if said else f"- {name}"


def _search_schema(max_results: int) -> JsonObject:
    """Say what the search takes, and how many tools it returns unless it is told."""
    return {
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "max_results": {"type": "integer", "default": max_results},
            "queries": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Several needs at once.",
            },
            "wait": {
                "type": "number",
                "description": f"Seconds to wait for starting servers, up to {MAX_WAIT:g}.",
            },
            "offset": {"type": "integer", "description": "Matches to skip."},
            "names": {"type": "boolean"},
        },
    }


_CALL_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        # A client that closes the schemas it passes on would let nothing inside.
        "arguments": {"type": "object", "additionalProperties": True},
    },
    "required": ["name"],
}


def _call(names: MetaTools) -> JsonObject:
    title = "Call a found tool"
    return {
        "name": names.call,
        "title": title,
        "description": (
            f"Calls a tool that this server's `{names.search}` found: its name, and its arguments "
            "as its definition asks for them."
        ),
        "inputSchema": _CALL_SCHEMA,
        "annotations": _annotations(title, reads=False, open_world=True),
        "_meta": _kept(f"call run use a tool found by {names.search}"),
    }


def _call_read_only(names: MetaTools) -> JsonObject:
    title = "Call a found read-only tool"
    return {
        "name": names.call_read_only,
        "title": title,
        "description": (
            f"Like `{names.call}`, but only for tools marked read-only: safe while planning, and "
            "in parallel."
        ),
        "inputSchema": _CALL_SCHEMA,
        "annotations": _annotations(title, reads=True, open_world=True),
        "_meta": _kept(f"call a read-only tool found by {names.search}"),
    }


def _annotations(title: str, *, reads: bool, open_world: bool) -> JsonObject:
    return {
        "title": title,
        "readOnlyHint": reads,
        "destructiveHint": not reads,
        "idempotentHint": reads,
        "openWorldHint": open_world,
    }


def _kept(hint: str) -> JsonObject:
    """Ask a client that defers tools by itself to keep one, and say what else to find it by."""
    return {"anthropic/alwaysLoad": True, "anthropic/searchHint": one_line(hint, MAX_HINT)}
