"""Tell when a file changes, by looking at it: a look costs a few microseconds."""

import stat
from collections.abc import AsyncGenerator, Callable
from hashlib import sha256
from pathlib import Path

import anyio

from aggregator.basics.files import look_at, read_within

SETTLING = 0.2
"""Seconds to let an editor finish: some write in several steps, or by way of another file."""
MAX_BYTES = 1 << 20
"""Bytes of a file that are looked at; one that is longer cannot be used anyway."""
LOOKING = 0.5
"""Seconds between two looks."""


def digest(path: Path) -> bytes | None:
    """Return what stands for a file's content, or `None` if it cannot be read."""
    try:
        content = read_within(path, MAX_BYTES, deadline=0.0)
    except OSError:
        return None
    return sha256(content).digest()


async def changes(
    path: Path, known: object = None, content: Callable[[Path], object] = digest
) -> AsyncGenerator[None, None]:
    """Yield after each change of a file's content, however it was brought about.

    `known` is what stands for the content that the first change is a change of, by default for
    what the file has now: it may have been read a while ago.
    """
    known = known or content(path)
    # What was read from a pipe has been read; only a file that takes its place is news.
    seen = look_at(path) if _is_no_file(path) else None
    while True:
        look = look_at(path)
        if look != seen:
            # Taken before the content is read, so that a change meanwhile is seen next time; and
            # well before, since two changes in the same instant look like one.
            seen = look
            await anyio.sleep(SETTLING)
            found = content(path)
            if found != known:
                known = found
                yield
        await anyio.sleep(LOOKING)


def _is_no_file(path: Path) -> bool:
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False
