"""Where an issuer publishes its keys: found by its own description, fetched within bounds."""

import json
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any, Protocol
from urllib.parse import urlsplit

import anyio
import httpx2
from anyio import to_thread

from aggregator.basics.glyphs import on_one_line
from aggregator.basics.json import is_plain_object
from aggregator.config.http import Issuer
from aggregator.config.quantities import is_http
from aggregator.upstream.http.issuer.keyset import KeysError, KeySet, read_keys

PATIENCE = 10.0
"""Seconds that it may take to find and to fetch the keys."""
MAX_QUOTED = 200


class _Reply(Protocol):
    """What an issuer answers."""

    @property
    def status(self) -> int: ...

    @property
    def body(self) -> bytes: ...


async def fetch_keys(issuer: Issuer) -> KeySet:
    """Return the keys of an issuer.

    Raises:
        KeysError: There are none to be had.
    """
    # Whoever has no issuer does not wait for what HTTP takes on this side.
    from aggregator.downstream.http.address import Address  # noqa: PLC0415 - see above
    from aggregator.downstream.http.tokens import getter  # noqa: PLC0415 - see above
    from aggregator.downstream.login.credentials import RenewalError  # noqa: PLC0415 - see above

    fetch = getter(Address(issuer.name, ca_file=issuer.ca_file))
    try:
        with anyio.fail_after(PATIENCE):
            described = await _described(issuer.name, fetch)
            reply = await fetch(keys_in(described, issuer.name))
            if reply.status != HTTPStatus.OK:
                raise KeysError(f"its keys were answered with {reply.status}")
            return await to_thread.run_sync(partial(read_keys, reply.body))
    except TimeoutError as error:
        raise KeysError(f"it did not answer within {PATIENCE:g} s") from error
    # Where no thread can be started, it is tried again later.
    except (RenewalError, httpx2.InvalidURL, OSError, ValueError, RuntimeError) as error:
        raise KeysError(on_one_line(str(error))) from error


async def _described(issuer: str, fetch: Callable[[str], Awaitable[_Reply]]) -> Mapping[str, Any]:
    """Return how an issuer describes itself, where it has the very name that we know it by."""
    other: object = None
    for place in places(issuer):
        reply = await fetch(place)
        found = _object(reply.body) if reply.status == HTTPStatus.OK else None
        if found is not None:
            if found.get("issuer") == issuer:
                return found
            other = found.get("issuer")
    if isinstance(other, str):
        told = on_one_line(other[:MAX_QUOTED])
        raise KeysError(f"it calls itself `{told}`: write `http.issuer` to the letter like that")
    raise KeysError("it does not describe itself where issuers do (`/.well-known/…`)")


def keys_in(described: Mapping[str, Any], issuer: str) -> str:
    """Return where an issuer says that its keys are.

    Raises:
        KeysError: It does not say so, or names what others could answer in its place.
    """
    from aggregator.downstream.login.discovery import astray, is_here  # noqa: PLC0415 - see above

    place = described.get("jwks_uri")
    if not isinstance(place, str) or not is_http(place):
        raise KeysError("it does not say where its keys are (`jwks_uri`)")
    parts = urlsplit(place)
    wrong = astray(place, issuer)
    if wrong is None and parts.scheme == "http" and not is_here(parts.hostname or ""):
        wrong = "is not encrypted, and not on this machine"
    if wrong is not None:
        told = on_one_line(place[:MAX_QUOTED])
        raise KeysError(f"it says that its keys are at `{told}`, which {wrong}")
    return place


def places(issuer: str) -> tuple[str, ...]:
    """Return where an issuer may describe itself: as RFC 8414 has it, then as OpenID does."""
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    ours, theirs = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
    found = (f"{origin}{ours}{path}", f"{origin}{path}{theirs}", f"{origin}{theirs}{path}")
    return tuple(dict.fromkeys(found))


def _object(body: bytes) -> Mapping[str, Any] | None:
    try:
        data: object = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return data if is_plain_object(data) else None
