"""What somebody sees at an address: `/mcp`, or `/mcp/<profile>`."""

from collections.abc import Collection
from typing import NamedTuple

from aggregator.config import Config
from aggregator.config.http import Issuer, Lacking, entry
from aggregator.upstream.http.binding import PROTOCOL
from aggregator.upstream.http.issuer.challenges import lacking
from aggregator.upstream.http.refusal import Refusal
from aggregator.upstream.identity import Identity


class Chosen(NamedTuple):
    """What was chosen by an address where clients come in, or for whoever came."""

    profile: str | None
    """The name of a profile; nothing if none was."""


def profile_at(path: str, known: Collection[str], only: str | None = None) -> Chosen | None:
    """Return what an address stands for; nothing if it is none where clients come in.

    Where all clients are to have one profile there is an address of that, and of no other.
    """
    if path == PROTOCOL:
        return Chosen(only)
    name = path.removeprefix(f"{PROTOCOL}/")
    if name == path or name not in known or only not in (None, name):
        return None
    return Chosen(name)


def chosen_for(
    identity: Identity, path: str, config: Config, only: str | None
) -> Chosen | Refusal | None:
    """Return what somebody sees at an address; nothing if there is no such address for them."""
    settings, bound = config.settings, identity.profile
    if bound is not None and only not in (None, bound):
        return None
    at = profile_at(path, settings.profiles, bound or only)
    if at is None or identity.scopes is None:
        return at
    issuer = settings.http.issuer
    return None if issuer is None else _by_scopes(identity.scopes, path, issuer, at)


def _by_scopes(
    scopes: Collection[str], path: str, issuer: Issuer, at: Chosen
) -> Chosen | Refusal | None:
    found = entry(issuer, scopes, at.profile)
    if isinstance(found, Lacking):
        return lacking(issuer, path, found.scopes)
    return found and Chosen(found.profile)


def hears_of_all(identity: Identity, config: Config, only: str | None) -> bool:
    """Whether somebody may be told of all servers: not if any is hidden from them."""
    if only is not None or identity.profile is not None or identity.scopes is not None:
        return False
    is_anything_personal = any(server.is_personal for server in config.servers.values())
    return identity.is_operator or not is_anything_personal
