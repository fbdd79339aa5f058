"""`aggregator import`: take over the servers that a client has."""

import argparse
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aggregator.basics.glyphs import on_one_line
from aggregator.cli.clients.changes import announcing, make, show
from aggregator.cli.clients.foreign import foreign_servers, recognise, servers_in
from aggregator.cli.clients.location import ClientFile, client_named, locate
from aggregator.cli.clients.plan import Plan, plan_import
from aggregator.cli.config_file import config_path
from aggregator.cli.environment import CommandError, Environment, ExitStatus
from aggregator.cli.pages import as_json
from aggregator.clients import INSTALLABLE, Client


def run(options: argparse.Namespace, environment: Environment) -> ExitStatus:
    """Show what would be added to `servers.yaml`, and add it if a person agrees."""
    target = config_path(options.into, environment)
    files = files_of(options.source, environment)
    servers = [each for file in files for each in foreign_servers(file, environment)]
    plan = plan_import(servers, target, environment)
    if options.json:
        with announcing(environment, asks=False):
            environment.say(as_json(_listing(plan, target)))
    else:
        tell(plan, environment)
        show(plan.changes, plan.secrets, environment, asks=not options.yes)
    if not plan.changes:
        environment.note(f"Nothing is to be changed in `{environment.known_as(target)}`")
        return ExitStatus.FINE if plan.same or not servers else ExitStatus.ERROR
    if options.json and not options.yes:
        return ExitStatus.FINE
    if not options.yes and not environment.agrees(f"Write `{environment.known_as(target)}`?"):
        environment.note("Nothing was changed")
        return ExitStatus.ERROR
    make(plan.changes)
    checked = f" --config {shlex.quote(options.into)}" if options.into else ""
    wrote = f"Wrote `{environment.known_as(target)}`"
    environment.note(f"{wrote}; `aggregator check{checked}` says whether they start")
    return ExitStatus.FINE


def _listing(plan: Plan, target: Path) -> dict[str, Any]:
    """Return for programs what was found and what would be written."""
    return {
        "into": str(target),
        "servers": [{"name": each.name, "from": str(each.file.path)} for each in plan.taken],
        "notes": plan.notes,
        "warnings": plan.warnings,
        "files": [str(change.path) for change in plan.changes],
    }


def tell(plan: Plan, environment: Environment) -> None:
    """Say what is taken over, and what a person should know."""
    for note in plan.notes:
        environment.note(on_one_line(note))
    for warning in plan.warnings:
        environment.warn(warning)


def files_of(named: str | None, environment: Environment) -> list[ClientFile]:
    """Return the files to read: those of a client, one file, or all that are found.

    Raises:
        CommandError: There is none with servers.
    """
    if named is None:
        files = [each for client in INSTALLABLE for each in readable(client, environment)]
        if not files:
            raise CommandError(
                "no client with servers was found on this machine",
                "Name a file: `aggregator import path/to/mcp.json`",
            )
        return files
    path = environment.directory / Path(named).expanduser()
    if path.is_file() or "/" in named or "." in named:
        return [recognise(path, environment)]
    client = client_named(named)
    every = [locate(client, scope, environment) for scope in client.files]
    files = [each for each in every if servers_in(each)]
    if not files:
        places = dict.fromkeys(f"`{each.path}`" for each in every)
        raise CommandError(
            f"{client.title} has no servers", f"They are looked for in {', '.join(places)}"
        )
    return files


def readable(client: Client, environment: Environment) -> Iterator[ClientFile]:
    """Yield the files of a client that name servers, and warn of those that cannot be read."""
    for scope in client.files:
        try:
            file = locate(client, scope, environment)
            if servers_in(file):
                yield file
        except CommandError as error:
            environment.warn(f"{client.title} is skipped: {error}")
        except PermissionError as error:
            problem = f"`{error.filename}` cannot be read: permission denied"
            environment.warn(f"{client.title} is skipped: {problem}")
