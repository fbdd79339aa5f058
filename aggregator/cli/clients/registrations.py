"""Which clients have files on this machine, and in which of them we are registered."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aggregator.cli.clients.documents import UneditableError
from aggregator.cli.clients.foreign import is_ours, servers_in
from aggregator.cli.clients.location import ClientFile, locate
from aggregator.cli.environment import CommandError, Environment
from aggregator.clients import INSTALLABLE

Report = dict[str, Any]


def registrations(environment: Environment) -> Iterator[Report]:
    """Yield every client's file on this machine, and whether we are registered in it."""
    seen: set[tuple[Path, tuple[str, ...]]] = set()
    for client in INSTALLABLE:
        for scope in client.files:
            about: Report = {"client": client.name, "scope": scope}
            try:
                file = locate(client, scope, environment)
                is_new = file.path.is_file() and (file.path, file.keys) not in seen
            except PermissionError as error:
                problem = f"`{error.filename}` cannot be read: permission denied"
                yield {**about, "path": str(error.filename), **_unknown(problem)}
                continue
            if is_new:
                seen.add((file.path, file.keys))
                yield {**about, "path": str(file.path), **_registration(file)}


def _unknown(problem: str) -> Report:
    return {"registered": [], "servers": 0, "problem": problem}


def _registration(file: ClientFile) -> Report:
    try:
        servers = servers_in(file)
    except (CommandError, UneditableError) as error:
        return _unknown(str(error))
    ours = [name for name, entry in servers.items() if is_ours(entry)]
    return {"registered": ours, "servers": len(servers) - len(ours)}
