"""How to connect to a server that `servers.yaml` names by its URL."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

from aggregator.config import ServerConfig
from aggregator.downstream.http.address import Address
from aggregator.downstream.http.endpoint import open_endpoint
from aggregator.downstream.http.events import open_events
from aggregator.downstream.http.streamable import open_streamable
from aggregator.downstream.http.tokens import getter, sender
from aggregator.downstream.login.credentials import Credentials, Grant, RefreshGrant
from aggregator.downstream.login.machine import MachineGrant
from aggregator.downstream.login.place import Logins
from aggregator.downstream.transport import Connect, Transport


def reach(server: ServerConfig, logins: Logins | None = None) -> Connect:
    """Return how to reach a server over HTTP, with the login to it if there may be one."""
    where = address(server)
    if logins is not None and server.may_log_in:
        where = replace(where, credentials=credentials(server, where, logins))
    return opened(server, where)


def opened(server: ServerConfig, where: Address) -> Connect:
    """Return how to reach a server at an address."""
    carry = open_events if server.type == "sse" else open_streamable

    @asynccontextmanager
    async def connect() -> AsyncGenerator[Transport, None]:
        async with open_endpoint(where) as endpoint, carry(endpoint) as transport:
            yield transport

    return connect


def credentials(server: ServerConfig, where: Address, logins: Logins) -> Credentials:
    """Return the login to a server, which need not be there yet."""
    grant: Grant = RefreshGrant(sender(where))
    if server.oauth and server.oauth.grant == "client_credentials":
        grant = MachineGrant(server.url or "", server.oauth, sender(where), getter(where))
    return Credentials(
        logins.file(server), grant, logins.command(server), shared_renewal=logins.shared_renewal
    )


def address(server: ServerConfig) -> Address:
    """Return where a server is, as its configuration has it."""
    return Address(
        url=server.url or "",
        headers=server.headers,
        max_message_bytes=server.max_message_bytes,
        ca_file=server.ca_file,
        verify=server.verify,
        verify_login=server.oauth.verify if server.oauth else True,
        client_cert=server.client_cert,
        client_key=server.client_key,
        proxy=server.proxy,
    )
