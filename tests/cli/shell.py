"""A person at a terminal: types commands, in a home and a project of their own."""

import os
import sys
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path

from aggregator.cli import main
from aggregator.cli.clients.location import ClientFile, client_named, locate
from aggregator.cli.environment import Environment, ExitStatus
from tests.cli.warm import warm_python

ROOT = Path(__file__).parent.parent.parent
FILES = Path(__file__).parent / "files"
FAULTY = ROOT / "tests" / "faulty.py"


class Terminal(StringIO):
    """A stream that is looked at by a person."""

    def isatty(self) -> bool:
        return True


@dataclass(frozen=True)
class Ran:
    """How a command ended, and what it wrote."""

    status: ExitStatus
    out: str
    err: str


@dataclass
class Shell:
    """Runs commands in process."""

    home: Path
    project: Path
    platform: str = "linux"
    variables: dict[str, str] = field(default_factory=dict[str, str])
    terminal: bool = False

    def run(self, *arguments: str, typed: str = "") -> Ran:
        stream = Terminal if self.terminal else StringIO
        out, err = stream(), stream()
        status = main(arguments, self.environment(out, err, typed))
        return Ran(status, out.getvalue(), err.getvalue())

    def environment(self, out: StringIO, err: StringIO, typed: str = "") -> Environment:
        return Environment(
            out,
            err,
            self.all_variables(),
            self.project,
            StringIO(typed),
            self.platform,
            warm_python(),
        )

    def all_variables(self) -> dict[str, str]:
        given = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        return {**given, "HOME": str(self.home), "PYTHONPATH": str(ROOT), **self.variables}

    def file_of(self, client: str, scope: str | None = None) -> ClientFile:
        environment = self.environment(StringIO(), StringIO())
        return locate(client_named(client), scope, environment)

    def give(self, client: str, scope: str | None = None) -> Path:
        """Put the sample of a client's file where the client keeps it."""
        path = self.file_of(client, scope).path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(sample(client).read_bytes())
        return path

    def write_servers(self, text: str) -> Path:
        path = self.project / "servers.yaml"
        path.write_text(text, encoding="utf-8")
        return path


def sample(client: str) -> Path:
    """Return the sample of a client's file."""
    (found,) = FILES.glob(f"{client}.*")
    return found


def faulty(mode: str = "ok") -> str:
    """Return the command of a server that does as it is told, as YAML."""
    return f"command: {sys.executable}\n    args: [{FAULTY}, {mode}]\n    description: A test"
