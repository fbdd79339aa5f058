"""Everything outside the program that a command may touch."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import TextIO


class ExitStatus(IntEnum):
    """What a command tells the shell."""

    FINE = 0
    ERROR = 1
    USAGE = 2
    INTERRUPTED = 130
    """128 plus the number of SIGINT, as shells have it."""


@dataclass(frozen=True)
class Environment:
    """The streams, the variables and the directory a command works with."""

    stdout: TextIO
    stderr: TextIO
    variables: Mapping[str, str]
    directory: Path

    @classmethod
    def of_process(cls) -> "Environment":
        """Return the one this process has."""
        return cls(sys.stdout, sys.stderr, os.environ, Path.cwd())

    def say(self, text: str) -> None:
        """Write a result."""
        print(text, file=self.stdout)

    def complain(self, problem: str, hint: str | None = None) -> None:
        """Write what went wrong and, if there is something to do about it, what."""
        print(f"error: {problem}", file=self.stderr)
        if hint:
            print(f"\nhint: {hint}", file=self.stderr)

    def warn(self, text: str) -> None:
        """Write what works but may not be meant."""
        print(f"warning: {text}", file=self.stderr)
