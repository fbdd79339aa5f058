"""Logins that were had without a person, and what shows them to a server."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from aggregator.config import ServerConfig
from aggregator.downstream.login.file import LoginFile
from aggregator.downstream.login.place import Logins
from aggregator.downstream.login.record import Client, Login
from aggregator.names import ServerName
from tests.downstream.login.authority import REGISTERED, SECRET, Authority, Grant

WEB = ServerName("web")


def login(**changes: Any) -> Login:
    """Return a login like any other."""
    base = Login(
        url="https://mcp.example.com/mcp",
        issuer="https://auth.example.com",
        token_endpoint="https://auth.example.com/token",  # noqa: S106 - an address
        client=Client("a-client", redirect_uris=("http://127.0.0.1:1/callback",)),
        access_token="access-1",  # noqa: S106 - of nobody
        obtained_at=0.0,
        expires_at=3600.0,
        refresh_token="refresh-1",  # noqa: S106 - of nobody
        scope="read",
    )
    return base._replace(**changes)


def logins_in(directory: Path) -> Logins:
    """Return the logins of somebody whose state is in a directory."""
    return Logins(directory / "logins", directory / "servers.yaml")


def server_at(url: str, **options: Any) -> ServerConfig:
    """Return a server at an address."""
    return ServerConfig(WEB, "web", type="http", url=url, **options)


def had(
    authority: Authority,
    file: LoginFile,
    clock: Callable[[], float],
    scopes: tuple[str, ...] = ("read",),
) -> Login:
    """Log in to the server without a person, and keep that."""
    tokens = authority.grant(Grant(REGISTERED, list(scopes), authority.resource))
    found = Login(
        url=authority.resource,
        issuer=authority.origin,
        token_endpoint=f"{authority.origin}/token",
        revocation_endpoint=f"{authority.origin}/revoke",
        client=Client(REGISTERED, SECRET, "client_secret_basic"),
        access_token=tokens.access_token,
        obtained_at=clock(),
        expires_at=clock() + authority.lifetime,
        refresh_token=tokens.refresh_token,
        scope=tokens.scope or "",
        resource=authority.resource,
    )
    file.write(found)
    return found
