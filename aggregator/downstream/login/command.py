"""The command that helps, told to whoever misses a server's tools."""

import shlex
from pathlib import Path
from typing import NamedTuple

from aggregator.downstream.login.challenge import Challenge


class Command(NamedTuple):
    """How a person logs in to one server."""

    server: str
    config: Path

    def line(self, scope: str = "") -> str:
        """Return the command as it is typed, wherever that is."""
        words = ["aggregator", "login", self.server]
        words += ["--scope", scope] if scope else []
        return shlex.join([*words, "--config", str(self.config)])

    def advice(self, said: Challenge) -> str:
        """Say what to do about a server that wants to know who asks."""
        other = "" if said.is_bearer else ", or name credentials in `headers` in servers.yaml"
        return f"run `{self.line()}`{other}"
