"""Whether the client of a request is still there: its connection tells, and nobody has to ask."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from starlette.types import Scope

Gone = Callable[[], None]


class Presence:
    """The client at the other end of one connection, which has one request at a time."""

    KEY = "aggregator.presence"
    """What it is called in the state of a request."""

    def __init__(self, leave: Callable[[], None] = lambda: None) -> None:
        self.leave = leave
        """Closes the connection."""
        self.has_gone = False
        """Whether it is closed."""
        self._on_gone: Gone | None = None
        self._noted_by: Callable[[Presence], None] | None = None

    def go(self) -> None:
        """Take note that the connection is closed."""
        self.has_gone = True
        if self._on_gone is not None:
            self._on_gone()
        if self._noted_by is not None:
            self._noted_by(self)

    def note(self, by: "Callable[[Presence], None]") -> None:
        """Have somebody told when the connection is closed, whatever is asked on it."""
        self._noted_by = by

    @contextmanager
    def telling(self, on_gone: Gone) -> Generator[None, None, None]:
        """Have it told at once if the client goes during the block, or has gone before."""
        self.tell(on_gone)
        try:
            yield
        finally:
            self.tell_nobody()

    def tell(self, on_gone: Gone) -> None:
        """Have it told at once if the client goes, or has gone before."""
        self._on_gone = on_gone
        if self.has_gone:
            on_gone()

    def tell_nobody(self) -> None:
        """Have nobody told any more."""
        self._on_gone = None


def presence(scope: Scope) -> Presence:
    """Return whether the client of a request is there, as its connection knows it."""
    found: Presence = scope["state"][Presence.KEY]
    return found
