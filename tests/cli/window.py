"""A window with a terminal in it: so many columns, and what a program draws."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from tests.cli.shell import Shell
from tests.patience import PATIENCE


class Window:
    """A command that runs in a terminal of its own, with a person in front of it."""

    def __init__(self, shell: Shell, *arguments: str, columns: int = 80) -> None:
        self._ours, theirs = pty.openpty()
        self.text = ""
        self.resize(columns)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "aggregator", *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={"TERM": "xterm", **shell.all_variables()},
            cwd=shell.project,
            start_new_session=True,
        )
        os.close(theirs)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)
        os.close(self._ours)

    def resize(self, columns: int) -> None:
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def until(self, is_enough: Callable[[str], object]) -> str:
        """Look until something is to be seen, and return all that was drawn."""
        deadline = time.monotonic() + PATIENCE
        while not is_enough(self.text):
            assert select.select([self._ours], [], [], deadline - time.monotonic())[0], self.text
            if not self._look():
                assert is_enough(self.text), self.text
        return self.text

    def until_end(self) -> str:
        """Look until the command has ended."""
        while self._look():
            pass
        self.process.wait(PATIENCE)
        return self.text

    def _look(self) -> bool:
        try:
            seen = os.read(self._ours, 65536)
        except OSError:
            return False
        self.text += seen.decode(errors="replace").replace("\r\n", "\n")
        return bool(seen)


def plain(text: str) -> str:
    """Return a text without colours."""
    return re.sub(r"\x1b\[\d*m", "", text)
