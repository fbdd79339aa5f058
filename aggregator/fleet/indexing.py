"""The index in step with the catalog: tools are read a few at a time, and shown all at once."""

from collections.abc import Callable, Generator, Sequence
from contextlib import closing

import anyio
import anyio.lowlevel

from aggregator.catalog import Ready, ServerState
from aggregator.names import ServerName
from aggregator.search.analysis import documents
from aggregator.search.index import Index

AT_ONCE = 2
"""Tools that are read before others have their turn: half a millisecond of work."""


class Indexing:
    """Reads the tools of servers that are ready, and only then has them shown."""

    def __init__(
        self,
        order: Sequence[ServerName],
        *,
        describe: Callable[[ServerName], str],
        show: Callable[[ServerName, Ready], None],
    ) -> None:
        self.index = Index(order)
        self._describe = describe
        self._show = show
        self._arriving: dict[ServerName, Ready] = {}
        self._work = anyio.Event()

    def take(self, server: ServerName, before: ServerState, after: ServerState) -> bool:
        """Take note of a server's new state; return whether it can be shown already."""
        self._arriving.pop(server, None)
        if not isinstance(after, Ready):
            self.index.hide(server)
        elif not (isinstance(before, Ready) and before.entries is after.entries):
            self._arriving[server] = after
        self._work.set()
        return server not in self._arriving

    async def run(self) -> None:
        """Read what arrives, and forget what has left, until cancelled."""
        while True:
            await self._work.wait()
            self._work = anyio.Event()
            while self._arriving:
                await self._read(next(iter(self._arriving)))
            await _in_turns(self.index.tidy(), lambda: True)

    async def _read(self, server: ServerName) -> None:
        entries = self._arriving[server].entries

        def is_wanted() -> bool:
            newest = self._arriving.get(server)
            return newest is not None and newest.entries is entries

        read = documents(server, entries, self._describe(server))
        with closing(self.index.stage(server, read)) as steps:
            if await _in_turns(steps, is_wanted):
                self._show(server, self._arriving.pop(server))


async def _in_turns(steps: Generator[None, None, None], is_wanted: Callable[[], bool]) -> bool:
    """Take steps, and let others have their turn meanwhile; say whether the last was taken."""
    for number, _ in enumerate(steps, 1):
        if number % AT_ONCE == 0:
            await anyio.lowlevel.checkpoint()
            if not is_wanted():
                return False
    return True
