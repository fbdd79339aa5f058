"""The meta-tools as clients see them, and our instructions: functions of configuration alone."""

from collections.abc import Sequence

from aggregator.config.values import DEFAULT_RESULTS
from aggregator.json import JsonObject
from aggregator.names import RESERVED, ServerName
from aggregator.toolsearch.wording import listed, one_line

TOOL_SEARCH, CALL_TOOL, CALL_READ_ONLY_TOOL = RESERVED

MAX_DESCRIPTION = 1500
"""Characters of a meta-tool's description: 600 tokens."""
MAX_INSTRUCTIONS = 2000
"""Characters of our instructions; some clients cut there."""
MAX_FIRST_LINE = 250
"""Characters of the instructions' first line, which is all that one client shows."""
MAX_HINT = 300
"""Characters of the words clients may find `ToolSearch` by."""

MAX_QUERIES = 8
"""Needs that one search may name."""
MAX_WAIT = 30.0
"""Seconds a search may wait for pending servers: half of what the hastiest clients allow."""

Servers = Sequence[tuple[ServerName, str]]
"""The configured servers and what the configuration says of each."""


def definitions(
    servers: Servers, surface: str, max_results: int = DEFAULT_RESULTS
) -> tuple[JsonObject, ...]:
    """Return the meta-tools that a surface shows; an unknown surface shows them all."""
    search = _tool_search(servers, surface, max_results)
    match surface:
        case "full":
            return ()
        case "promote":
            return (search,)
        case _:
            return (search, _CALL_TOOL, _CALL_READ_ONLY_TOOL)


def instructions(servers: Servers, surface: str = "auto") -> str:
    """Return what we tell a client about ourselves when it connects."""
    names = listed((name for name, _ in servers), 100) or "no servers yet"
    if surface == "full":
        first = f"One server in front of others; all their tools are listed here: {names}."
    else:
        first = f"`{TOOL_SEARCH}` finds tools of {names}: search before saying you cannot do it."
    rest = "" if surface == "full" else f"{_SEARCHING[surface if surface in _SEARCHING else '']}\n"
    head = f"{one_line(first, MAX_FIRST_LINE)}\n{rest}Servers:\n"
    return head + _served(servers, MAX_INSTRUCTIONS - len(head))


_SEARCHING = {
    "promote": "A found tool joins your tool list: then call it by its own name.",
    "relay": (
        f"Call a found tool with `{CALL_TOOL}`, or with `{CALL_READ_ONLY_TOOL}` where the answer "
        "says so: they take its name and its arguments."
    ),
    "": (
        "A found tool joins your tool list: call it by its own name. If you do not see it there, "
        f"call `{CALL_TOOL}` with its name and arguments; that always works."
    ),
}
"""How a found tool is called, by surface."""

_FORMS = """\
Finds tools behind this server and returns their definitions. Most of these tools are not in \
your tool list, and your client's own tool search does not know them: search here before \
concluding that something cannot be done.

Queries by example:
- `send slack message`: what you need, in words; best match first
- `+slack send`: a word with + must occur; "a phrase" in quotes
- `select:github__create_issue,slack__send_message`: exactly these tools
- `server:github issue`: tools of one server only
- empty: all servers, with their state
`queries` asks for several needs at once; `wait` gives starting servers time.

{calling}

Servers:
"""


def _tool_search(servers: Servers, surface: str, max_results: int) -> JsonObject:
    calling = _SEARCHING[surface if surface in _SEARCHING else ""]
    head = _FORMS.format(calling=calling)
    names = " ".join(name for name, _ in servers)
    return {
        "name": TOOL_SEARCH,
        "title": "Search tools",
        "description": head + _served(servers, MAX_DESCRIPTION - len(head)),
        "inputSchema": _search_schema(max_results),
        "annotations": {
            "title": "Search tools",
            "readOnlyHint": True,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        },
        "_meta": {
            "anthropic/alwaysLoad": True,
            "anthropic/searchHint": one_line(f"find discover load tools of {names}", MAX_HINT),
        },
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
    """Say what `ToolSearch` takes, and how many tools it returns unless it is told."""
    return {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What you need, or a form above."},
            "max_results": {
                "type": "integer",
                "description": "Tools to return for each query.",
                "default": max_results,
            },
            "queries": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Several queries, answered together.",
            },
            "wait": {
                "type": "number",
                "description": f"Seconds to wait for starting servers, up to {MAX_WAIT:g}.",
            },
            "offset": {"type": "integer", "description": "Matches to skip, to go on."},
        },
    }


_CALL_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": f"The tool's name, from `{TOOL_SEARCH}`."},
        "arguments": {
            "type": "object",
            "description": "The tool's arguments, as its definition asks for them.",
            "additionalProperties": True,
        },
    },
    "required": ["name"],
}

_CALL_TOOL: JsonObject = {
    "name": CALL_TOOL,
    "title": "Call a found tool",
    "description": (
        f"Calls any tool behind this server by name and returns its result. `{TOOL_SEARCH}` gives "
        'names and parameters. Example: {"name": "slack__send_message", '
        '"arguments": {"channel": "general", "text": "hello"}}'
    ),
    "inputSchema": _CALL_SCHEMA,
    "annotations": {
        "title": "Call a found tool",
        "readOnlyHint": False,
        "destructiveHint": True,
        "idempotentHint": False,
        "openWorldHint": True,
    },
    "_meta": {
        "anthropic/alwaysLoad": True,
        "anthropic/searchHint": f"call run use a tool found by {TOOL_SEARCH}",
    },
}

_CALL_READ_ONLY_TOOL: JsonObject = {
    "name": CALL_READ_ONLY_TOOL,
    "title": "Call a found read-only tool",
    "description": (
        f"Like `{CALL_TOOL}`, but only for tools that change nothing, as `{TOOL_SEARCH}` says; "
        "it refuses all others. Safe while planning, and in parallel."
    ),
    "inputSchema": _CALL_SCHEMA,
    "annotations": {
        "title": "Call a found read-only tool",
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": True,
    },
    "_meta": {
        "anthropic/alwaysLoad": True,
        "anthropic/searchHint": f"call a read-only tool found by {TOOL_SEARCH}",
    },
}
