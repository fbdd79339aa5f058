"""The processes that calls are measured against, each a program of its own."""

SERVER = """\
import sys, anyio, mcp_types as types
from mcp.server import Server
from mcp.server.runner import serve_loop
from mcp.server.stdio import stdio_server
async def list_tools(ctx, params):
    schema = {"type": "object", "properties": {"size": {"type": "integer"}}}
    return types.ListToolsResult(tools=[types.Tool(name="fill", input_schema=schema)])
async def call_tool(ctx, params):
    text = "x" * (params.arguments or {}).get("size", 100)
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])
async def main():
    server = Server("server", on_list_tools=list_tools, on_call_tool=call_tool)
    options = server.create_initialization_options()
    async with stdio_server() as (read, write):
        if sys.argv[-1] == "handshake":
            await serve_loop(server, read, write, lifespan_state={}, init_options=options)
        else:
            await server.run(read, write, options)
anyio.run(main)
"""
"""A server on the SDK with one tool that answers with as many characters as it is asked for.

With `handshake` as its last argument it knows no other era.
"""

FORWARDER = """\
import sys, anyio
from mcp import Client, StdioServerParameters
from mcp.server import Server
from mcp.server.stdio import stdio_server
async def main():
    command = StdioServerParameters(command=sys.executable, args=["-c", sys.argv[1]])
    async with Client(command) as client:
        async def list_tools(ctx, params):
            return await client.list_tools()
        async def call_tool(ctx, params):
            return await client.call_tool(params.name.removeprefix("one__"), params.arguments)
        server = Server("forwarder", on_list_tools=list_tools, on_call_tool=call_tool)
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())
anyio.run(main)
"""
"""The plainest forwarder that can be written on the SDK."""

FASTMCP = """\
import sys
from fastmcp.server import create_proxy
one = {"command": sys.executable, "args": ["-c", sys.argv[1]]}
proxy = create_proxy({"mcpServers": {"one": one}})
proxy.run(show_banner=False, log_level="ERROR")
"""
"""FastMCP's proxy of the same server."""
