"""Everything outside the program that a command may touch."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from select import select
from typing import Literal, TextIO

Colour = Literal["red", "green", "yellow", "bold", "dim"]

_CODES: Mapping[Colour, int] = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33}


class ExitStatus(IntEnum):
    """What a command tells the shell."""

    FINE = 0
    ERROR = 1
    USAGE = 2
    TOOL_ERROR = 3
    """The tool ran and says that it failed; nothing is wrong with the way to it."""
    INTERRUPTED = 130
    """128 plus the number of SIGINT, as shells have it."""


class CommandError(Exception):
    """What stops a command: one sentence for a person, and what to do about it."""

    def __init__(
        self, problem: str, hint: str | None = None, status: ExitStatus = ExitStatus.ERROR
    ) -> None:
        super().__init__(problem)
        self.hint = hint
        self.status = status


@dataclass(frozen=True)
class Environment:
    """The streams, the variables and the directory a command works with."""

    stdout: TextIO
    stderr: TextIO
    variables: Mapping[str, str]
    directory: Path
    stdin: TextIO = field(default_factory=lambda: sys.stdin)
    platform: str = sys.platform

    @classmethod
    def of_process(cls) -> "Environment":
        """Return the one this process has."""
        return cls(sys.stdout, sys.stderr, os.environ, Path.cwd())

    @property
    def home(self) -> Path:
        """The directory of the person who runs the command."""
        name = "USERPROFILE" if self.platform == "win32" else "HOME"
        home = self.variables.get(name)
        if not home:
            raise CommandError(f"the variable `{name}` is not set, so no home directory is known")
        return Path(home)

    def say(self, text: str) -> None:
        """Write a result, at once: what follows may take long."""
        print(text, file=self.stdout, flush=True)

    def note(self, text: str) -> None:
        """Write what a person may want to know beside the result."""
        print(text, file=self.stderr, flush=True)

    def complain(self, problem: str, hint: str | None = None) -> None:
        """Write what went wrong and, if there is something to do about it, what."""
        self.note(f"{self.paint('error:', 'red', self.stderr)} {problem}")
        if hint:
            self.note(f"\nhint: {hint}")

    def warn(self, text: str) -> None:
        """Write what works but may not be meant."""
        self.note(f"{self.paint('warning:', 'yellow', self.stderr)} {text}")

    def agrees(self, question: str) -> bool:
        """Ask a person, where somebody can answer; anything but a yes is a no.

        Raises:
            CommandError: There is nobody to ask.
        """
        is_asked = _is_awaited(self.stdin)
        if is_asked:
            print(f"{question} [y/N] ", end="", file=self.stderr, flush=True)
        answer = self.stdin.readline()
        if not answer:
            if is_asked:
                self.note("")
            raise CommandError(
                "nothing was changed, as there is nobody to ask", "Repeat the command with `--yes`"
            )
        return answer.strip().lower() in {"y", "yes"}

    def paint(self, text: str, colour: Colour, stream: TextIO | None = None) -> str:
        """Return the text in a colour, where the stream shows colours and nobody minds."""
        if not self._shows_colours(stream or self.stdout):
            return text
        return f"\x1b[{_CODES[colour]}m{text}\x1b[0m"

    def _shows_colours(self, stream: TextIO) -> bool:
        unwanted = self.variables.get("NO_COLOR") or self.variables.get("TERM") == "dumb"
        return stream.isatty() and not unwanted


def _is_awaited(stream: TextIO) -> bool:
    """Return whether an answer is yet to come, from a person or through a pipe."""
    if stream.isatty():
        return True
    try:
        return not select([stream], [], [], 0)[0]
    except (OSError, ValueError):
        # It is nothing that the system can wait for.
        return False
