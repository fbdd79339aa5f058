"""An MCP server that makes spans of its own, as the SDK does where a provider is set.

    traced_server.py ERA [http]

Over HTTP it says where it is first.
"""

import sys
from typing import Any, Literal

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
Era = Literal["handshake", "modern"]


async def list_tools(_ctx: Context, _params: object) -> types.ListToolsResult:
    tool = types.Tool(name="add", input_schema={"type": "object"})
    return types.ListToolsResult(tools=[tool])


async def call_tool(_ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    text = types.TextContent(type="text", text="canary-result")
    failed = bool((params.arguments or {}).get("fail"))
    return types.CallToolResult(content=[text], is_error=failed)


async def serve_http(server: Server[Any], era: Era) -> None:
    # Who is started over stdio knows nothing of the tests.
    from tests.loopback.web import peer_at  # noqa: PLC0415 - see above

    async with peer_at(server, era) as url:
        sys.stdout.write(f"{url}\n")
        sys.stdout.flush()
        await anyio.sleep_forever()


async def serve_stdio(server: Server[Any], era: Era) -> None:
    options = server.create_initialization_options()
    async with stdio_server() as (read, write):
        if era == "modern":
            await server.run(read, write, options)
        else:
            await serve_loop(server, read, write, lifespan_state=None, init_options=options)


async def main() -> None:
    provider = TracerProvider(resource=Resource.create({"service.name": "behind"}))
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    server: Server[Any] = Server("behind", on_list_tools=list_tools, on_call_tool=call_tool)
    era: Era = "modern" if sys.argv[1] == "modern" else "handshake"
    await (serve_http if "http" in sys.argv else serve_stdio)(server, era)


anyio.run(main)
