"""Which clients have files on this machine, and in which of them we are registered."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aggregator.cli.clients.documents import UneditableError
from aggregator.cli.clients.foreign import Source, is_ours, servers_in
from aggregator.cli.clients.registry import CLIENTS
from aggregator.cli.environment import CommandError, Environment

Report = dict[str, Any]


def registrations(environment: Environment) -> Iterator[Report]:
    """Yield every client's file on this machine, and whether we are registered in it."""
    seen: set[tuple[Path, tuple[str, ...]]] = set()
    for client in CLIENTS:
        for scope in client.places:
            about: Report = {"client": client.name, "scope": scope}
            try:
                place = client.place(scope, environment)
                is_new = place.path.is_file() and (place.path, place.keys) not in seen
            except PermissionError as error:
                problem = f"`{error.filename}` cannot be read: permission denied"
                yield {**about, "path": str(error.filename), **_unknown(problem)}
                continue
            if is_new:
                seen.add((place.path, place.keys))
                known = _registration(Source(place.path, place.keys, client))
                yield {**about, "path": str(place.path), **known}


def _unknown(problem: str) -> Report:
    return {"registered": [], "servers": 0, "problem": problem}


def _registration(source: Source) -> Report:
    try:
        servers = servers_in(source)
    except (CommandError, UneditableError) as error:
        return _unknown(str(error))
    ours = [name for name, entry in servers.items() if is_ours(entry)]
    return {"registered": ours, "servers": len(servers) - len(ours)}
