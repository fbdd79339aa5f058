"""Bytes that wait to be written: none of them is copied, and all of them are counted."""

import os
from collections import deque
from itertools import islice

MOST_PARTS = 64
"""Pieces written at once."""

LINE_BREAK = b"\n"

SHORT_BYTES = 16 * 1024
"""Bytes up to which a line and its line break are rather copied than written as two pieces."""


class Outbox:
    """Lines on their way to a descriptor."""

    def __init__(self) -> None:
        self._parts = deque[memoryview]()
        self.size = 0
        """Bytes that wait."""

    def add(self, line: bytes, written: int = 0) -> None:
        """Append a line and the line break after it, but for what of it is written already."""
        if len(line) <= SHORT_BYTES:
            parts = [memoryview(line + LINE_BREAK)[written:]]
        else:
            parts = [memoryview(line)[written:], memoryview(LINE_BREAK)]
        for part in parts:
            self._parts.append(part)
            self.size += len(part)

    def write_to(self, descriptor: int) -> None:
        """Write as much as the descriptor takes at once.

        Raises:
            OSError: It takes nothing.
        """
        written = os.writev(descriptor, list(islice(self._parts, MOST_PARTS)))
        self.size -= written
        while self._parts and written >= len(self._parts[0]):
            written -= len(self._parts.popleft())
        if written:
            self._parts[0] = self._parts[0][written:]

    def clear(self) -> None:
        """Forget what waits."""
        self._parts.clear()
        self.size = 0
