"""Small catalogs, and the view that a client has of them."""

from collections.abc import Mapping
from typing import Any

from aggregator.basics.json import JsonObject
from aggregator.catalog import Catalog, Ready, ServerState, ToolEntry
from aggregator.names import Lookup, ServerName, ToolName, prefixes, qualify
from aggregator.search.index import Index
from aggregator.toolsearch import SearchRequest, parse_search
from aggregator.toolsearch.answer import Answer, tell
from aggregator.toolsearch.find import search
from aggregator.toolsearch.view import View


def tool(name: str, description: str = "", **properties: Any) -> dict[str, Any]:
    """Describe a tool; a parameter whose schema says `required: True` is required."""
    needed = [each for each, schema in properties.items() if schema.pop("required", None) is True]
    schema = {"type": "object", "properties": properties, "required": needed}
    return {"name": name, "description": description, "inputSchema": schema}


def text(*, required: bool = False, **rest: Any) -> dict[str, Any]:
    return {"type": "string", **rest, **({"required": True} if required else {})}


def ready(server: str, *tools: JsonObject, read_only: bool = False) -> Ready:
    name = ServerName(server)
    names = qualify(prefixes([server])[name], [each["name"] for each in tools])
    entries = (ToolEntry(names[each["name"]], name, each, read_only=read_only) for each in tools)
    return Ready(tuple(entries))


def entry_of(definition: JsonObject, server: str = "demo") -> ToolEntry:
    return ready(server, definition).entries[0]


SLACK = ready(
    "slack",
    tool("send_message", "Send a message to a channel.", channel=text(required=True), text=text()),
    tool("list_channels", "List the channels.", limit={"type": "integer", "default": 100}),
)
GITHUB = ready("github", tool("create_issue", "Open an issue.", title=text(required=True)))
EMAIL = ready("email", tool("send_email", "Send an email.", to=text(required=True)))


def view_of(states: Mapping[str, ServerState], **rest: Any) -> View:
    catalog = Catalog({ServerName(server): state for server, state in states.items()})
    index = Index(tuple(catalog.servers))
    for server, state in catalog.servers.items():
        if isinstance(state, Ready):
            index.update(server, state.entries)
    entries = catalog.entries.values()
    lookup = Lookup.of((each.name, each.server, each.own_name) for each in entries)
    return View(catalog=catalog, lookup=lookup, index=index, **rest)


def answer(request: SearchRequest, view: View) -> Answer:
    """Search, and tell what was found."""
    return tell(search(request, view), view)


def ask(view: View, query: str = "", **rest: Any) -> Answer:
    return answer(parse_search({"query": query, **rest}), view)


def names(found: Answer) -> list[ToolName]:
    return [each.name for each in found.matches]
