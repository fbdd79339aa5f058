"""How commands of the same person come in by a door that is open."""

import json
import re
import ssl
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import NamedTuple

PATIENCE = 10.0
"""Seconds that a door has to answer."""
MAX_ANSWER = 1000

_CERTIFICATE = re.compile("-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


class Door(NamedTuple):
    """Where a door is, and how to come in."""

    authority: str
    """Its host and port."""
    token_file: str | None = None
    """Where its token is, if it is in a file."""
    token: str | None = None
    """The token itself, if it is in no other file."""
    certificate: str | None = None
    """The file with its certificate, if it is behind TLS."""
    name: str | None = None
    """Its host and port as clients know it, if they know it by another name."""


def page_of(door: Door) -> str:
    """Return where the page of a door is, under a name that its certificate is for."""
    if door.certificate is None:
        return f"http://{door.authority}/"
    try:
        with closing(_reached(door, checks_name=True)) as connection:
            connection.connect()
    except (OSError, ValueError, HTTPException):
        return f"https://{door.name or door.authority}/"
    return f"https://{door.authority}/"


def code_of(door: Door, token: str) -> str | None:
    """Have a door give a code for its token; `None` if it does not."""
    from aggregator.upstream.http.page.codes import CODE  # noqa: PLC0415 - loaded late

    try:
        with closing(_reached(door)) as connection:
            connection.request("POST", CODE, headers={"authorization": f"Bearer {token}"})
            code = json.loads(connection.getresponse().read(MAX_ANSWER))["code"]
    except (OSError, HTTPException, ValueError, KeyError, TypeError):
        return None
    return str(code)


def _reached(door: Door, *, checks_name: bool = False) -> HTTPConnection:
    """Return a way to a door; behind TLS, it has to show the very certificate it is known by."""
    if door.certificate is None:
        return HTTPConnection(door.authority, timeout=PATIENCE)
    # Whether anybody else trusts who has issued it, as a private authority, does not matter.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.check_hostname = checks_name
    context.load_verify_locations(cadata=_own(door.certificate))
    return HTTPSConnection(door.authority, timeout=PATIENCE, context=context)


def _own(chain: str) -> str:
    """Return the certificate of a chain that is the door's own, which is the first.

    Whoever has issued it vouches for others as well, and may for all the world.
    """
    text = Path(chain).read_text(encoding="ascii", errors="replace")
    found = _CERTIFICATE.search(text)
    return found[0] if found else text
