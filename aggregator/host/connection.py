"""A connection to an aggregator: a child of ours, one that runs, or whatever MCP can reach."""

import json
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from types import TracebackType
from urllib.parse import urlsplit

import httpx2
import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from aggregator import __version__
from aggregator.basics.json import JsonObject
from aggregator.memory import state_path

POOL_URI = "catalog://pool"
TOKEN_VARIABLE = "AGGREGATOR_TOKEN"  # noqa: S105 - where it is, and not what
INFO = types.Implementation(name="aggregator-host", version=__version__)
CONNECT_TIMEOUT = 30.0
"""Seconds until it is given up to reach an address, or to send it anything."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Connection:
    """Asks an aggregator."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._pool: JsonObject = {}

    async def pool(self) -> JsonObject:
        """Return the document that describes every tool, the very same as long as it holds."""
        read = await self._client.read_resource(str(self._pool.get("edition", POOL_URI)))
        held = read.contents[0]
        is_text = isinstance(held, types.TextResourceContents)
        said: JsonObject = json.loads(held.text) if is_text else {}
        if "tools" in said or not self._pool:
            self._pool = said
        return self._pool

    async def call(self, name: str, arguments: JsonObject) -> JsonObject:
        """Call a tool, and return its result or the error in its place."""
        params = types.CallToolRequestParams(name=name, arguments=dict(arguments))
        request = types.CallToolRequest(params=params)
        try:
            # The client's own `call_tool` would list all tools to look at the result.
            result = await self._client.session.send_request(request, types.CallToolResult)
        except MCPError as error:
            return {"content": [{"type": "text", "text": error.message}], "isError": True}
        return result.model_dump(by_alias=True, mode="json", exclude_none=True)


Source = AbstractAsyncContextManager[Client] | Connection
"""A client of the SDK that is not open yet, or a connection that is."""


@asynccontextmanager
async def connected(
    source: AbstractAsyncContextManager[Client],
) -> AsyncGenerator[Connection, None]:
    """Connect to an aggregator for the length of the block.

    Raises:
        ConnectionError: There is none.
    """
    problem = "the aggregator did not answer, and may have said why on stderr"
    async with _Opened(source, problem) as connection:
        yield connection


@asynccontextmanager
async def connected_to(url: str, token: str | None) -> AsyncGenerator[Connection, None]:
    """Connect to an aggregator that serves at an address.

    Raises:
        ConnectionError: None answers there.
    """
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    # A call may take long, and the aggregator knows how long.
    patience = httpx2.Timeout(CONNECT_TIMEOUT, read=None)
    async with httpx2.AsyncClient(headers=headers, timeout=patience) as http:
        transport = streamable_http_client(url, http_client=http)
        source = Client(transport, client_info=INFO)
        async with _Opened(source, f"no aggregator answers at {url}") as connection:
            yield connection


class _Opened(AbstractAsyncContextManager[Connection]):
    """A client that is open, without the groups in which the SDK raises what goes wrong."""

    def __init__(self, source: AbstractAsyncContextManager[Client], problem: str) -> None:
        self._source = source
        self._problem = problem
        """What is said if nobody is reached."""

    async def __aenter__(self) -> Connection:
        try:
            return Connection(await self._source.__aenter__())
        except (ExceptionGroup, MCPError, OSError, httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise _unreached(self._problem, error) from None

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, Exception):
            # What the program raised is its own, and comes out as it is.
            kind = error = trace = None
        await self._source.__aexit__(kind, error, trace)


def _unreached(problem: str, error: Exception) -> ConnectionError:
    """Return what a program can catch, in place of the groups in which the SDK raises it."""
    met: BaseException = error
    while within := getattr(met, "exceptions", ()):
        met = within[0]
    return ConnectionError(f"{problem}: {str(met) or type(met).__name__}")


def child(config: str | Path, environment: Mapping[str, str]) -> Client:
    """Return what starts an aggregator of our own, which ends with the connection."""
    # Servers may need any variable that is set, as they do under every other client.
    arguments = ["-m", "aggregator", "serve", "--config", str(config)]
    server = StdioServerParameters(command=sys.executable, args=arguments, env=dict(environment))
    return Client(server, client_info=INFO)


def token_for(url: str, environment: Mapping[str, str]) -> str | None:
    """Return the token to show at an address: the one that is set, or our own on this machine."""
    if given := environment.get(TOKEN_VARIABLE):
        return given
    state = state_path(environment)
    if state is None or urlsplit(url).hostname not in LOOPBACK:
        return None
    try:
        return state.with_name("http-token").read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return None
