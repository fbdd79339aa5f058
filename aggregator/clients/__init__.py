"""What is known of each client, by the names it has."""

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import TypeVar

from aggregator.clients.client import Client, ClientProfile, FileTemplate, SurfaceChoice
from aggregator.clients.table import CLIENTS

T = TypeVar("T")

__all__ = [
    "CLIENTS",
    "INSTALLABLE",
    "UNKNOWN",
    "Client",
    "ClientProfile",
    "FileTemplate",
    "SurfaceChoice",
    "is_same_client",
    "known_clients",
    "likely_meant",
    "profile",
    "said_of",
    "sent_names",
]

INSTALLABLE = tuple(client for client in CLIENTS if client.files)
"""The clients that we can be registered in, as we know their files."""

UNKNOWN = ClientProfile(title="an unknown client", evidence="it is not in the table of clients")


def profile(client_name: str, overrides: Mapping[str, SurfaceChoice]) -> ClientProfile:
    """Return what is known of a client; `overrides` sets surfaces by the same names."""
    known = known_clients().get(_key(client_name), UNKNOWN)
    return known._replace(surface=said_of(client_name, overrides)) if overrides else known


def said_of(client_name: str, overrides: Mapping[str, T]) -> T | None:
    """Return what is said of a client by any of its names' spellings, the last if several are."""
    if not overrides:
        return None
    key = _key(client_name)
    return {_key(name): each for name, each in overrides.items()}.get(key)


def is_same_client(one: str, other: str) -> bool:
    """Return whether two names are those of the same client."""
    return _key(one) == _key(other)


@cache
def known_clients() -> Mapping[str, ClientProfile]:
    """Return what is known of each program, by the names it sends, in lower case."""
    return {
        _key(name): each if each.title else each._replace(title=client.title)
        for client in CLIENTS
        for each in client.profiles
        for name in each.names
    }


def sent_names() -> Mapping[str, str]:
    """Return the name each client sends, for every name a person may know it by."""
    known = known_clients()
    names = {name: name for name in known}
    # Of several names the first is the usual one.
    names |= {each.title.casefold(): _key(each.names[0]) for each in known.values()}
    return names | {client.name: _key(client.profiles[0].names[0]) for client in CLIENTS}


ALIKE = 0.8
"""How much a name must look like another to be taken for it, where 1 is the same."""


def likely_meant(name: str) -> str | None:
    """Return the name of a known client that is likely meant by one that no such client sends."""
    from difflib import get_close_matches  # noqa: PLC0415 - only who checks a file needs it

    key, known = _key(name), sent_names()
    if key in known_clients():
        return None
    found = [key] if key in known else get_close_matches(key, known, 1, ALIKE)
    spelt = {_key(each): each for program in known_clients().values() for each in program.names}
    return spelt[known[found[0]]] if found else None


_BRIDGE = re.compile(r"\s*\(via [^)]*\)\s*$")
"""What a bridge such as `mcp-remote` adds to the name of the client it stands for."""


@lru_cache(maxsize=256)
def _key(client_name: str) -> str:
    return _BRIDGE.sub("", client_name).strip().casefold()
