"""A server with everything that the official conformance suite looks for, in either era.

Run it as `python tests/conformance/everything.py [--era handshake|modern]`; it speaks on its
standard streams. Each call is noted in the file that `CONFORMANCE_CANARY` names.
"""

import argparse
import json
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp.server import NotificationOptions, Server, ServerRequestContext
from mcp.server.runner import serve_loop
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from tests.conformance.exchange import Exchange, InputNeededError
from tests.conformance.jobs import JOBS, TASKS, Jobs, TaskParams, UpdateParams
from tests.conformance.offers import IMAGE, PROMPTS, RESOURCES, TEMPLATES, TOOLS, get_prompt
from tests.conformance.tools import call_tool

EMPTY: dict[str, Any] = {"type": "object", "properties": {}}

Context = ServerRequestContext[Any, Any]
Handler = Callable[[Context, Any], Awaitable[dict[str, Any]]]


class Everything(Server[Any]):
    """The server; what it lists can grow and shrink while it runs."""

    def __init__(self) -> None:
        self.bus = InMemorySubscriptionBus()
        super().__init__(
            "everything",
            version="1.0.0",
            instructions="Ask for everything.",
            on_subscriptions_listen=ListenHandler(self.bus),
        )
        self.extra: dict[str, int] = {"tool": 0, "prompt": 0}
        self.jobs = Jobs()
        self.extensions[TASKS] = {}
        page = types.PaginatedRequestParams
        for method, params, handler in (
            ("tools/list", page, self._list_tools),
            ("tools/call", types.CallToolRequestParams, self._call_tool),
            ("prompts/list", page, self._list_prompts),
            ("prompts/get", types.GetPromptRequestParams, self._get_prompt),
            ("resources/list", page, self._list_resources),
            ("resources/templates/list", page, self._list_templates),
            ("resources/read", types.ReadResourceRequestParams, self._read),
            ("resources/subscribe", types.SubscribeRequestParams, self._agree),
            ("resources/unsubscribe", types.UnsubscribeRequestParams, self._agree),
            ("logging/setLevel", types.SetLevelRequestParams, self._agree),
            ("completion/complete", types.CompleteRequestParams, self._complete),
            ("tasks/get", TaskParams, self.jobs.get),
            ("tasks/update", UpdateParams, self.jobs.update),
            ("tasks/cancel", TaskParams, self.jobs.cancel),
        ):
            self.add_request_handler(method, params, _enveloped(handler))

    def options(self) -> Any:
        changes = NotificationOptions(
            prompts_changed=True, resources_changed=True, tools_changed=True
        )
        return self.create_initialization_options(changes)

    async def _list_tools(self, _ctx: Context, _params: Any) -> dict[str, Any]:
        more = [
            {"name": f"extra_tool_{number}", "description": "Extra", "inputSchema": EMPTY}
            for number in range(self.extra["tool"])
        ]
        return {"tools": [*TOOLS, *more], "ttlMs": 0, "cacheScope": "private"}

    async def _list_prompts(self, _ctx: Context, _params: Any) -> dict[str, Any]:
        more = [
            {"name": f"extra_prompt_{number}", "description": "Extra"}
            for number in range(self.extra["prompt"])
        ]
        return {"prompts": [*PROMPTS, *more], "ttlMs": 0, "cacheScope": "private"}

    async def _list_resources(self, _ctx: Context, _params: Any) -> dict[str, Any]:
        return {"resources": RESOURCES, "ttlMs": 0, "cacheScope": "private"}

    async def _list_templates(self, _ctx: Context, _params: Any) -> dict[str, Any]:
        return {"resourceTemplates": TEMPLATES, "ttlMs": 0, "cacheScope": "private"}

    async def _call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> dict[str, Any]:
        note(params.name)
        if params.name.startswith("test_trigger_"):
            return await self._grow(ctx, params.name)
        call = self.jobs.begin if params.name in JOBS else call_tool
        try:
            return await call(params.name, Exchange(ctx))
        except InputNeededError as needed:
            return needed.result

    async def _grow(self, ctx: Context, name: str) -> dict[str, Any]:
        kind = "tool" if name == "test_trigger_tool_change" else "prompt"
        self.extra[kind] += 1
        if kind == "tool":
            await self.bus.publish(ToolsListChanged())
            await ctx.session.send_tool_list_changed()
        else:
            await self.bus.publish(PromptsListChanged())
            await ctx.session.send_prompt_list_changed()
        return {"content": [{"type": "text", "text": f"There is one {kind} more"}]}

    async def _get_prompt(self, ctx: Context, params: types.GetPromptRequestParams) -> Any:
        try:
            messages = await get_prompt(params.name, params.arguments or {}, Exchange(ctx))
        except InputNeededError as needed:
            return needed.result
        return {"messages": messages}

    async def _read(self, _ctx: Context, params: types.ReadResourceRequestParams) -> Any:
        uri = str(params.uri)
        return {"contents": [{"uri": uri, **_contents(uri)}], "ttlMs": 0, "cacheScope": "private"}

    async def _complete(self, _ctx: Context, params: types.CompleteRequestParams) -> Any:
        values = [
            word for word in ("test", "paris", "park") if word.startswith(params.argument.value)
        ]
        return {"completion": {"values": values, "total": len(values), "hasMore": False}}

    async def _agree(self, _ctx: Context, _params: Any) -> dict[str, Any]:
        return {}


def _enveloped(handler: Handler) -> Handler:
    """Say of a result of the modern era that it is one."""

    async def answer(ctx: Context, params: Any) -> dict[str, Any]:
        result = await handler(ctx, params)
        is_modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        return {"resultType": "complete", **result} if is_modern else result

    return answer


def _contents(uri: str) -> Mapping[str, str]:
    """Return what a resource holds."""
    match uri:
        case "test://static-text":
            return {"mimeType": "text/plain", "text": "This is a static text resource."}
        case "test://static-binary":
            return {"mimeType": "image/png", "blob": IMAGE}
        case "test://watched-resource":
            return {"mimeType": "text/plain", "text": "Watch me."}
        case _ if uri.startswith("test://template/") and uri.endswith("/data"):
            number = uri.split("/")[3]
            text = json.dumps({"id": number, "templateTest": True, "data": f"Data for {number}"})
            return {"mimeType": "application/json", "text": text}
        case _:
            raise MCPError(types.INVALID_PARAMS, "There is no such resource", {"uri": uri})


def note(name: str) -> None:
    """Let whoever runs the suite see that a call has arrived here."""
    if path := os.environ.get("CONFORMANCE_CANARY"):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(f"{name}\n")


async def serve(era: str) -> None:
    """Speak on the standard streams, in both eras or only in the older one."""
    server = Everything()
    async with stdio_server() as (read, write):
        if era == "handshake":
            await serve_loop(server, read, write, lifespan_state={}, init_options=server.options())
        else:
            await server.run(read, write, server.options())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--era", choices=["handshake", "modern"], default="modern")
    anyio.run(serve, parser.parse_args().era)
