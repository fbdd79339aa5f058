"""How to connect to a server that `servers.yaml` names by its URL."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from aggregator.config import ServerConfig
from aggregator.downstream.http.endpoint import Address, open_endpoint
from aggregator.downstream.http.events import open_events
from aggregator.downstream.http.streamable import open_streamable
from aggregator.downstream.transport import Connect, Transport


def reach(server: ServerConfig) -> Connect:
    """Return how to reach a server over HTTP."""
    carry = open_events if server.type == "sse" else open_streamable

    @asynccontextmanager
    async def connect() -> AsyncGenerator[Transport, None]:
        async with open_endpoint(address(server)) as endpoint, carry(endpoint) as transport:
            yield transport

    return connect


def address(server: ServerConfig) -> Address:
    """Return where a server is, as its configuration has it."""
    return Address(
        url=server.url or "",
        headers=server.headers,
        max_message_bytes=server.max_message_bytes,
        ca_file=server.ca_file,
        verify=server.verify,
        client_cert=server.client_cert,
        client_key=server.client_key,
        proxy=server.proxy,
    )
