"""The index in step with the catalog: tools are read a few at a time, and shown all at once."""

from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Sequence
from contextlib import closing
from functools import cached_property
from typing import Protocol

import anyio.lowlevel

from aggregator.catalog import Ready, ServerState, ToolEntry
from aggregator.names import ServerName
from aggregator.search.hits import Ranker
from aggregator.signals import Signal

AT_ONCE = 2
"""Tools that are read before others have their turn: half a millisecond of work."""


class Growing(Ranker, Protocol):
    """An index, as whoever keeps it in step with the catalog sees it."""

    def stage(
        self, server: ServerName, entries: Iterable[ToolEntry], description: str = "", /
    ) -> Generator[None, None, None]:
        """Replace what one server had in small steps."""
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
        self, order: Sequence[ServerName], *, describe: Callable[[ServerName], str]
    ) -> None:
        self._order = order
        self._describe = describe
        self._arriving: dict[ServerName, Ready] = {}
        self._is_due = False
        self._work = Signal()

    @cached_property
    def index(self) -> Growing:
        """What the tools that are shown can be found by."""
        # The first list does not wait for what only searches take.
        from aggregator.search.index import Index  # noqa: PLC0415 - see above

        return Index(self._order)

    def take(self, server: ServerName, before: ServerState, after: ServerState) -> bool:
        """Take note of a server's new state; return whether it can be shown already."""
        self._arriving.pop(server, None)
        if not isinstance(after, Ready):
            self.index.hide(server)
        elif not (isinstance(before, Ready) and before.entries is after.entries):
            self._arriving[server] = after
        self._is_due = True
        self._work.send()
        return server not in self._arriving

    async def read(self) -> AsyncGenerator[tuple[ServerName, Ready], None]:
        """Read what arrives, and forget what has left; yield each server that can be found now."""
        while True:
            while not self._is_due:
                await self._work.wait()
            self._is_due = False
            while self._arriving:
                server = next(iter(self._arriving))
                if await self._stage(server, self._arriving[server].entries):
                    yield server, self._arriving.pop(server)
            await _in_turns(self.index.tidy(), lambda: True)

    async def _stage(self, server: ServerName, entries: Sequence[ToolEntry]) -> bool:
        """Read a server's tools; say whether they can be found, or something else has come."""

        def is_wanted() -> bool:
            newest = self._arriving.get(server)
            return newest is not None and newest.entries is entries

        steps = self.index.stage(server, entries, self._describe(server))
        with closing(steps):
            return await _in_turns(steps, is_wanted)


async def _in_turns(steps: Generator[None, None, None], is_wanted: Callable[[], bool]) -> bool:
    """Take steps, and let others have their turn meanwhile; say whether the last was taken."""
    for number, _ in enumerate(steps, 1):
        if number % AT_ONCE == 0:
            await anyio.lowlevel.checkpoint()
            if not is_wanted():
                return False
    return True
