"""This process among several that serve the same clients, or by itself."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from aggregator.errors import ElsewhereError, ServerUnavailableError
from aggregator.names import ServerName
from aggregator.upstream.seal import Sealer, Wax

ELSEWHERE = -32070
"""What a request is answered that another replica has to answer: over HTTP, to be sent again."""
UNSETTLED = (
    "each client has a process of its own there, and what comes from a client without a session "
    "reaches any of several replicas"
)
"""Why a client of the modern era cannot use a server with `perClient`."""


class Post(Protocol):
    """How other replicas are told of what concerns them."""

    def loaded(self, session: str, names: Sequence[str], /) -> None:
        """Say what the searches of a session have loaded."""
        ...

    def changed(self, profile: str | None, what: str, /) -> None:
        """Say that clients of a profile that listen elsewhere would get another list here."""
        ...

    def listens(self, profile: str | None, /) -> None:
        """Say that a client of a profile listens here."""
        ...


@dataclass(frozen=True, slots=True)
class Replica:
    """One of those processes; what it seals, each of them can open."""

    name: str = ""
    """What tells it from the others, also once it was started again."""
    wax: Wax | None = field(default=None, repr=False)
    """What they have in common; nothing where there are no others."""
    sealer: Sealer = field(default_factory=Sealer, repr=False)
    """Seals what clients carry from one request to the next."""
    post: Post | None = None
    """How the others are reached, if they have more in common than keys."""

    @property
    def is_alone(self) -> bool:
        """Whether all requests of a client come here."""
        return self.wax is None

    @property
    def keeps_lists(self) -> bool:
        """Whether no list may grow, since nobody else would know of it."""
        return not self.is_alone and self.post is None

    async def claim(self, server: ServerName, home: str | None) -> None:
        """See to it that a process of a client's own may be begun here.

        Raises:
            ElsewhereError: The client is at home in another replica.
            ServerUnavailableError: It is at home in none.
        """
        if self.is_alone or home == self.name:
            return
        if home is None:
            raise ServerUnavailableError(server, UNSETTLED)
        raise ElsewhereError(f"the process that this session has of `{server}`", home)


ALONE = Replica()
"""The only process that serves its clients."""
