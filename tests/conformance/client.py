"""Our downstream half as the client that the suite tests: the aggregator, and one who uses it.

`python -m tests.conformance.client URL` puts the aggregator in front of the suite's own server,
and calls everything that server offers through it, answering whatever is asked.
"""

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
from mcp.shared.exceptions import MCPError

from aggregator.app.life import IDENTITY
from aggregator.config import Config, ServerConfig, Settings
from aggregator.downstream.http.reach import reach
from aggregator.fleet.fleet import Fleet
from aggregator.memory import NoMemory
from aggregator.names import ServerName
from aggregator.upstream.client_memory import ClientMemory
from aggregator.upstream.connected_clients import ConnectedClients
from aggregator.upstream.server import Upstream
from tests.raw import Json, RawClient, raw_client

NAME = ServerName("suite")
ABLE: Json = {"elicitation": {}, "sampling": {}, "roots": {}}


async def main(url: str) -> None:
    """Use everything there is behind an address."""
    server = ServerConfig(NAME, "", type="http", url=url)
    config = Config(Path("servers.yaml"), {NAME: server}, Settings(surface="full"))
    connected = ConnectedClients()
    fleet = Fleet(config, connect=reach, identity=IDENTITY, events=connected)
    upstream = Upstream(fleet, connected, ClientMemory(NoMemory(), config.path))
    async with anyio.create_task_group() as group:
        group.start_soon(fleet.run)
        group.start_soon(upstream.announce_changes)
        with anyio.fail_after(20):
            await settled(upstream)
        async with raw_client(upstream, "handshake", ABLE) as client:
            await use(client)
        group.cancel_scope.cancel()


async def settled(upstream: Upstream) -> None:
    """Wait until the server has been listed, besides its tools too."""
    while upstream.fleet.now.catalog.pending:
        await upstream.fleet.changed.wait()
    with anyio.move_on_after(1):
        await upstream.fleet.changed.wait()


async def use(client: RawClient) -> None:
    """Call every tool, read every resource and get every prompt."""
    client.answers = {
        "elicitation/create": filled_in,
        "sampling/createMessage": lambda _params: {
            "role": "assistant",
            "content": {"type": "text", "text": "Yes"},
            "model": "none",
        },
        "roots/list": lambda _params: {"roots": []},
    }
    context: Json = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    tools: list[Json] = (await client.request("tools/list"))["tools"]
    calls: list[Json] = context.get("toolCalls") or [
        {"name": tool["name"], "arguments": example(tool["inputSchema"], tools)} for tool in tools
    ]
    for call in calls:
        await attempt(client, "tools/call", call)
    for resource in (await client.request("resources/list"))["resources"]:
        await attempt(client, "resources/read", {"uri": resource["uri"]})
    for prompt in (await client.request("prompts/list"))["prompts"]:
        await attempt(client, "prompts/get", {"name": prompt["name"], "arguments": {}})


async def attempt(client: RawClient, method: str, params: Json) -> None:
    """Ask something; some of the suite's servers only look at how they are asked."""
    with suppress(MCPError):
        await client.request(method, params)


def filled_in(params: Json) -> Json:
    """Answer a form with its defaults."""
    properties: dict[str, Json] = params["requestedSchema"]["properties"]
    content = {name: each["default"] for name, each in properties.items() if "default" in each}
    return {"action": "accept", "content": content}


def example(schema: Json, tools: list[Json]) -> Json:
    """Make arguments that fit a schema; who asks for a schema is given that of the first tool."""
    properties: dict[str, Json] = schema.get("properties") or {}
    examples = {name: EXAMPLES.get(each.get("type", ""), "x") for name, each in properties.items()}
    return {**examples, "schema": tools[0]["inputSchema"]} if "schema" in examples else examples


EXAMPLES: dict[str, Any] = {"number": 2, "integer": 3, "boolean": True, "array": [], "object": {}}


if __name__ == "__main__":
    anyio.run(main, sys.argv[1])
