"""Who asks: one value, by which sessions, profiles, limits and records tell one from another.

The door finds out who it is and writes it into the scope of the request. Whoever comes in by
standard streams or through a hub is whoever runs us.
"""

from typing import NamedTuple

from starlette.requests import HTTPConnection

IDENTITY = "aggregator.identity"
"""Where in the scope of a request the door writes whose it is."""


class Identity(NamedTuple):
    """Somebody who was let in; without a key, whoever runs us."""

    name: str = ""
    """What people know it by: the name of a token, or the subject of a login."""
    key: str = ""
    """What its sessions belong to; it tells it from all others, and opens nothing."""
    holder: str = ""
    """Whom its calls are counted for, whichever program makes them."""
    profile: str | None = None
    """What alone it may see, where that was settled with what it shows."""
    issuer: str = ""
    """Who says so, if that is somebody else."""
    scopes: frozenset[str] | None = None
    """What it was given there, by which it is settled what it sees."""
    expires: float | None = None
    """When that is no longer said, in seconds since the epoch."""

    @property
    def is_operator(self) -> bool:
        """Whether it is whoever runs us, and whose the logins are."""
        return not self.key


OPERATOR = Identity()


def identity_of(request: HTTPConnection | None) -> Identity:
    """Return whose a request is, as the door has found it."""
    return OPERATOR if request is None else request.scope.get(IDENTITY, OPERATOR)
