"""An MCP server that makes spans of its own, as the SDK does where a provider is set."""

import sys
from typing import Any

import anyio
import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.server.runner import serve_loop
from mcp.server.stdio import stdio_server
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

Context = ServerRequestContext[Any, Any]


async def list_tools(_ctx: Context, _params: object) -> types.ListToolsResult:
    tool = types.Tool(name="add", input_schema={"type": "object"})
    return types.ListToolsResult(tools=[tool])


async def call_tool(_ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    text = types.TextContent(type="text", text="canary-result")
    failed = bool((params.arguments or {}).get("fail"))
    return types.CallToolResult(content=[text], is_error=failed)


async def main() -> None:
    provider = TracerProvider(resource=Resource.create({"service.name": "behind"}))
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    server: Server[Any] = Server("behind", on_list_tools=list_tools, on_call_tool=call_tool)
    options = server.create_initialization_options()
    async with stdio_server() as (read, write):
        if sys.argv[1] == "modern":
            await server.run(read, write, options)
        else:
            await serve_loop(server, read, write, lifespan_state=None, init_options=options)


anyio.run(main)
