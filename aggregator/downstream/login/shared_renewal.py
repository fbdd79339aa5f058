"""Several machines that have the same login: one of them renews it, and the others take it over."""

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from aggregator.downstream.login.record import Login


class SharedRenewal(Protocol):
    """What these machines know of what became of a login."""

    def turn(self, login: Login, /) -> AbstractAsyncContextManager[Login]:
        """Be the only one to renew a login for the length of the block, as it is by now.

        Raises:
            RenewalError: Another does not come to an end.
        """
        ...

    async def renewed(self, login: Login, by: Login, /) -> None:
        """Tell the others by what a login was renewed."""
        ...
