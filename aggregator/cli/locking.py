"""The file that commands write, and what servers offer at this moment to hold against it."""

import os
from argparse import Namespace
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from aggregator.basics.files import alone, in_words, read_within, replace_file
from aggregator.catalog.lock import (
    MAX_BYTES,
    Drift,
    Kind,
    LaterLockError,
    Lock,
    LockError,
    Record,
    drifts,
    ordered,
    read,
    retold,
    written,
)
from aggregator.cli.config_file import config_path, read_config
from aggregator.cli.environment import CommandError, Environment
from aggregator.cli.pages import counted, why_not
from aggregator.cli.peer import serving
from aggregator.cli.starting import TURNS, await_servers, is_starting
from aggregator.config import Config, ServerConfig
from aggregator.fleet.approving import lock_path
from aggregator.fleet.pinning import ELSEWHERE, UNKNOWN, UNSEEN
from aggregator.names import ServerName
from aggregator.records.inspection import LOCK_URI

LEEWAY = 10.0
"""Seconds that we and the machine may take to start servers, beside the time they have."""
MAX_TOLD = 5
"""Tools that are named in one line."""
READABLE = 0o666
"""Who may read the file, as far as the person lets others read theirs: it holds no secrets."""


class Offered(NamedTuple):
    """What servers offer now."""

    records: Mapping[ServerName, Record]
    names: Mapping[tuple[ServerName, str], str]
    """What clients call each tool, by its server and its name there."""
    absent: Mapping[ServerName, str]
    """Why each server is not there that is not."""

    def name(self, server: ServerName, tool: str) -> str:
        """Return what people call a tool, also one that is gone, or a server."""
        if not tool:
            return server
        return self.names.get((server, tool), f"{server}__{tool}")


def place_of(options: Namespace, environment: Environment) -> Path:
    """Return where the file is."""
    return lock_path(config_path(options.config, environment))


def pinned(config: Config) -> dict[ServerName, ServerConfig]:
    """Return the servers that are written down."""
    return {name: server for name, server in config.enabled.items() if server.pin}


def refuse_unpinned(names: Collection[str], config: Config) -> None:
    """Go on only if one of these servers, if any are named, is written down at all.

    Raises:
        CommandError: None is.
    """
    left_out = [name for name in names if not config.servers[ServerName(name)].pin]
    if left_out and len(left_out) == len(names):
        raise CommandError(
            f"`{left_out[0]}` has `pin: false`: it is neither written down nor compared",
            f"Remove that from `{config.path}` to have its tools approved",
        )


def ask(
    config: Config, environment: Environment, wait: float | None, only: Collection[str] = ()
) -> Offered:
    """Start servers, those named or all that are written down, and see what they offer."""
    wanted = {name: each for name, each in pinned(config).items() if not only or name in only}
    if not wanted:
        return Offered({}, {}, {})
    limits = [each.connect_timeout for each in wanted.values()]
    patience = TURNS * max(limits) + LEEWAY if wait is None else wait
    records: dict[ServerName, Record] = {}
    names: dict[tuple[ServerName, str], str] = {}
    absent: dict[ServerName, str] = {}
    with serving(config.path, environment, wanted, afresh=True) as peer:
        for server in await_servers(peer, environment, patience):
            name = ServerName(server["name"])
            if server["state"] != "ready":
                absent[name] = why_not(server, patience if is_starting(server) else None)
                continue
            document = peer.read(f"{LOCK_URI}/{name}")
            shown: dict[str, str] = document.pop("names")
            names |= {(name, tool): each for tool, each in shown.items()}
            records[name] = Record(**document)
    return Offered(records, names, absent)


def begin(options: Namespace, environment: Environment) -> Config:
    """Return the configuration whose servers are written down."""
    return read_config(options, environment)


def read_lock(path: Path) -> Lock | None:
    """Return what the file says, if there is one.

    Raises:
        CommandError: It cannot be used.
    """
    try:
        return _parsed(read_within(path, MAX_BYTES, deadline=0.0))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CommandError(f"`{path}` cannot be read: {in_words(error)}") from None
    except LaterLockError as error:
        hint = "A later version of the aggregator wrote it: update this one"
        raise CommandError(f"`{path}` {error}", hint) from None
    except LockError as error:
        hint = "Take it from version control, or move it away and write it anew"
        raise CommandError(f"`{path}` {error}", hint) from None


def _parsed(data: bytes) -> Lock:
    if len(data) > MAX_BYTES:
        raise LockError(f"is larger than {MAX_BYTES >> 20} MiB")
    return read(data)


def tell_altered(lock: Lock, path: Path, environment: Environment) -> bool:
    """Say which tools are in the file otherwise than they were written; say whether any are."""
    found = [f"`{name}/{tool}`" for name, each in lock.items() for tool in each.altered]
    if found:
        more = f" and {len(found) - MAX_TOLD} more" if found[MAX_TOLD:] else ""
        environment.warn(
            f"`{path}` was edited by hand: what it says of {', '.join(found[:MAX_TOLD])}{more} "
            "does not match its `sha256`, and counts as not approved"
        )
    return bool(found)


def rewrite(path: Path, change: Callable[[Lock | None], Lock]) -> bool:
    """Change the file as it is by now, since others may have; say whether that changed anything.

    Raises:
        CommandError: It cannot be used.
    """
    path = path.resolve()
    with alone(path):
        return write_lock(path, change(read_lock(path)))


def write_lock(path: Path, lock: Lock) -> bool:
    """Write the file whole; say whether that changed anything."""
    content = written(lock).encode()
    path = path.resolve()
    try:
        if read_within(path, MAX_BYTES, deadline=0.0) == content:
            return False
        mode = path.stat().st_mode & 0o777
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        mode = READABLE & ~mask
    replace_file(path, content, mode=mode)
    return True


def differences(config: Config, lock: Lock, offered: Offered) -> dict[ServerName, list[Drift]]:
    """Return what differs of each server that is there, or that is not configured any more."""
    found = {
        name: _differences(config.servers[name], lock.get(name), record)
        for name, record in offered.records.items()
    }
    for name in lock.keys() - config.servers.keys():
        found[name] = drifts(lock[name], {})
    return {name: each for name, each in sorted(found.items()) if each}


def tell_absent(offered: Offered, environment: Environment, kept: Collection[str] = ()) -> None:
    """Warn of servers that are not there; of those in the file, what it says may be kept."""
    for name, reason in offered.absent.items():
        rest = "; what was known of it is kept" if name in kept else ""
        environment.warn(f"`{name}` is not ready: {reason}{rest}")


def compared_of(offered: Offered) -> str:
    """Say how many servers could be held against the file."""
    there = len(offered.records)
    return f"{there} of {counted(there + len(offered.absent), 'server')} compared"


def brought(found: Collection[Drift]) -> str:
    """Say how much a server brings of which nothing was written down."""
    tools = sum(bool(each.tool) for each in found)
    said = [counted(tools, "tool")] if tools else []
    said += ["instructions"] if tools < len(found) else []
    return " and ".join(said)


def _differences(server: ServerConfig, before: Record | None, after: Record) -> list[Drift]:
    if before is None or before.source != after.source:
        why = UNKNOWN if before is None else ELSEWHERE
        unseen = [Drift(tool, Kind.NEW, (why,)) for tool in after.tools]
        return ordered([*unseen, *_retold("", after.instructions, UNSEEN)])
    allowed = {name: tool for name, tool in before.tools.items() if server.allows(name)}
    found = drifts(before._replace(tools=allowed), after.tools)
    return ordered([*found, *_retold(before.instructions, after.instructions)])


def _retold(*said: str) -> Iterator[Drift]:
    if (drift := retold(*said)) is not None:
        yield drift
