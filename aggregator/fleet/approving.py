"""The file of what was approved: read when there is time, followed, and held against listings."""

import logging
import os
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import anyio
from anyio import to_thread

from aggregator.basics.files import in_words, read_within
from aggregator.basics.turns import in_turns
from aggregator.catalog import Ready, ServerState
from aggregator.catalog.lock import MAX_BYTES, Drift, LazyLock, LockError, taken_apart
from aggregator.config import ServerConfig
from aggregator.entry import place
from aggregator.fleet.pinning import compare, sifted, tell, with_known
from aggregator.fleet.watching import changes, look_at
from aggregator.names import ServerName

logger = logging.getLogger(__name__)

HEAD_START = 0.3
"""Seconds that a client has to fetch its first list before the file is read."""

NOTHING = Ready()


class Approving:
    """What was approved of each server, as far as anybody was asked to."""

    def __init__(
        self,
        path: Path | None,
        *,
        configured: Callable[[ServerName], ServerConfig | None],
        shown: Callable[[ServerName], ServerState],
        config: Path | None = None,
    ) -> None:
        self._path = path
        self._configured = configured
        self._shown = shown
        self._config = config
        """The file that commands are told to use."""
        self._lazy_lock: LazyLock | None = None
        self._is_awaited = path is not None and os.path.lexists(path)
        self._told: dict[ServerName, tuple[Drift, ...]] = {}
        self._missed = set[ServerName]()
        """Servers of which it was said that nothing can be withheld."""
        self._seen: tuple[int, ...] | None = None
        """The file as it was when it was last read."""
        self.problem: str | None = None
        """Why the file as it is now is not used, if it is there and is not."""

    @property
    def is_awaited(self) -> bool:
        """Whether there is a file that has not been read yet."""
        return self._is_awaited

    @property
    def is_behind(self) -> bool:
        """Whether the file is another than the one that was read, or has not been read yet."""
        return self._path is not None and look_at(self._path) != self._seen

    def holds(self, name: ServerName) -> bool:
        """Whether nothing of a server is to be offered before the file has been read."""
        server = self._configured(name) if self._is_awaited else None
        return server is not None and self.awaits(server)

    def awaits(self, server: ServerConfig) -> bool:
        """The same of a server that is not in use yet."""
        return self._is_awaited and server.pin and server.drift == "block"

    async def compared(self, name: ServerName, state: ServerState) -> ServerState:
        """Return a state with what of it differs from what was approved."""
        known, server = state.known, self._configured(name)
        if known is None or server is None:
            return state
        drift: tuple[Drift, ...] = ()
        is_new = False
        if self._lazy_lock is not None and server.pin:
            locked = self._lazy_lock.get(name)
            drift = await in_turns(compare(server, locked, known))
            is_new = locked is None and bool(drift)
        self._tell(server, drift, is_new=is_new)
        self._tell_missing(server)
        shown = self._shown(name).known or NOTHING
        sieved = sifted(server, known, drift, shown)
        return with_known(state, replace(sieved, is_new=is_new))

    async def follow(self, asked: anyio.Event, on_change: Callable[[str | None], None]) -> None:
        """Read the file once a client has its first list, and again whenever it changes."""
        if self._path is None:
            return
        with anyio.move_on_after(HEAD_START):
            await asked.wait()
        known = look_at(self._path)
        await self._read(self._path)
        on_change(self.problem)
        async with aclosing(changes(self._path, known, look_at)) as changed:
            async for _ in changed:
                await self._read(self._path)
                on_change(self.problem)

    async def _read(self, path: Path) -> None:
        """Read the file; one that cannot be used is as good as none."""
        before, problem, lazy_lock = self.problem, None, None
        seen = look_at(path)
        try:
            data = await to_thread.run_sync(_content, path)
            lazy_lock = None if data is None else await in_turns(taken_apart(data))
        except LockError as error:
            problem = f"`{path.name}` {error}: no tool is compared with it"
        except (OSError, RuntimeError, MemoryError) as error:
            reason = (
                in_words(error) if isinstance(error, OSError) else str(error) or "it is too large"
            )
            problem = f"`{path.name}` cannot be read: {reason}"
        # What was approved before holds for as long as the new file is read.
        self._lazy_lock, self.problem, self._seen = lazy_lock, problem, seen
        self._is_awaited = False
        if self.problem is not None and self.problem != before:
            logger.error("%s", self.problem)

    def _tell(self, server: ServerConfig, drift: tuple[Drift, ...], *, is_new: bool) -> None:
        """Say of each server, once, what differs; only errors are told where nobody asks."""
        if drift != self._told.get(server.name, ()):
            self._told[server.name] = drift
            if drift:
                told = tell(server, drift, self._config, is_new=is_new)
                logger.error("%s", told, extra={"server": server.name})

    def _tell_missing(self, server: ServerConfig) -> None:
        """Say of a server, once, that what differs cannot be withheld for want of a file."""
        is_there = self._is_awaited or self._lazy_lock is not None or self.problem is not None
        is_meant = server.pin and server.drift == "block" and server.name not in self._missed
        if self._path is None or is_there or not is_meant:
            return
        self._missed.add(server.name)
        logger.error("%s", missing(self._path), extra={"server": server.name})


def missing(path: Path) -> str:
    """Say that there is no file, where something is to be withheld by it."""
    return (
        f"`drift: block` withholds nothing: there is no `{path.name}`; `aggregator lock` writes it"
    )


def lock_path(config: Path) -> Path:
    """Return where what was approved of the servers in a file is written down."""
    return Path(place.lock_path(str(config)))


def _content(path: Path) -> bytes | None:
    """Return what is in the file, if there is one.

    Raises:
        LockError: It is no file, or too large.
        OSError: It cannot be read.
    """
    try:
        if not path.is_file() and os.path.lexists(path):
            raise LockError("is no file")
        data = read_within(path, MAX_BYTES, deadline=0.0)
    except FileNotFoundError:
        return None
    if len(data) > MAX_BYTES:
        raise LockError(f"is larger than {MAX_BYTES >> 20} MiB")
    return data
