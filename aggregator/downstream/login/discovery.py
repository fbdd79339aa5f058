"""Which authorisation server a server believes, found out without a person and without the SDK."""

import json
from collections.abc import Awaitable, Callable, Mapping
from ipaddress import ip_address
from socket import inet_aton
from typing import NamedTuple
from urllib.parse import urlsplit

from aggregator.basics.json import is_plain_object, items
from aggregator.downstream.login.renewal import Reply, quoted

Fetch = Callable[[str], Awaitable[Reply]]
"""Gets a document; raises `RenewalError` if there is no answer."""


class Authority(NamedTuple):
    """Where tokens are given."""

    issuer: str
    token_endpoint: str
    methods: tuple[str, ...] = ()
    """How a client may prove itself there."""
    resource: str | None = None
    """What the server calls itself there."""


class DiscoveryError(Exception):
    """Nothing could be found out, in words that fit behind a colon."""


async def discover(url: str, issuer: str | None, named: str, fetch: Fetch) -> Authority:
    """Find where tokens for a server are given.

    `issuer` is the only authorisation server to believe, if there is one; `named` is where the
    server says that it describes itself.

    Raises:
        DiscoveryError: It cannot be found, or is another.
    """
    described = await _first((named, *_resource_places(url)), fetch)
    resource = described.get("resource")
    if isinstance(resource, str) and not covers(resource, url):
        raise DiscoveryError(f"it says that logins are for `{quoted(resource)}`")
    servers = [each for each in items(described.get("authorization_servers")) if is_text(each)]
    chosen = issuer or (servers[0] if servers else origin(url))
    if issuer and servers and not any(is_same(each, issuer) for each in servers):
        raise DiscoveryError(f"it believes `{quoted(servers[0])}`, and not the `issuer` you name")
    metadata = await _first(_authority_places(chosen), fetch)
    endpoint = metadata.get("token_endpoint")
    if not is_text(endpoint):
        raise DiscoveryError(f"`{quoted(chosen)}` does not say where it gives tokens")
    if not is_same(str(metadata.get("issuer")), chosen):
        told = quoted(str(metadata.get("issuer")))
        raise DiscoveryError(f"`{quoted(chosen)}` says that it is `{told}`")
    methods = items(metadata.get("token_endpoint_auth_methods_supported"))
    return Authority(
        str(metadata["issuer"]),
        str(endpoint),
        tuple(filter(is_text, methods)),
        resource if isinstance(resource, str) else None,
    )


async def _first(places: tuple[str, ...], fetch: Fetch) -> Mapping[str, object]:
    """Return the first of some documents that is one, or nothing."""
    for place in filter(None, places):
        reply = await fetch(place)
        if reply.status == 200:  # noqa: PLR2004 - fine
            try:
                data: object = json.loads(reply.body)
            except (ValueError, RecursionError):
                continue
            if is_plain_object(data):
                return data
    return {}


def _resource_places(url: str) -> tuple[str, ...]:
    base = f"{origin(url)}/.well-known/oauth-protected-resource"
    path = urlsplit(url).path.rstrip("/")
    return (f"{base}{path}", base) if path else (base,)


def _authority_places(issuer: str) -> tuple[str, ...]:
    base, path = f"{origin(issuer)}/.well-known", urlsplit(issuer).path.rstrip("/")
    found = (f"{base}/oauth-authorization-server{path}", f"{base}/openid-configuration{path}")
    return (*found, f"{origin(issuer)}{path}/.well-known/openid-configuration") if path else found


def covers(resource: str, url: str) -> bool:
    """Whether a login for one address is for another: the same, or one below it."""
    one, other = urlsplit(resource), urlsplit(url)
    if (one.scheme, one.netloc.lower()) != (other.scheme, other.netloc.lower()):
        return False
    return f"{other.path.rstrip('/')}/".startswith(f"{one.path.rstrip('/')}/")


HERE = "is on this machine, and its server is not"


def astray(url: str, server: str) -> str | None:
    """Say why the login to a server must not lead to an address that somebody names; if it may not.

    A server elsewhere has no business with this machine, nor with what only it can reach.
    """
    parts, own = urlsplit(url), urlsplit(server)
    if parts.scheme not in ("https", "http") or not parts.hostname:
        return "is no address of the web"
    if parts.username is not None or parts.password is not None:
        return "has a name before its host, which may be taken for the host"
    if is_here(parts.hostname) and not is_here(own.hostname or ""):
        return HERE
    if parts.scheme == "http" and own.scheme == "https":
        return "is not encrypted, and its server is"
    return None


def is_here(host: str) -> bool:
    """Whether a host is this machine, or what only this machine sees."""
    name = host.rstrip(".").lower()
    try:
        # An address may be written as one number, in any base, or with parts left out.
        found = ip_address(host.partition("%")[0] if ":" in host else inet_aton(name))
    except (ValueError, OSError):
        return name == "localhost" or name.endswith(".localhost")
    found = getattr(found, "ipv4_mapped", None) or found
    return found.is_loopback or found.is_link_local or found.is_unspecified


def origin(url: str) -> str:
    """Return who is behind an address."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def is_same(one: str, other: str) -> bool:
    """Whether two names are of one authorisation server; a slash at the end is no difference."""
    return one.rstrip("/") == other.rstrip("/")


def is_text(value: object) -> bool:
    """Whether a value is a text that says something."""
    return isinstance(value, str) and bool(value)
