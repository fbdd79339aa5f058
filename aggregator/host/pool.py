"""What there is to find: the tools behind an aggregator, as one value."""

from collections.abc import Mapping
from typing import NamedTuple

from aggregator.basics.json import JsonObject, as_object, items


class Tool(NamedTuple):
    """One tool, whoever runs it."""

    name: str
    description: str
    input_schema: JsonObject
    server: str = ""
    """Empty for a tool of the agent's author."""
    always_load: bool = False


class Pool(NamedTuple):
    """Every tool behind an aggregator at one moment."""

    search: Tool
    """The tool by which a model finds the others."""
    tools: Mapping[str, Tool]
    servers: Mapping[str, str]
    """The state of each server: `ready`, `pending`, `failed`."""

    @property
    def pending(self) -> tuple[str, ...]:
        """The servers whose tools may still come."""
        return tuple(name for name, state in self.servers.items() if state == "pending")


def read_pool(document: JsonObject) -> Pool:
    """Read the document that an aggregator describes its tools by."""
    tools = [_tool(as_object(each)) for each in items(document.get("tools"))]
    servers = [as_object(each) for each in items(document.get("servers"))]
    return Pool(
        search=_tool(as_object(document.get("search"))),
        tools={tool.name: tool for tool in tools},
        servers={str(each.get("name")): str(each.get("state")) for each in servers},
    )


def _tool(described: JsonObject) -> Tool:
    return Tool(
        name=str(described.get("name", "")),
        description=str(described.get("description") or ""),
        input_schema=as_object(described.get("inputSchema")),
        server=str(described.get("server") or ""),
        always_load=described.get("alwaysLoad") is True,
    )
