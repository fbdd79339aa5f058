"""The sessions of handshake clients, from the one that has been idle longest on."""

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from typing import Generic, NamedTuple, Protocol, TypeVar

SHARE = 4
"""The part of all sessions that one identity may have is one in so many."""
MAX_OPENING = 100
"""Sessions that there may be beside the most there are to be, while none of them is idle."""


class Owner(NamedTuple):
    """Whose a session or a request is: nobody else may use it."""

    profile: str | None = None
    """What it was begun to see."""
    grant: str = ""
    """The key of the identity that it was begun by; none for whoever runs us."""
    holder: str = ""
    """Whom it is counted for, whichever program it was begun by."""


OPERATORS = Owner()
"""Of whoever runs us."""


class Endable(Protocol):
    """A session, as far as it matters here."""

    @property
    def key(self) -> str:
        """What tells it from others."""
        ...

    @property
    def owner(self) -> Owner:
        """Whose it is."""
        ...

    def use(self) -> None:
        """Keep it from being idle."""
        ...

    def let_go(self) -> None:
        """Let it be idle again, unless somebody else uses it."""
        ...

    @property
    def is_idle(self) -> bool:
        """Whether nobody uses it."""
        ...

    def end(self) -> None:
        """Take nothing more."""
        ...


S = TypeVar("S", bound=Endable)


class Sessions(Generic[S]):
    """Knows which sessions there are, and which of them nobody uses now."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.share = max(1, most // SHARE)
        """How many of them one identity may have; whoever runs us may have all."""
        self._known: dict[str, S] = {}
        self._idle: dict[str, S] = {}

    def __len__(self) -> int:
        return len(self._known)

    def get(self, key: str) -> S | None:
        """Return one, if there is such a one."""
        return self._known.get(key)

    def known(self) -> tuple[S, ...]:
        """Return all there are."""
        return tuple(self._known.values())

    def make_room(self, owner: Owner = OPERATORS) -> bool:
        """End the one that has been idle longest if there are too many; say if there is room.

        Who has a share makes room in it, and otherwise whoever has most of them: nobody loses
        theirs because another opens many.
        """
        while self.has_its_share(owner):
            mine = (each for each in self._idle.values() if each.owner.holder == owner.holder)
            if (idle := next(mine, None)) is None:
                return False
            self.end(idle)
        while len(self._known) >= self._most and self._idle:
            number = Counter(each.owner.holder for each in self._known.values())
            self.end(max(self._idle.values(), key=lambda each: number[each.owner.holder]))
        return len(self._known) < self._most + MAX_OPENING

    def has_its_share(self, owner: Owner) -> bool:
        """Whether somebody has as many as one identity may have."""
        if not owner.holder:
            return False
        own = sum(each.owner.holder == owner.holder for each in self._known.values())
        return own >= self.share

    def begin(self, session: S) -> None:
        """Take a new one."""
        self._known[session.key] = self._idle[session.key] = session

    def end(self, session: S) -> None:
        """End one, and forget it from now on."""
        if self._known.pop(session.key, None) is not None:
            self._idle.pop(session.key, None)
            session.end()

    @contextmanager
    def used(self, session: S) -> Generator[None, None, None]:
        """Keep one busy for the length of the block."""
        self.use(session)
        try:
            yield
        finally:
            self.let_go(session)

    def use(self, session: S) -> None:
        """Keep one busy until it is let go."""
        self._idle.pop(session.key, None)
        session.use()

    def let_go(self, session: S) -> None:
        """Let one be idle again, unless somebody else uses it."""
        session.let_go()
        if session.is_idle and session.key in self._known:
            self._idle[session.key] = session
