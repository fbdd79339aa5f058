"""`aggregator inspect`: look at the catalog the way a client would, over stdio."""

import json
import os
import sys
from typing import Any

import anyio
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError

from aggregator.cli.environment import Environment, ExitStatus
from aggregator.cli.tables import overview, server_page, tool_page
from aggregator.config import Config
from aggregator.inspection import SERVERS_URI, TOOLS_URI
from aggregator.search import nearest
from aggregator.toolsearch import TOOL_SEARCH


def inspect(
    config: Config, environment: Environment, *, subject: str | None, wait: float, as_json: bool
) -> ExitStatus:
    """Print the catalog, one server or one tool."""
    return anyio.run(_inspect, config, environment, subject, wait, as_json)


async def _inspect(
    config: Config, environment: Environment, subject: str | None, wait: float, as_json: bool
) -> ExitStatus:
    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "aggregator", "serve", "--config", str(config.path)],
        env=dict(os.environ),
    )
    async with Client(command) as client:
        await client.call_tool(TOOL_SEARCH, {"query": "", "wait": wait})
        servers: list[dict[str, Any]] = (await _read(client, SERVERS_URI))["servers"]
        tools: list[dict[str, Any]] = (await _read(client, TOOLS_URI))["tools"]
        visible = [tool.name for tool in (await client.list_tools()).tools]
        catalog = {"servers": servers, "tools": tools, "visible": visible}
        if subject is None:
            environment.say(_json(catalog) if as_json else overview(catalog))
            return ExitStatus.FINE
        return await _show(client, environment, catalog, subject, as_json)


async def _show(
    client: Client, environment: Environment, catalog: dict[str, Any], subject: str, as_json: bool
) -> ExitStatus:
    """Print one server's tools, or one tool."""
    for server in catalog["servers"]:
        if server["name"] == subject:
            tools = [tool for tool in catalog["tools"] if tool["server"] == subject]
            page = {**server, "tools": tools}
            environment.say(_json(page) if as_json else server_page(page))
            return ExitStatus.FINE
    try:
        tool = await _read(client, f"{TOOLS_URI}/{subject}")
    except MCPError:
        names = [each["name"] for each in (*catalog["servers"], *catalog["tools"])]
        close = ", ".join(f"`{name}`" for name in nearest(subject, names))
        hint = f"The closest are {close}" if close else "`aggregator inspect` lists them"
        environment.complain(f"there is no server or tool `{subject}`", hint)
        return ExitStatus.ERROR
    environment.say(_json(tool) if as_json else tool_page(tool))
    return ExitStatus.FINE


async def _read(client: Client, uri: str) -> dict[str, Any]:
    result = await client.read_resource(uri)
    return json.loads(getattr(result.contents[0], "text", "{}"))


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)
