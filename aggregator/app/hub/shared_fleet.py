"""One fleet in the hub, and the clients that use it."""

import time
from collections.abc import Generator, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from pathlib import Path
from typing import Protocol

import anyio
from anyio import to_thread

from aggregator.app.hub.likeness import Resolved
from aggregator.app.hub.session import Session
from aggregator.app.life import Expect, Orders, running_fleet
from aggregator.basics.signals import Signal
from aggregator.config import Config, load_config
from aggregator.errors import ConfigError
from aggregator.upstream.server import Upstream

LINGER = 600.0
"""Seconds that servers wait for the next client after the last has left."""

RELOADED_WITHIN = 2.0
"""Seconds that whoever comes after an edit waits for it to be applied."""
READ_WITHIN = 1.0
"""Seconds that a file may take to be read for one client, where it is a pipe."""

CHANGED = (
    "what the configuration says now means other servers for this client than for those that it "
    "shares them with: connect again"
)
STOPPED = "what this client shares with others was stopped: connect again to start it anew"
ENDED = "the servers that this client shares with others have ended: connect again"


class Launch(Protocol):
    """Runs servers for the length of a block."""

    def __call__(
        self, config: Config, variables: Mapping[str, str], orders: Orders, *, is_shared: bool
    ) -> AbstractAsyncContextManager[Upstream]:
        """Return the block."""
        ...


class SharedFleetClosedError(Exception):
    """The servers have ended before a client could use them."""


class SharedFleet:
    """A fleet that runs for as long as somebody uses it, and a while longer."""

    def __init__(self, resolved: Resolved, expect: Expect, launch: Launch = running_fleet) -> None:
        self.resolved = resolved
        self.since = time.time()
        self.sessions: list[Session] = []
        self.orders = Orders(self._expect, self._foresee)
        self.is_open = True
        """Whether another client may come."""
        self._begun_with = _fixed(resolved.config)
        self._linger = LINGER
        self._told = expect
        self._at_home: frozenset[Session] = frozenset()
        """Those for whom the configuration that is about to be used means the same servers."""
        self._launch = launch
        self._upstream: Upstream | None = None
        self._changed = Signal()

    @property
    def upstream(self) -> Upstream | None:
        """What serves clients, once there is one."""
        return self._upstream

    async def run(self) -> None:
        """Run the servers until nobody has used them for long enough, or they are to stop."""
        config, variables = self.resolved.config, self.resolved.variables
        self._told(config)
        try:
            async with self._launch(config, variables, self.orders, is_shared=True) as upstream:
                self._upstream = upstream
                self._changed.send()
                await self._until_left()
                self.is_open = False
        finally:
            self.is_open = False
            self._upstream = None
            self._changed.send()
            for session in tuple(self.sessions):
                session.drop(ENDED)

    async def opened(self) -> Upstream:
        """Wait until clients can be served.

        Raises:
            PierClosedError: They cannot be any more.
        """
        while self._upstream is None:
            if not self.is_open:
                raise SharedFleetClosedError
            await self._changed.wait()
        return self._upstream

    @contextmanager
    def used(self, session: Session) -> Generator[None, None, None]:
        """Have a client count for the length of the block."""
        self.sessions.append(session)
        self._changed.send()
        try:
            yield
        finally:
            self.sessions.remove(session)
            self._changed.send()

    def close(self) -> None:
        """Let in nobody else, and end with the last client."""
        self.is_open = False
        self._linger = 0.0
        self._changed.send()

    def stop(self) -> None:
        """Have all clients leave, and end then."""
        for session in self.sessions:
            session.say(f"aggregator: {STOPPED}")
            session.part()
        self.close()

    async def suits(self, resolved: Resolved) -> bool:
        """Say whether a client can be served here; if what it needs is fixed by now, none can."""
        if not await self._is_for(resolved):
            return False
        if _fixed(resolved.config) != self._begun_with:
            self.close()
        return self.is_open

    async def _is_for(self, resolved: Resolved) -> bool:
        """Say whether a client's servers are these, also where the file has just changed."""
        if self.resolved.is_like(resolved):
            return True
        config = self.resolved.config
        is_news = config.settings.watch and config.digest != resolved.config.digest
        if not is_news or not self.resolved.is_of_same_file(resolved):
            return False
        again = await to_thread.run_sync(_resolved, config.path, self.resolved.variables)
        if again is None or not again.is_like(resolved):
            return False
        self.orders.reload()
        # Who comes with what is new is to find it.
        with anyio.move_on_after(RELOADED_WITHIN):
            while not self.resolved.is_like(resolved):
                await self._changed.wait()
        return True

    async def _until_left(self) -> None:
        while True:
            while self.sessions:
                await self._changed.wait()
            with anyio.move_on_after(self._linger) as waiting:
                while not self.sessions and self._linger:
                    await self._changed.wait()
            if not self.sessions and (waiting.cancelled_caught or not self._linger):
                return

    async def _foresee(self, config: Config) -> None:
        """Find out for whom a new configuration means something else than for the rest."""
        ours = Resolved(config, self.resolved.variables)
        sessions, self._at_home = tuple(self.sessions), frozenset()
        # Without a thread to be had, all others are let go: nobody is left with wrong servers.
        with suppress(RuntimeError):
            self._at_home = await to_thread.run_sync(_alike, config.path, sessions, ours)

    def _expect(self, config: Config) -> None:
        """Part with those for whom it does, and with whoever has come since that was found out."""
        self._told(config)
        self.resolved = Resolved(config, self.resolved.variables)
        self._changed.send()
        for session in self.sessions:
            is_same = session.hello.variables == self.resolved.variables
            if not is_same and session not in self._at_home:
                session.drop(CHANGED)


def _fixed(config: Config) -> tuple[object, ...]:
    """Return what of a file is used once, when servers are started, and never looked at again."""
    each = config.settings
    return each.audit, each.tokens, each.state, each.stats, each.semantic, each.recall, each.watch


def _alike(path: Path, sessions: Iterable[Session], ours: Resolved) -> frozenset[Session]:
    """Return for whom a file means the same servers, as it is read for each of them."""
    read = ((session, _resolved(path, session.hello.variables)) for session in sessions)
    return frozenset(session for session, theirs in read if theirs and theirs.is_like(ours))


def _resolved(path: Path, variables: Mapping[str, str]) -> Resolved | None:
    """Read a file as it is for somebody, in a thread: it may be long, or a pipe."""
    try:
        return Resolved(load_config(path, variables, time.monotonic() + READ_WITHIN), variables)
    except ConfigError:
        return None
