"""The sessions of handshake clients, from the one that has been idle longest on."""

from collections.abc import Collection, Generator
from contextlib import contextmanager
from typing import NamedTuple


class Owner(NamedTuple):
    """Whose a session is."""

    profile: str | None = None
    grant: str | None = None
    """What is kept of the token that it was begun with, if that has a name."""


NOBODY = Owner()


class Sessions:
    """Knows which sessions there are, and which of them nobody uses now."""

    def __init__(self) -> None:
        self._idle: dict[str, None] = {}
        self._busy: dict[str, int] = {}
        self._whose: dict[str, Owner] = {}
        """Whose each of them is: nobody else may use it."""

    def __len__(self) -> int:
        return len(self._idle) + len(self._busy)

    @property
    def longest_idle(self) -> str | None:
        """The one that has gone without a request and a stream for longest, if any has."""
        return next(iter(self._idle), None)

    def of(self, grants: Collection[str]) -> list[str]:
        """Return the sessions that were begun by some tokens."""
        return [session for session, whose in self._whose.items() if whose.grant in grants]

    def is_of(self, session: str, whose: "Owner") -> bool:
        """Whether a session may be used by somebody; of one that is not known, nobody is told."""
        return self._whose.get(session, whose) == whose

    def begin(self, session: str, whose: "Owner | None" = None) -> None:
        """Take note of a new one, and of whose it is."""
        self._whose[session] = whose or NOBODY
        if session not in self._busy:
            self._idle[session] = None

    def end(self, session: str) -> None:
        """Forget one."""
        self._whose.pop(session, None)
        self._idle.pop(session, None)
        self._busy.pop(session, None)

    @contextmanager
    def used(self, session: str) -> Generator[None, None, None]:
        """Keep one busy for the length of the block, if there is such a one."""
        if session in self._idle or session in self._busy:
            self._idle.pop(session, None)
            self._busy[session] = self._busy.get(session, 0) + 1
        try:
            yield
        finally:
            self._let_go(session)

    def _let_go(self, session: str) -> None:
        if session in self._busy:
            self._busy[session] -= 1
            if not self._busy[session]:
                del self._busy[session]
                self._idle[session] = None
