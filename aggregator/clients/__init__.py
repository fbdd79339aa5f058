"""What is known of each client, by the names it has."""

import re
from collections.abc import Mapping, Sequence
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
    "is_known",
    "is_meant",
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
    """Return what is said of a client by the nearest of its names: first the one that it sends.

    Of several spellings of a name, the last counts.
    """
    if not overrides:
        return None
    said = {_key(name): each for name, each in overrides.items()}
    return next((said[name] for name in names_of(client_name) if name in said), None)


def is_meant(client_name: str, name: str) -> bool:
    """Return whether a client is meant by a name, which may not be the one that it sends."""
    return _key(name) in names_of(client_name)


def is_known(name: str) -> bool:
    """Return whether a client that is known is meant by a name."""
    return _key(name) in sent_names()


def names_of(client_name: str) -> Sequence[str]:
    """Return all names that a client is meant by, in lower case, the one that it sends first."""
    key = _key(client_name)
    return _all_names().get(key, (key,))


@cache
def _all_names() -> Mapping[str, Sequence[str]]:
    """Return the names that each program is meant by, for each that it sends."""
    programs = [(client, each) for client in CLIENTS for each in client.profiles]
    names = [(*each.names, each.title or client.title, client.name) for client, each in programs]
    return {
        _key(sent): tuple(map(_key, (sent, *own, client.title)))
        for (client, each), own in zip(programs, names, strict=True)
        for sent in each.names
    }


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
    for client in CLIENTS:
        names |= dict.fromkeys((client.name, _key(client.title)), _key(client.profiles[0].names[0]))
    return names


ALIKE = 0.8
"""How much a name must look like another to be taken for it, where 1 is the same."""


def likely_meant(name: str) -> str | None:
    """Return the name of a known client that is likely meant by one that is no such client's."""
    from difflib import get_close_matches  # noqa: PLC0415 - only who checks a file needs it

    found = [] if is_known(name) else get_close_matches(_key(name), sent_names(), 1, ALIKE)
    spelt = {_key(each): each for program in known_clients().values() for each in program.names}
    return spelt.get(found[0], found[0]) if found else None


_BRIDGE = re.compile(r"\s*\(via [^)]*\)\s*$")
"""What a bridge such as `mcp-remote` adds to the name of the client it stands for."""


@lru_cache(maxsize=256)
def _key(client_name: str) -> str:
    return _BRIDGE.sub("", client_name).strip().casefold()
