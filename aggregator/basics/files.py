"""Files that are read within bounds, replaced whole or watched, and what is wrong with others."""

import errno
import os
import select
import stat
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path


def replace_file(path: Path, content: bytes, *, mode: int | None = None) -> None:
    """Replace a file whole, so that no crash leaves half of one.

    Without a mode, only its owner may read it.

    Raises:
        OSError: It could not be written; what was there is as it was.
    """
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        # Who reads of it has never heard of the other.
        raise OSError(error.errno, error.strerror, str(path)) from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            Path(temporary).chmod(mode)
        Path(temporary).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(temporary).unlink()
        raise


@contextmanager
def alone(path: Path) -> Generator[None]:
    """Have no other process that asks for it here replace a file for the length of the block.

    Who has read it again inside may write it. Where the system has no such thing, as on Windows
    or on some disks of other machines, it goes on all the same.
    """
    if sys.platform == "win32":
        yield
        return
    import fcntl  # noqa: PLC0415 - it is not there on Windows

    # The file itself is another with each writing, its directory stays.
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


PATIENCE = 30.0
"""Seconds that a pipe may take to be written to: somebody may have to unlock its secrets."""


def read_within(path: Path, most: int, deadline: float | None = None) -> bytes:
    """Return what is in a file, and no more than one byte beyond so many.

    A pipe, as of `<(command)`, is read to its end if that comes before the deadline, on the clock
    of `time.monotonic`.

    Raises:
        OSError: It cannot be read; TimeoutError if it is a pipe whose end does not come.
    """
    if os.name != "posix":
        with path.open("rb") as file:
            return file.read(most + 1)
    # Without a writer, a pipe would not even be opened.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return _read(descriptor, most)
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        return _read(
            descriptor, most, time.monotonic() + PATIENCE if deadline is None else deadline
        )


def _read(descriptor: int, most: int, deadline: float | None = None) -> bytes:
    found = bytearray()
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    while len(found) <= most:
        if deadline is not None and not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            raise TimeoutError(errno.ETIMEDOUT, "nobody writes to this pipe")
        chunk = os.read(descriptor, most + 1 - len(found))
        if not chunk:
            break
        found += chunk
    return bytes(found)


def look_at(path: Path | str) -> tuple[int, ...]:
    """Return what is different when a file, or what a link leads to, is another or has changed."""
    try:
        status = os.stat(path)  # noqa: PTH116 - where it is done often, the path is a string
    except OSError:
        return ()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def in_words(error: OSError) -> str:
    """Say what the system says of a file, without its number and its path."""
    return (error.strerror or str(error)).lower()
