"""A client that calls the tools of an example server and looks at what comes back."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.server import MCPServer
from mcp_types import CallToolResult, TextContent

SERVERS = Path(__file__).parents[2] / "examples" / "servers"
NAMES = ("notes", "files", "board", "text", "units")

Load = Callable[[str], MCPServer[Any]]


class Caller:
    """Calls tools by name with keyword arguments."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def call(self, tool: str, /, **arguments: Any) -> Any:
        """Return what the tool answers: its structured content, or else its text."""
        result = await self.client.call_tool(tool, arguments)
        assert not result.is_error, text_of(result)
        if result.structured_content is None:
            return text_of(result)
        return result.structured_content

    async def refusal(self, tool: str, /, **arguments: Any) -> str:
        """Return the error text of a call that must fail."""
        result = await self.client.call_tool(tool, arguments)
        assert result.is_error, result
        return text_of(result)


def text_of(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


Connect = Callable[[str], AbstractAsyncContextManager[Caller]]


def connector(load: Load, mode: str) -> Connect:
    """Return a way to open an example server in memory, in one era."""

    @asynccontextmanager
    async def connect(name: str) -> AsyncGenerator[Caller]:
        async with Client(load(name), mode=mode) as client:
            yield Caller(client)

    return connect
