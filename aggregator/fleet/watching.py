"""Tell when a file changes, by looking at it: a look costs a few microseconds."""

from collections.abc import AsyncGenerator
from hashlib import sha256
from pathlib import Path

import anyio

SETTLING = 0.2
"""Seconds to let an editor finish: some write in several steps, or by way of another file."""
LOOKING = 0.5
"""Seconds between two looks."""


async def changes(path: Path, known: bytes | None = None) -> AsyncGenerator[None, None]:
    """Yield after each change of a file's content, however it was brought about.

    `known` is the digest of the content that the first change is a change of, by default what
    the file has now: it may have been read a while ago.
    """
    known = known or _content(path)
    seen = None
    while True:
        look = _look(path)
        if look != seen:
            # Taken before the content is read, so that a change meanwhile is seen next time; and
            # well before, since two changes in the same instant look like one.
            seen = look
            await anyio.sleep(SETTLING)
            content = _content(path)
            if content != known:
                known = content
                yield
        await anyio.sleep(LOOKING)


def _look(path: Path) -> tuple[int, ...]:
    """Return what is different when a file, or what a link leads to, is another or has changed."""
    try:
        status = path.stat()
    except OSError:
        return ()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _content(path: Path) -> bytes | None:
    """Return what stands for a file's content, or `None` if it cannot be read."""
    try:
        return sha256(path.read_bytes()).digest()
    except OSError:
        return None
