"""What each server last offered, kept between runs: a file for each, in the state directory.

Losing one costs a start, so nothing here ever raises for the sake of one.
"""

import logging
import os
import shutil
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import anyio
from anyio import to_thread

from aggregator import __version__
from aggregator.basics.files import replace_file
from aggregator.basics.signals import Signal
from aggregator.catalog import Ready
from aggregator.config import Config, ServerConfig
from aggregator.fleet.saved_listing import (
    Facts,
    SavedListingError,
    read,
    rules_of,
    source_of,
    written,
)
from aggregator.names import ServerName

logger = logging.getLogger(__name__)

DIRECTORY = "catalogs"
READ_AT_ONCE = 256 * 1024
"""Bytes of all listings together that are read before the first list is answered."""
MAX_BYTES = 64 * 1024 * 1024
"""Bytes a listing may have: what a server may list, and then some."""
PAUSE = 1.0
"""Seconds to wait for more before what servers offer is written."""
KEPT = 30 * 24 * 3600.0
"""Seconds for which a listing is kept that nobody has needed or written."""
STALE = 24 * 3600.0
"""Seconds after which a server is asked again what it offers."""
FILES = 3
"""Arguments of a program that are looked at, since they may be what it runs."""


class Recalled(NamedTuple):
    """What a server offered in another run."""

    ready: Ready
    age: float
    """Seconds since it was listed."""
    facts: Facts
    is_whole: bool
    """Whether it is all that it offered."""
    is_allowed: bool
    """Whether the same tools were allowed then."""

    def is_outdated(self, server: ServerConfig) -> bool:
        """Whether another version of a program offered it, or another of ours wrote it down."""
        return (program_of(server), __version__) != (self.facts.program, self.facts.writer)


class LastKnown:
    """The saved listings of the servers of one configuration."""

    def __init__(self, directory: Path | None, *, recalls: bool = True) -> None:
        self._directory = directory
        self._recalls = recalls
        self._noted: dict[ServerName, tuple[ServerConfig, Ready]] = {}
        self._news = Signal()
        self._turn = anyio.CapacityLimiter(1)

    def recall(self, servers: Mapping[ServerName, ServerConfig]) -> dict[ServerName, Recalled]:
        """Return what servers offered, all of it if that is little, else what lists show first."""
        if self._directory is None or not self._recalls:
            return {}
        paths = {name: self._path(server) for name, server in servers.items()}
        sizes = {name: _size(path) for name, path in paths.items()}
        at_once = sum(sizes.values()) <= READ_AT_ONCE
        found: dict[ServerName, Recalled] = {}
        for name in (name for name, size in sizes.items() if size):
            listing = self._read(servers[name], pinned_only=not at_once)
            if listing is not None:
                found[name] = listing
        return found

    async def recall_whole(self, server: ServerConfig) -> Recalled | None:
        """Return all that a server offered, while others have their turn."""
        if not self._recalls or not _size(self._path(server)):
            return None
        try:
            return await to_thread.run_sync(self._read, server, limiter=self._turn)
        except RuntimeError:  # no thread can be started
            return None

    def note(self, server: ServerConfig, ready: Ready) -> None:
        """Have what a server offers now written."""
        if self._directory is not None:
            self._noted[server.name] = server, ready
            self._news.send()

    async def keep(self) -> None:
        """Write what is noted, until cancelled; then once more."""
        try:
            while True:
                while not self._noted:
                    await self._news.wait()
                await anyio.sleep(PAUSE)
                noted, self._noted = self._noted, {}
                # Where no thread can be started, the next run asks the servers again.
                with suppress(RuntimeError):
                    await to_thread.run_sync(self._write_all, noted, limiter=self._turn)
                    await to_thread.run_sync(self.tidy, limiter=self._turn)
        finally:
            self.save()

    def save(self) -> None:
        """Write what is noted and not written yet."""
        noted, self._noted = self._noted, {}
        self._write_all(noted)

    def _path(self, server: ServerConfig) -> Path | None:
        return self._directory and self._directory / f"{source_of(server)[:40]}.jsonl"

    def _read(self, server: ServerConfig, *, pinned_only: bool = False) -> Recalled | None:
        path = self._path(server)
        if path is None or not _size(path):
            return None
        try:
            with path.open(encoding="utf-8") as file:
                age = time.time() - os.fstat(file.fileno()).st_mtime
                known = read(file, server, pinned_only=pinned_only)
        except (OSError, SavedListingError, UnicodeDecodeError) as error:
            logger.info("what it last offered cannot be read: %s", error)
            return None
        is_allowed = known.facts.rules == rules_of(server)
        return Recalled(known.ready, max(0.0, age), known.facts, not pinned_only, is_allowed)

    def _write_all(self, noted: Mapping[ServerName, tuple[ServerConfig, Ready]]) -> None:
        for server, ready in noted.values():
            path = self._path(server)
            if path is not None:
                with suppress(OSError):
                    _write(path, written(server, ready, program_of(server), __version__))

    def tidy(self) -> None:
        """Remove what nobody has needed for long, of other configurations too."""
        if self._directory is None:
            return
        with suppress(OSError):
            # Also what was half written when somebody ended us.
            for path in self._directory.parent.glob("*/*.jsonl*"):
                if time.time() - path.stat().st_mtime > KEPT:
                    path.unlink()


def open_last_known(state: Path | None, config: Config) -> LastKnown:
    """Return what is last known of a configuration's servers, in the directory of a user's state.

    Where nothing is to be kept, what was kept before is removed.
    """
    if state is None:
        return LastKnown(None)
    which = sha256(os.fsencode(config.path.absolute())).hexdigest()[:16]
    directory = state.parent / DIRECTORY / which
    if config.settings.state:
        return LastKnown(directory, recalls=config.settings.recall)
    shutil.rmtree(directory, ignore_errors=True)
    return LastKnown(None)


def program_of(server: ServerConfig) -> str:
    """Return what stands for the program that a server is now, as far as files tell."""
    if server.command is None:
        return ""
    path = {**server.inherited, **server.env}.get("PATH")
    found = [shutil.which(server.command, path=path) or server.command]
    found += [argument for argument in server.args if not argument.startswith("-")][:FILES]
    stamps = [_stamp(Path(server.cwd or ".", each)) for each in found]
    return sha256(repr(stamps).encode()).hexdigest()[:16]


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return (status.st_mtime_ns, status.st_size) if stat.S_ISREG(status.st_mode) else None


def _size(path: Path | None) -> int:
    """Return how long a listing is; nothing if it is none of ours or out of all proportion."""
    try:
        status = path.stat() if path else None
    except OSError:
        return 0
    is_ours = status is not None and stat.S_ISREG(status.st_mode)
    return status.st_size if status and is_ours and status.st_size <= MAX_BYTES else 0


def _write(path: Path, lines: Iterator[str]) -> None:
    """Write a listing, or only that it is as it was."""
    content = "\n".join(lines).encode() + b"\n"
    with suppress(OSError):
        if _size(path) and path.read_bytes() == content:
            os.utime(path)
            return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(path, content)
