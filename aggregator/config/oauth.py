"""How to log in to a server, as far as it does not say so itself."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple

Grant = Literal["authorization_code", "client_credentials"]


class OAuth(NamedTuple):
    """What an authorisation server knows us by, and what it is asked for."""

    client_id: str | None = None
    client_secret: str | None = None
    private_key: Path | None = None
    """A file with the key to sign with, in the place of a secret."""
    scopes: tuple[str, ...] = ()
    redirect_uri: str | None = None
    authorization_params: Mapping[str, str] = MappingProxyType({})
    """What is added to the address at which a person logs in."""
    resource: str | Literal[False] | None = None
    """What the login is said to be for: another address than the server's, or nothing at all."""
    issuer: str | None = None
    """The only authorisation server that is believed."""
    client_metadata_url: str | None = None
    verify: bool = True
    """Whether an authorisation server at another address than the server has to prove who it is."""
    grant: Grant = "authorization_code"

    def __repr__(self) -> str:
        return f"<OAuth {self.grant} {self.client_id or 'registered'}>"
