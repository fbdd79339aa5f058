"""Logins that clients have begun: each goes on for as long as a person may take.

A client may not wait as long as that; what it has begun is for all others too.
"""

import logging
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager

import anyio
import anyio.abc
from anyio import to_thread

from aggregator.basics.signals import Signal
from aggregator.config import ServerConfig
from aggregator.downstream.login.home import Home
from aggregator.names import ServerName

logger = logging.getLogger(__name__)

PATIENCE = 600.0
"""Seconds that a person has for one login."""

Lead = Callable[[str, str], None]
"""Takes note of a page where a person is to go, and of who asks them for a password there."""
Attended = Callable[[ServerConfig, tuple[str, ...], Home, Lead], Awaitable[str | None]]


class Visit:
    """One login under way."""

    def __init__(self, server: ServerConfig, scopes: tuple[str, ...]) -> None:
        self.server = server
        self.scopes = scopes
        self.page = ""
        """Where a person is to go now; empty before that is known."""
        self.asker = ""
        """Who asks them for a password there."""
        self.is_over = False
        self.problem: str | None = None
        """Why it did not come about."""
        self.news = Signal()
        """Sent when there is another page, and at the end."""
        self._scope = anyio.CancelScope()
        self._waiting = 0

    @property
    def is_called_off(self) -> bool:
        """Whether nobody wants it any more."""
        return self._scope.cancel_called

    @contextmanager
    def awaited(self) -> Generator[None, None, None]:
        """Count one client among those that wait for it."""
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1

    def decline(self) -> None:
        """Take note that the person of one of these clients does not want to."""
        if self._waiting <= 1:
            self._scope.cancel()

    def lead(self, page: str, asker: str) -> None:
        """Take note of where a person is to go."""
        self.page, self.asker = page, asker
        self.news.send()

    async def run(self, home: Home) -> None:
        """Log in, within the time there is for it."""
        self._scope.deadline = anyio.current_time() + PATIENCE
        self.problem = f"nobody logged in within {PATIENCE / 60:g} minutes"
        try:
            with self._scope:
                self.problem = await self._log_in(home)
        except Exception:
            logger.exception("a login failed", extra={"server": self.server.name})
            self.problem = "the aggregator failed, and its log says why"
        finally:
            self.is_over = True
            self.news.send()

    async def _log_in(self, home: Home) -> str | None:
        # It takes a second to load, and others go on meanwhile.
        attended = await to_thread.run_sync(_load)
        return await attended(self.server, self.scopes, home, self.lead)


def _load() -> Attended:
    from aggregator.downstream.login.attended import attended  # noqa: PLC0415 - see above

    return attended


class Visits:
    """The logins under way, one for each server."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._under_way: dict[ServerName, Visit] = {}

    def to(self, server: ServerConfig, scope: str, group: anyio.abc.TaskGroup) -> Visit:
        """Return the login to a server that is under way, begun in a group if there is none."""
        scopes = tuple(scope.split())
        known = self._under_way.get(server.name)
        is_same = known and (known.server, known.scopes) == (server, scopes)
        if known and is_same and not known.is_called_off:
            return known
        visit = self._under_way[server.name] = Visit(server, scopes)
        group.start_soon(self._run, visit)
        return visit

    async def _run(self, visit: Visit) -> None:
        try:
            await visit.run(self._home)
        finally:
            if self._under_way.get(visit.server.name) is visit:
                del self._under_way[visit.server.name]
