"""The index in step with the catalog: tools are read a few at a time, and shown all at once."""

from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Collection,
    Generator,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import closing
from typing import Protocol

import anyio.lowlevel

from aggregator.basics.signals import Signal
from aggregator.catalog import Catalog, ServerState, ToolEntry
from aggregator.fleet.pinning import adapted
from aggregator.names import ServerName
from aggregator.search.hits import Ranker

AT_ONCE = 2
"""Tools that are read before others have their turn: half a millisecond of work."""


class Approval(Protocol):
    """Who says what of a listing may be shown."""

    def holds(self, server: ServerName, /) -> bool:
        """Whether that is not known yet."""
        ...

    def compared(self, server: ServerName, state: ServerState, /) -> Awaitable[ServerState]:
        """Return what of a state may be shown, and how it differs from what was approved."""
        ...


class NoApproval:
    """Everything may be shown."""

    def holds(self, _server: ServerName, /) -> bool:
        """Nothing is waited for."""
        return False

    async def compared(self, _server: ServerName, state: ServerState, /) -> ServerState:
        """Return the state as it is."""
        return state


class Growing(Ranker, Protocol):
    """An index, as whoever keeps it in step with the catalog sees it."""

    def stage(
        self,
        server: ServerName,
        entries: Iterable[ToolEntry],
        description: str = "",
        like: "Growing | None" = None,
        /,
    ) -> Generator[None, None, None]:
        """Replace what one server had in small steps, with what another index has read of it."""
        ...

    def hide(self, server: ServerName, /) -> None:
        """Find the tools of one server no more."""
        ...

    def tidy(self) -> Generator[None, None, None]:
        """Forget what is not to be found any more, in small steps."""
        ...

    def reorder(self, order: Sequence[ServerName], /) -> None:
        """Have the order of servers decide ties in another way."""
        ...


class Indexing:
    """Reads the tools of servers that are ready, and only then hands them on to be shown."""

    def __init__(
        self,
        order: Sequence[ServerName],
        *,
        describe: Callable[[ServerName], str],
        restrict: Callable[[ServerName, ServerState], ServerState] = lambda _server, state: state,
        approval: Approval | None = None,
        judge: Callable[[ToolEntry], None] = lambda _entry: None,
    ) -> None:
        self._order = order
        self._describe = describe
        self._restrict = restrict
        self._approval = approval or NoApproval()
        self._judge = judge
        """Told of each tool before it is shown."""
        self._staged: dict[ServerName, Sequence[ToolEntry]] = {}
        """What each server can be found by."""
        self._unchecked: set[ServerName] = set()
        """Those that are to be compared again, though they list what they did."""
        self._arriving: dict[ServerName, ServerState] = {}
        self._reading: ServerName | None = None
        self._is_due = False
        self._work = Signal()
        self._index: Growing | None = None

    @property
    def index(self) -> Growing:
        """What the tools that are shown can be found by."""
        if self._index is None:
            # The first list does not wait for what only searches take.
            from aggregator.search.index import Index  # noqa: PLC0415 - see above

            self._index = Index(self._order)
        return self._index

    def take(self, server: ServerName, before: ServerState, after: ServerState) -> bool:
        """Take note of a server's new state; return whether it can be shown already."""
        is_owed = self._arriving.pop(server, None) is not None
        is_same = _offers_same(before, after)
        if after.known is not None:
            if is_owed or not is_same:
                self._arriving[server] = after
        elif self._index is None:
            # Servers begin to start while the client asks for its first list.
            return True
        else:
            self._index.hide(server)
            self._staged.pop(server, None)
        if server not in self._arriving and self._reading == server:
            self._reading = None
        is_shown = after.known is None or is_same
        self._is_due = True
        self._work.send()
        return is_shown

    def look_again(self, catalog: Catalog) -> None:
        """Have everything that is shown compared anew with what was approved."""
        for server, state in catalog.servers.items():
            if state.known is not None:
                self._arriving.setdefault(server, state)
        self._unchecked.update(self._arriving)
        self._work.send()

    def owe(self, catalog: Catalog) -> None:
        """Have what is known from another run read, which is shown before it can be found."""
        self._arriving |= {name: catalog.servers[name] for name in catalog.known}

    def is_read(self, servers: Collection[ServerName]) -> bool:
        """Whether something of each of these servers of which it is known can be found."""
        return not (self._arriving.keys() - self._staged.keys()).intersection(servers)

    def is_at_rest(self, server: ServerName) -> bool:
        """Whether all that is known of a server is shown as it is to be."""
        return server not in self._arriving

    @property
    def is_checked(self) -> bool:
        """Whether all that is shown has been compared with what was approved."""
        return not self._unchecked

    async def read(self) -> AsyncGenerator[tuple[ServerName, ServerState], None]:
        """Read what arrives, and forget what has left; yield each server that can be found now."""
        while True:
            while not (self._is_due or self._next()):
                await self._work.wait()
            self._is_due = False
            if (server := self._next()) is not None:
                state = await self._compared(server)
                if state.known and await self._stage(server, state.known.entries):
                    yield server, self._taken(server, state)
            # Also between two servers: one that never rests would have nothing forgotten.
            await take_steps(self.index.tidy())

    def _next(self) -> ServerName | None:
        """Return whose turn it is: who has come first, and may be shown."""
        return next((each for each in self._arriving if not self._approval.holds(each)), None)

    async def _compared(self, server: ServerName) -> ServerState:
        """Return what of a server that arrives may be shown."""
        self._reading = server
        self._unchecked.discard(server)
        return await self._approval.compared(server, self._arriving[server])

    async def _stage(self, server: ServerName, entries: Sequence[ToolEntry]) -> bool:
        """Read a server's tools; say whether they can be found, or it has gone meanwhile.

        A newer list waits until this one has been read: of a server whose tools change faster
        than they are read nothing would ever be shown.
        """
        if self._reading != server or self._staged.get(server) is entries:
            return self._reading == server
        steps = self.index.stage(server, self._with_forms(entries), self._describe(server))
        with closing(steps):
            is_staged = await take_steps(steps, lambda: self._reading == server)
        if is_staged:
            self._staged[server] = entries
        return is_staged

    def _with_forms(self, entries: Iterable[ToolEntry]) -> Iterator[ToolEntry]:
        """Work out how each name may be written, before somebody waits for that of thousands."""
        for entry in entries:
            _ = entry.forms
            self._judge(entry)
            yield entry

    def _taken(self, server: ServerName, read: ServerState) -> ServerState:
        """Return what can be shown of a server that has been read, the newest if possible."""
        newest = self._arriving[server]
        is_same = newest.known and read.known and newest.known.whole is read.known.whole
        if is_same and server not in self._unchecked:
            return adapted(self._arriving.pop(server), read)
        # The newer one may have come because something is forbidden now.
        return self._restrict(server, read)


def _offers_same(before: ServerState, after: ServerState) -> bool:
    return (
        before.known is not None
        and after.known is not None
        and before.known.whole is after.known.whole
    )


async def take_steps(
    steps: Generator[None, None, None], is_wanted: Callable[[], bool] = lambda: True
) -> bool:
    """Take steps, and let others have their turn meanwhile; say whether the last was taken."""
    for number, _ in enumerate(steps, 1):
        if number % AT_ONCE == 0:
            await anyio.lowlevel.checkpoint()
            if not is_wanted():
                return False
    return True
