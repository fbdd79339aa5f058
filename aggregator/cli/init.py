"""`aggregator init`: a first `servers.yaml`, from the clients that are here."""

import argparse
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from aggregator.cli import install
from aggregator.cli.clients.changes import make, show
from aggregator.cli.clients.foreign import foreign_servers, read_tree
from aggregator.cli.clients.location import ClientFile
from aggregator.cli.clients.plan import Plan, plan_import
from aggregator.cli.clients.registrations import registrations
from aggregator.cli.config_file import user_config
from aggregator.cli.environment import CommandError, Environment, ExitStatus
from aggregator.cli.importing import files_of, readable, tell
from aggregator.cli.opening import place
from aggregator.cli.parser.editing import USUAL_NAME
from aggregator.clients import INSTALLABLE, Client
from aggregator.entry.place import CONFIG_VARIABLE, DEFAULT_CONFIG

NAMED = 5
"""Servers of a client that are named in a question."""

Found = tuple[ClientFile, list[str]]
"""A file of a client, and what its servers are called."""


def run(options: argparse.Namespace, environment: Environment) -> ExitStatus:
    """Make the file, and offer to register it in the clients that there are."""
    done: list[str] = []
    try:
        return _run(options, environment, done)
    except KeyboardInterrupt:
        what = f"Written so far: {', '.join(done)}" if done else "Nothing was written"
        next_step = f"; `aggregator install CLIENT{place(options)}` registers it in a client"
        environment.note(f"\n{what}{next_step if done else ''}")
        raise


def _run(options: argparse.Namespace, environment: Environment, done: list[str]) -> ExitStatus:
    """Do it, and note what has been written."""
    target = _target(options, environment)
    there = place(options)
    found = [] if options.sources else list(_found(environment))
    if not found and not options.sources:
        environment.note("No client with servers was found on this machine")
    files = _chosen(found, options, environment)
    plan = _plan(files, target, environment)
    if not plan.changes:
        raise _there_already(target, there)
    tell(plan, environment)
    show(plan.changes, plan.secrets, environment, asks=not options.yes)
    if not options.yes and not environment.agrees(f"Write `{environment.known_as(target)}`?"):
        environment.note("Nothing was changed")
        return ExitStatus.ERROR
    make(plan.changes)
    done.extend(f"`{environment.known_as(change.path)}`" for change in plan.changes)
    environment.note(
        f"Wrote `{environment.known_as(target)}`; `aggregator add{there}` adds a server to it"
    )
    if options.yes:
        _tell_left(found, _into(there), environment)
    is_registered = False
    for client in () if options.yes else _register(files, target, environment):
        is_registered = True
        done.append(f"the registration in {client.title}")
    if not is_registered:
        environment.note(f"`aggregator install CLIENT{there}` lets a client use what is in it")
    return ExitStatus.FINE


def _target(options: argparse.Namespace, environment: Environment) -> Path:
    """Return the file to make.

    Raises:
        CommandError: It is there and has servers, or is a directory.
    """
    given = options.config or environment.variables.get(CONFIG_VARIABLE)
    chosen = environment.directory / Path(given).expanduser() if given else None
    target = chosen or user_config(environment)
    if target.is_dir():
        hint = f"Name the file to make in it, such as `{target / DEFAULT_CONFIG}`"
        raise CommandError(f"`{target}` is a directory", hint)
    if target.exists() and _has_servers(target):
        raise _there_already(target, place(options))
    return target


def _has_servers(target: Path) -> bool:
    tree = read_tree(target)
    return bool(tree.get("servers")) or "mcpServers" in tree


def _there_already(target: Path, there: str) -> CommandError:
    return CommandError(
        f"`{target}` is there already",
        f"`aggregator add{there}` and `aggregator import{_into(there)}` add to it; "
        "`--config FILE` makes another",
    )


def _into(there: str) -> str:
    """Return how `import` is told which file is meant."""
    return there.replace("--config", "--into", 1)


def _found(environment: Environment) -> Iterator[Found]:
    """Yield the files of clients that have servers to take over, and what these are called."""
    seen = set[tuple[Path, tuple[str, ...]]]()
    for client in INSTALLABLE:
        for file in readable(client, environment):
            # At home, the file of the project is the person's own.
            is_new = (file.path, file.keys) not in seen
            seen.add((file.path, file.keys))
            if is_new and (names := [each.name for each in foreign_servers(file, environment)]):
                yield file, names


def _chosen(
    found: Sequence[Found], options: argparse.Namespace, environment: Environment
) -> list[ClientFile]:
    """Return the files to take servers from: those named, or those that a person agrees to.

    Raises:
        CommandError: There is nobody to ask; what could be done is shown.
    """
    if options.sources:
        return [each for source in options.sources for each in files_of(source, environment)]
    if options.yes:
        return _own(found)
    try:
        return [
            file for file, names in found if environment.agrees(f"Take over {_of(file, names)}?")
        ]
    except CommandError as error:
        plan = _plan(_own(found), _target(options, environment), environment)
        tell(plan, environment)
        show(plan.changes, plan.secrets, environment, asks=not options.yes)
        hint = f"`aggregator init{place(options)} --yes` does what is shown"
        raise CommandError(str(error), hint) from None


def _own(found: Iterable[Found]) -> list[ClientFile]:
    """Return the files that a person has for themselves.

    What lies in the directory may be anybody's, so its programs are taken only if that is agreed.
    """
    return [file for file, _ in found if not file.of_project]


def _tell_left(found: Sequence[Found], into: str, environment: Environment) -> None:
    """Say what was not taken over, as nobody was asked, and what takes it over now."""
    left = "; ".join(_of(file, names) for file, names in found if file.of_project)
    if left:
        environment.note(
            f"Left out, as it comes with this directory: {left}\n"
            f"`aggregator import{into}` takes that over too"
        )


def _of(file: ClientFile, names: Sequence[str]) -> str:
    return f"{_some(names)} of {file.title}"


def _some(names: Sequence[str]) -> str:
    """Name a few servers, and count the others."""
    few = [f"`{name}`" for name in names[:NAMED]]
    rest = [f"{len(names) - NAMED} more"] if names[NAMED:] else []
    *others, last = [*few, *rest]
    return f"{', '.join(others)} and {last}" if others else last


def _plan(files: Iterable[ClientFile], target: Path, environment: Environment) -> Plan:
    servers = [each for file in files for each in foreign_servers(file, environment)]
    return plan_import(servers, target, environment, is_needed=not target.exists())


def _register(
    files: Iterable[ClientFile], target: Path, environment: Environment
) -> Iterator[Client]:
    """Offer each client that is here, and yield those that now start us."""
    emptied = {file.client.name for file in files if file.client}
    here = {each["client"] for each in registrations(environment) if not each["registered"]}
    for client in INSTALLABLE:
        if client.name not in here:
            continue
        options = argparse.Namespace(
            shared=None,
            http=None,
            client=client.name,
            scope=None,
            name=USUAL_NAME,
            # What it keeps beside us, its model would see twice.
            move=client.name in emptied,
            undo=False,
            json=False,
            yes=False,
            config=str(target),
        )
        moved = ", and take out what is in your file now" if options.move else ""
        environment.note(f"\nRegister it in {client.title}{moved}:")
        try:
            status = install.run(options, environment)
        except CommandError as error:
            environment.warn(str(error))
            continue
        if status is ExitStatus.FINE:
            yield client
