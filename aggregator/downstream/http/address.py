"""Where a server is: whom to trust on the way to it, and how to prove who we are."""

import ssl
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

import httpx2

from aggregator.basics.frozen import frozen
from aggregator.downstream.login.credentials import Bearer


@frozen
class Address:
    """Where a server is, and how it is reached."""

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    max_message_bytes: int = 16 << 20
    ca_file: Path | None = None
    """Certificates to trust instead of the usual ones."""
    verify: bool = True
    """Whether the server has to prove who it is."""
    verify_login: bool = True
    """Whether an authorisation server elsewhere has to."""
    client_cert: Path | None = None
    """Certificate to prove who we are."""
    client_key: Path | None = None
    proxy: str | None = field(default=None, repr=False)
    credentials: Bearer | None = field(default=None, repr=False)
    """The login to show with each request."""


def tls_context(address: Address) -> ssl.SSLContext:
    """Return whom to trust on the way to an address, and how to prove who we are.

    Raises:
        OSError: A certificate cannot be read.
    """
    if not address.url.lower().startswith("https:"):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if address.ca_file is not None and address.verify:
        context = ssl.create_default_context(cafile=address.ca_file)
    else:
        context = httpx2.create_ssl_context(verify=address.verify)
    context.set_alpn_protocols(["http/1.1"])
    if address.client_cert is not None:
        context.load_cert_chain(address.client_cert, address.client_key)
    return context
