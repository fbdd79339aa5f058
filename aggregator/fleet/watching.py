"""Tell when a file changes, and cost nothing while it does not.

On Linux the kernel says so; elsewhere the file is looked at once a second.
"""

import ctypes
import os
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from hashlib import sha256
from pathlib import Path

import anyio

SETTLING = 0.2
"""Seconds to let an editor finish: some write in several steps, or by way of another file."""
LOOKING = 1.0
"""Seconds between two looks where the kernel does not tell."""

_EVENTS = 0x0000_03CE
"""Modified, attributes, closed after writing, moved from and to, created, deleted."""
_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC


async def changes(path: Path, known: bytes | None = None) -> AsyncGenerator[None, None]:
    """Yield after each change of a file's content, however it was brought about.

    `known` is the digest of the content that the first change is a change of, by default what
    the file has now: it may have been read a while ago.
    """
    known = known or _content(path)
    async with aclosing(_stirrings(path)) as stirrings:
        async for _ in stirrings:
            await anyio.sleep(SETTLING)
            content = _content(path)
            if content != known:
                known = content
                yield


async def _stirrings(path: Path) -> AsyncGenerator[None, None]:
    """Yield whenever the file may have changed, and when it begins to be watched."""
    descriptor = _inotify()
    try:
        while True:
            while descriptor is not None and _watch(descriptor, path):
                yield
                await anyio.wait_readable(descriptor)
                os.read(descriptor, 65536)
            # The kernel does not tell, or the directory is gone.
            await anyio.sleep(LOOKING)
            yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _inotify() -> int | None:
    """Return what the kernel tells of events by; `None` if it cannot."""
    if not sys.platform.startswith("linux"):
        return None
    with suppress(OSError, AttributeError):
        begin: Callable[[int], int] = ctypes.CDLL(None).inotify_init1
        descriptor = begin(_FLAGS)
        return descriptor if descriptor >= 0 else None
    return None


def _watch(descriptor: int, path: Path) -> bool:
    """Ask to be told of events beside the file, and where it leads if it is a link."""
    add: Callable[[int, bytes, int], int] = ctypes.CDLL(None).inotify_add_watch
    directories = {path.parent, Path(os.path.realpath(path)).parent}
    # To watch a directory again changes nothing; and a link may lead elsewhere by now.
    return all(add(descriptor, os.fsencode(each), _EVENTS) >= 0 for each in directories)


def _content(path: Path) -> bytes | None:
    """Return what stands for a file's content, or `None` if it cannot be read."""
    try:
        return sha256(path.read_bytes()).digest()
    except OSError:
        return None
