"""Which doors are open now: what `serve --http` leaves for other commands of the same person.

Whoever serves holds the file for as long, so that one left behind by a crash is known as such; a
token is never taken to an address that another program may listen on by now.
"""

import fcntl
import json
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from aggregator.basics.json import as_object
from aggregator.cli.doorway import Door
from aggregator.cli.environment import Environment
from aggregator.memory import state_path
from aggregator.records.stats import file_mark

MAX_BYTES = 4096
FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def announced(door: Door, config: Path, environment: Environment) -> Generator[None]:
    """Let other commands find a door for the length of the block; the first one if there are two.

    Where that cannot be written, it is served all the same.
    """
    descriptor = _held(config, environment)
    try:
        if descriptor is not None:
            os.ftruncate(descriptor, 0)
            os.write(descriptor, json.dumps(door._asdict()).encode())
        yield
    finally:
        if descriptor is not None:
            with suppress(OSError):
                os.ftruncate(descriptor, 0)
            os.close(descriptor)


def open_door(config: Path, environment: Environment) -> Door | None:
    """Return the door that serves a configuration now, if there is one."""
    path = _path(config, environment)
    if path is None:
        return None
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read(descriptor)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return None


def _held(config: Path, environment: Environment) -> int | None:
    """Return the file of a configuration, which nobody else holds; `None` if somebody does."""
    path = _path(config, environment)
    if path is None:
        return None
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, FLAGS, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # A file that was there before may be open to others.
        os.fchmod(descriptor, 0o600)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _path(config: Path, environment: Environment) -> Path | None:
    state = state_path(environment.variables, environment.platform)
    return None if state is None else state.with_name("doors") / f"{file_mark(config)}.json"


def _read(descriptor: int) -> Door | None:
    try:
        told = as_object(json.loads(os.read(descriptor, MAX_BYTES)))
        authority = told["authority"]
    except (OSError, ValueError, KeyError):
        # It is only just being written.
        return None
    rest = (told.get(name) for name in Door._fields[1:])
    return Door(str(authority), *(each and str(each) for each in rest))
