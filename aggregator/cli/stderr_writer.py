"""Standard error that never holds up whoever writes to it.

Many clients give us a pipe and never read it. A thread writes to it, so that only the thread
waits; the pipe is not made non-blocking, as the programs that we share it with do not expect that.
"""

import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from io import RawIOBase, TextIOWrapper
from typing import TextIO

MAX_WAITING_BYTES = 256 * 1024
"""Bytes that may wait to be read; of what comes then, only the lines are counted."""
PIECE_BYTES = 4096
"""Bytes that are written at once: of these, a pipe takes all or nothing."""
PATIENCE = 1.0
"""Seconds that a command waits for what it says to be read, and that the last words have."""
LAST_PATIENCE = 5.0
"""Seconds that the last words have while somebody goes on reading them."""

LOSS = "%d lines were dropped here, as nobody read them"


class StderrWriter(RawIOBase):
    """Takes what is to be written to a descriptor, and drops what cannot wait any more."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._waiting = deque[bytes]()
        self._size = 0
        self._dropped = 0
        self._moved = threading.Condition()
        self._is_stuck = False
        self._patience = PATIENCE
        self._thread: threading.Thread | None = None
        self._is_run = False
        self._tell: Callable[[int], None] = self._say

    def never_wait(self, tell: Callable[[int], None] | None = None) -> None:
        """Have `flush` return at once from now on, as an event loop must.

        `tell` is told, in a thread of ours, how many lines were dropped once others get through.
        """
        self._patience = 0.0
        self._tell = tell or self._tell

    @property
    def name(self) -> str:
        """What Python calls it."""
        return "<stderr>"

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._descriptor

    def isatty(self) -> bool:
        """Whether a person reads it."""
        return os.isatty(self._descriptor)

    def writable(self) -> bool:
        """Whether it can be written to."""
        return True

    def write(self, lines: object, /) -> int:
        """Have some lines written, or count them where too much is waiting already."""
        if not isinstance(lines, bytes):
            raise TypeError("a stream of text gives bytes")
        with self._moved:
            if self._size + len(lines) > MAX_WAITING_BYTES:
                self._dropped += max(1, lines.count(b"\n"))
            elif lines:
                self._waiting.append(lines)
                self._size += len(lines)
            self._begin()
            self._moved.notify_all()
        return len(lines)

    def flush(self) -> None:
        """Wait, within bounds, until all is written; not again until some of it has been."""
        with self._moved:
            if self._patience and not self._is_stuck:
                self._is_stuck = not self._moved.wait_for(self._is_done, self._patience)

    def drain(self) -> None:
        """Wait for the last words for as long as they are being read, within bounds."""
        self.never_wait()
        latest = time.monotonic() + LAST_PATIENCE
        with self._moved:
            self._begin()
            while self._size and time.monotonic() < latest:
                left = self._size
                if not self._moved.wait_for(lambda left=left: self._size < left, PATIENCE):
                    break

    def _is_done(self) -> bool:
        return not self._size

    def _begin(self) -> None:
        """Start to write, if that has not begun; without a thread the lines wait for one."""
        if self._thread is None and self._waiting:
            thread = threading.Thread(target=self._run, name="stderr", daemon=True)
            # A signal may end the wait for its start, and then it is not known that it runs.
            with suppress(RuntimeError):
                thread.start()
                self._thread = thread

    def _run(self) -> None:
        with self._moved:
            if self._is_run:
                return
            self._is_run = True
        while True:
            with self._moved:
                self._moved.wait_for(lambda: self._waiting)
                lines = self._waiting[0]
            written = _written(self._descriptor, lines)
            dropped = self._note(lines[written:], written)
            if dropped:
                self._tell(dropped)

    def _say(self, dropped: int) -> None:
        self.write(f"{LOSS % dropped}\n".encode())

    def _note(self, rest: bytes, written: int) -> int:
        """Note what has been written; once that is all, return how many lines were dropped."""
        with self._moved:
            self._waiting.popleft()
            if rest:
                self._waiting.appendleft(rest)
            self._size -= written
            self._is_stuck = False
            self._moved.notify_all()
            dropped = 0 if self._waiting else self._dropped
            self._dropped -= dropped
            return dropped


def _written(descriptor: int, lines: bytes) -> int:
    """Write some of it, for as long as that takes; return how much of it is done with."""
    try:
        return os.write(descriptor, lines[:PIECE_BYTES])
    except BlockingIOError:
        # Another program that has the same pipe does not want to wait for it.
        select.select([], [descriptor], [])
        return 0
    except OSError:
        # Nobody can read it any more, or the disk is full.
        return len(lines)


def never_blocking(stream: TextIO, writer: StderrWriter) -> TextIO:
    """Return a stream that writes what another would have through a writer."""
    return TextIOWrapper(writer, stream.encoding, stream.errors, line_buffering=True)
