"""This process among several that serve the same clients, or by itself."""

from collections.abc import Sequence
from dataclasses import field
from typing import Protocol

from aggregator.basics.frozen import frozen
from aggregator.downstream.login.shared_renewal import SharedRenewal
from aggregator.errors import ElsewhereError, ServerUnavailableError
from aggregator.fleet.client_processes import Tenure
from aggregator.names import ServerName
from aggregator.upstream.seal import Cipher, Sealer

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

    async def lease(self, what: str, tenure: Tenure, home: str | None, /) -> str | None:
        """Have what only one replica may have; return which has it, if that can be known."""
        ...

    def counted(self, place: str, lines: Sequence[bytes], /) -> None:
        """Say what was counted here, and in which place it is written."""
        ...

    def changed(self, profile: str | None, what: str, /) -> None:
        """Say that clients of a profile that listen elsewhere would get another list here."""
        ...

    def listens(self, profile: str | None, /) -> None:
        """Say that a client of a profile listens here."""
        ...


@frozen
class Replica:
    """One of those processes; what it seals, each of them can open."""

    name: str = ""
    """What tells it from the others, also once it was started again."""
    cipher: Cipher | None = field(default=None, repr=False)
    """What they have in common; nothing where there are no others."""
    sealer: Sealer = field(default_factory=Sealer, repr=False)
    """Seals what clients carry from one request to the next."""
    post: Post | None = None
    """How the others are reached, if they have more in common than keys."""
    shared_renewal: SharedRenewal | None = None
    """What the others know of logins that they have, too."""

    @property
    def is_alone(self) -> bool:
        """Whether all requests of a client come here."""
        return self.cipher is None

    @property
    def keeps_lists(self) -> bool:
        """Whether no list may grow, since nobody else would know of it."""
        return not self.is_alone and self.post is None

    async def claim(
        self, server: ServerName, who: str, tenure: Tenure, *, home: str | None
    ) -> None:
        """See to it that a process of a client's own may be begun here.

        It is where the client first needs it; where no store says so, where the client is at home.

        Raises:
            ElsewhereError: It is at another replica.
            ServerUnavailableError: It can be at none.
        """
        if self.is_alone:
            return
        if self.post is not None:
            home = await self.post.lease(f"{server} {who}", tenure, home)
        if home is None:
            raise ServerUnavailableError(server, UNSETTLED)
        if home != self.name:
            raise ElsewhereError(f"the process that this client has of `{server}`", home)


ALONE = Replica()
"""The only process that serves its clients."""
