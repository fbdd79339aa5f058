"""This process among several that serve the same clients, or by itself."""

from dataclasses import dataclass, field

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


@dataclass(frozen=True, slots=True)
class Replica:
    """One of those processes; what it seals, each of them can open."""

    name: str = ""
    """What tells it from the others, also once it was started again."""
    wax: Wax | None = field(default=None, repr=False)
    """What they have in common; nothing where there are no others."""
    sealer: Sealer = field(default_factory=Sealer, repr=False)
    """Seals what clients carry from one request to the next."""

    @property
    def is_alone(self) -> bool:
        """Whether all requests of a client come here."""
        return self.wax is None

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
