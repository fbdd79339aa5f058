"""Lines that several processes append to at once, for so many days and so many bytes.

A file holds the lines of one day, or a part of them; the oldest are removed whole. So nobody ever
rewrites what another may be writing to, and no lock is needed: a write to the end of a file is
not interrupted by another.
"""

import os
import re
import secrets
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

DAYS = 30
"""Days that lines are kept."""
MOST_BYTES = 10 * 1024 * 1024
"""Bytes of all files together."""
FILE_BYTES = 1024 * 1024
"""Bytes after which the next file is begun."""
WRITTEN_AT_ONCE = 64 * 1024
"""Bytes that are written together, unless a single line is longer."""
PLACE = "place"
"""The file that tells a directory from others."""
_NAME = re.compile(r"(\d{4}-\d{2}-\d{2})\.(\d{3})\.jsonl")


class Segments:
    """The files in one directory that lines are appended to."""

    def __init__(
        self, directory: Path, *, most: int = MOST_BYTES, each: int = FILE_BYTES, days: int = DAYS
    ) -> None:
        self._directory = directory
        self._most = most
        self._each = each
        self._days = days

    def append(self, lines: Sequence[bytes], at: float) -> None:
        """Add lines, which have no ends, and remove what is too old or too much.

        Raises:
            OSError: They could not all be written.
        """
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        for some in _together(lines):
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
            descriptor = os.open(self._current(at), flags, 0o600)
            try:
                append_lines(descriptor, some)
            finally:
                os.close(descriptor)
        self._prune(at)

    def read(self, since: float) -> Iterator[str]:
        """Yield the lines of all days from one on, in the order they were written."""
        first = _day(since)
        for path in self._files():
            if path.name >= first:
                with suppress(OSError), path.open(encoding="utf-8", errors="replace") as file:
                    yield from file

    def place(self) -> str:
        """Return what tells this directory from all others, from wherever it is reached.

        Raises:
            OSError: It can be neither read nor made.
        """
        path = self._directory / PLACE
        if not path.exists():
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            made = secrets.token_hex(16)
            temporary = path.with_name(f".{PLACE}.{made}")
            temporary.write_text(made, encoding="ascii")
            # Of two processes that make one at the same time, the second takes the first's.
            with suppress(FileExistsError):
                os.link(temporary, path)
            temporary.unlink()
        return path.read_text(encoding="ascii")

    def _files(self) -> list[Path]:
        """Return the files, the oldest first."""
        try:
            found = [each for each in self._directory.iterdir() if _NAME.fullmatch(each.name)]
        except OSError:
            return []
        return sorted(each for each in found if _size(each) is not None)

    def _current(self, at: float) -> Path:
        day = _day(at)
        todays = [path for path in self._files() if path.name.startswith(day)]
        number = int(todays[-1].name.split(".")[1]) if todays else 0
        if todays and (_size(todays[-1]) or 0) >= self._each:
            number += 1
        return self._directory / f"{day}.{min(number, 999):03}.jsonl"

    def _prune(self, at: float) -> None:
        first, left = _day(at - self._days * 24 * 3600), self._most
        for path in reversed(self._files()):
            left -= _size(path) or 0
            if left < 0 or path.name < first:
                # Another process may have done so.
                with suppress(OSError):
                    path.unlink()


def append_lines(descriptor: int, lines: Sequence[bytes]) -> None:
    """Write lines to the end of a file in one go; what is torn is written again, whole.

    Raises:
        OSError: They could not all be written.
    """
    before = b""
    while lines:
        content = before + b"".join(line + b"\n" for line in lines)
        left = os.write(descriptor, content) - len(before)
        while lines and left >= len(lines[0]) + 1:
            left -= len(lines[0]) + 1
            lines = lines[1:]
        before = b"\n"


def _together(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield as many lines at a time as are written in one go."""
    some, size = list[bytes](), 0
    for line in lines:
        if some and size + len(line) + 1 > WRITTEN_AT_ONCE:
            yield some
            some, size = [], 0
        some.append(line)
        size += len(line) + 1
    if some:
        yield some


def _day(at: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(at))


def _size(path: Path) -> int | None:
    """Return how long a file is; nothing for what is none."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None
