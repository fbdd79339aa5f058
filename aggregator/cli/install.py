"""`aggregator install`: register us in a client, with what it needs to keep us loaded."""

import argparse
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from aggregator.cli.clients.changes import Change, check, content, make, show
from aggregator.cli.clients.documents import UneditableError, format_of, found
from aggregator.cli.clients.foreign import Foreign, foreign_servers, is_ours, read_tree
from aggregator.cli.clients.location import ClientFile, client_named, locate
from aggregator.cli.clients.plan import Plan, plan_import
from aggregator.cli.clients.records import Record
from aggregator.cli.clients.registrations import Report, registrations
from aggregator.cli.clients.undo import to_keep, undo, undo_command
from aggregator.cli.clients.vault import secrets_in
from aggregator.cli.config_file import config_path
from aggregator.cli.environment import CommandError, Environment, ExitStatus
from aggregator.cli.importing import tell
from aggregator.cli.pages import as_json, columns
from aggregator.clients import INSTALLABLE, Client
from aggregator.clients.client import FROM_ENVIRONMENT
from aggregator.config.dotenv import EnvFileError, read_env_file

_VARIABLE = re.compile(r"(?<!\$)\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_NAME = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
"""What the strictest of clients take for a name."""
_GIVEN = frozenset({"HOME", "PATH", "USER", "SHELL", "LANG", "TERM", "AGGREGATOR_PYTHON"})
"""Variables that every program has."""


def run(options: argparse.Namespace, environment: Environment) -> ExitStatus:
    """Show what would change in the client's file, and change it if a person agrees."""
    _check_options(options)
    if options.client is None:
        return _list(options, environment)
    client = client_named(options.client)
    file = locate(client, options.scope, environment)
    record = Record(environment, client.name, file, options.name)
    if options.undo:
        return undo(client, file, options, environment, record)
    return _install(client, file, options, environment, record)


def _check_options(options: argparse.Namespace) -> None:
    """Refuse what would have no effect.

    Raises:
        CommandError: An option does not go with what else was typed.
    """
    if options.client is not None and options.json:
        raise CommandError("`--json` lists clients and takes none", status=ExitStatus.USAGE)
    for option in ("undo", "move", "scope", "http") if options.client is None else ():
        if getattr(options, option):
            raise CommandError(
                f"`--{option}` needs the name of a client",
                "`aggregator install` lists the clients",
                ExitStatus.USAGE,
            )


def _list(options: argparse.Namespace, environment: Environment) -> ExitStatus:
    """Show which clients there are to choose from."""
    found = list(registrations(environment))
    rows = [_row(client, found) for client in INSTALLABLE]
    if options.json:
        environment.say(as_json({"clients": rows}))
        return ExitStatus.FINE
    paper = environment.paper
    here = [cells for each in rows for cells in _cells(each, environment)]
    absent = ", ".join(each["client"] for each in rows if not each["files"])
    table = columns(("CLIENT", "STATE", "FILES"), here, paper, paths_last=True) if here else ""
    others = paper.fill(f"Not found here: {absent}") if absent else ""
    next_step = "`aggregator install CLIENT` registers the aggregator in one of them"
    environment.say("\n\n".join(each for each in (table, others, paper.fill(next_step)) if each))
    return ExitStatus.FINE


def _row(client: Client, found: Sequence[Report]) -> dict[str, Any]:
    own = [each for each in found if each["client"] == client.name]
    return {
        "client": client.name,
        "title": client.title,
        "scopes": list(client.files),
        "files": list(dict.fromkeys(each["path"] for each in own)),
        "registered": [name for each in own for name in each["registered"]],
    }


def _cells(row: dict[str, Any], environment: Environment) -> Iterator[tuple[str, str, str]]:
    """Yield each file of a client, with what there is to say of the client before the first."""
    name, state = row["client"], _state(row)
    for each in row["files"]:
        yield name, state, environment.known_as(Path(each), environment.stdout)
        name, state = "", ""


def _state(row: dict[str, Any]) -> str:
    if names := row["registered"]:
        return f"registered as {', '.join(names)}"
    return "not registered"


def _install(
    client: Client,
    file: ClientFile,
    options: argparse.Namespace,
    environment: Environment,
    record: Record,
) -> ExitStatus:
    _check_name(client, file, options.name)
    config = config_path(options.config, environment).absolute()
    plan = _plan(client, file, config, environment) if options.move else None
    if options.http is None:
        _check_config(config, plan)
    entry = _entry(client, config, plan, options, environment)
    moved = (*plan.taken, *plan.same) if plan else ()
    changes = [_registered(file, options.name, entry, moved)]
    changes = [change for change in changes if change.is_needed] + [*(plan.changes if plan else ())]
    if not changes:
        environment.note(f"`{options.name}` is registered in {client.title} already")
        _tell_kept(client, file, options, environment)
        return ExitStatus.FINE
    kept = to_keep(changes, file, options.name, record)
    _tell_absent(client, file, environment)
    show(changes, _secrets(file.path), environment, asks=not options.yes)
    if not options.yes and not environment.agrees(f"Write `{environment.known_as(file.path)}`?"):
        environment.note("Nothing was changed")
        return ExitStatus.ERROR
    check(changes)
    record.keep(kept)
    make(changes)
    undoing = undo_command(client, options.scope, options.name)
    there = environment.known_as(record.folder)
    has_before = any(each.before is not None for each in kept)
    back = f"Backups are in `{there}`; `{undoing}` restores them"
    environment.note(
        f"{_promised(client, config, options, environment)}\n"
        f"{back if has_before else f'`{undoing}` takes that back'}"
    )
    _tell_shared(file, options, environment)
    _tell_kept(client, file, options, environment)
    return ExitStatus.FINE


def _entry(
    client: Client,
    config: Path,
    plan: Plan | None,
    options: argparse.Namespace,
    environment: Environment,
) -> dict[str, object]:
    """Return what is registered: how we are started, or where our door is."""
    if options.http is not None:
        return _door(client, options)
    command = _command(config, shared=_is_shared(client, options, environment))
    return client.entry(options.name, command, _variables(config, plan))


def _is_shared(client: Client, options: argparse.Namespace, environment: Environment) -> bool:
    """Whether a client is to share servers: as a person says, or where it is known to work."""
    if options.shared is not None:
        return options.shared
    # What others have of a file of the project may be another system.
    is_here = environment.platform == "linux" and options.scope in (None, "user")
    return is_here and not client.unshared


def _door(client: Client, options: argparse.Namespace) -> dict[str, object]:
    """Return the registration of the door over HTTP.

    Raises:
        CommandError: There can be none there, or the client's file would hold the token.
    """
    from aggregator.upstream.http.binding import PROTOCOL, BindingError, parse_binding  # noqa: PLC0415 - few need it

    if options.shared is not None:
        raise CommandError(
            "`--shared` does nothing with `--http`: the client then starts no process",
            "`aggregator serve --http 8765 --shared` has the door share servers",
            ExitStatus.USAGE,
        )
    try:
        binding = parse_binding(options.http)
    except BindingError as error:
        raise CommandError(str(error), error.hint, ExitStatus.USAGE) from error
    entry = client.door(f"http://{binding.authority}{PROTOCOL}")
    if entry is None:
        raise CommandError(
            f"{client.title} is not known to read a token from a variable: "
            "its file would hold the token itself",
            f"`aggregator install {client.name} --shared` shares servers without it; "
            "docs/clients.md has the entry to write by hand",
        )
    return entry


def _promised(
    client: Client, config: Path, options: argparse.Namespace, environment: Environment
) -> str:
    """Say what a registration means."""
    if options.http is not None:
        return (
            f"From its next start on, {client.title} connects to the aggregator as "
            f"`{options.name}`, if `{FROM_ENVIRONMENT}` is set to the token that "
            "`aggregator serve --http` prints, and that is running"
        )
    text = (
        f"From its next start on, {client.title} runs the aggregator as `{options.name}`, "
        f"with `{environment.known_as(config)}`"
    )
    if not _is_shared(client, options, environment):
        return text
    return (
        f"{text}, and shares its servers with other clients that are registered so; "
        "`--no-shared` has it start its own"
    )


def _tell_absent(client: Client, file: ClientFile, environment: Environment) -> None:
    """Say that a client has no file here, in no scope: it may not be installed, or never run."""
    if not any(each["client"] == client.name for each in registrations(environment)):
        there = environment.known_as(file.path)
        environment.note(
            f"{client.title} was not found here; `{there}` is written for when it is installed"
        )


def _tell_shared(file: ClientFile, options: argparse.Namespace, environment: Environment) -> None:
    """Say what a file of a project has that is of this machine alone."""
    if options.scope == "project":
        environment.warn(
            f"`{file.path}` names programs and files of this machine; "
            "whoever shares the project needs an entry of their own"
        )


def _check_name(client: Client, file: ClientFile, name: str) -> None:
    """Refuse to replace a server that is the client's own, and what clients take for no name.

    Raises:
        CommandError: One has the name that we would have, or nothing can have it.
    """
    if not (client.takes_any_name or _NAME.fullmatch(name)):
        raise CommandError(
            f"`{name}` is not allowed as a name",
            f"{client.title} takes letters, digits, `-` and `_`",
            ExitStatus.USAGE,
        )
    entry = found(read_tree(file.path), (*file.keys, name)) if file.path.exists() else None
    if entry is not None and not is_ours(entry):
        raise CommandError(
            f"{client.title} has a server `{name}` that is not the aggregator",
            "`--name NAME` registers the aggregator under another name",
        )


def _plan(client: Client, file: ClientFile, config: Path, environment: Environment) -> Plan:
    servers = foreign_servers(file, environment)
    plan = plan_import(servers, config, environment, left=f"stays in {client.title}")
    tell(plan, environment)
    return plan


def _tell_kept(
    client: Client, file: ClientFile, options: argparse.Namespace, environment: Environment
) -> None:
    """Say that a client has servers beside us; one that is to move them has told of each."""
    servers = foreign_servers(file, environment)
    kept = [each for each in servers if each.problem is None]
    if kept and not options.move:
        count = "1 server" if len(kept) == 1 else f"{len(kept)} servers"
        it = "it" if len(kept) == 1 else "them"
        environment.note(f"{client.title} keeps {count} of its own; `--move` takes {it} over")


def _check_config(config: Path, plan: Plan | None) -> None:
    """Refuse to register what could not start.

    Raises:
        CommandError: There is no file of servers, and none is about to be written.
    """
    if not config.is_file() and not (plan and plan.changes):
        raise CommandError(
            f"`{config}` does not exist",
            "`aggregator init` makes one from the clients you have; `--config` names another",
            ExitStatus.USAGE,
        )


def _registered(
    file: ClientFile,
    name: str,
    entry: dict[str, object],
    moved: Sequence[Foreign],
) -> Change:
    before = content(file.path)
    tree = read_tree(file.path) if before is not None else {}
    text = (before or b"").decode("utf-8-sig")
    bom = "\ufeff" if (before or b"").startswith(b"\xef\xbb\xbf") else ""
    form = format_of(file.path)
    try:
        for key, value in () if tree else file.preamble:
            text = form.put(text, (key,), value)
        if found(tree, (*file.keys, name)) != entry:
            text = form.put(text, (*file.keys, name), entry, listed=file.listed)
        for each in moved:
            text = form.drop(text, (*file.keys, each.written))
    except UneditableError:
        raise CommandError(
            f"`{file.path}` is written in a way that cannot be changed safely",
            f"Add this under `{'.'.join(file.keys)}.{name}`:\n\n{as_json(entry)}",
        ) from None
    return Change(file.path, before, f"{bom}{text}".encode())


def _command(config: Path, *, shared: bool) -> list[str]:
    """Return how a client starts us: by full paths, as many have no `PATH` to speak of."""
    script = Path(sys.executable).with_name("aggregator")
    program = [str(script)] if script.exists() else [sys.executable, "-m", "aggregator"]
    return [*program, "serve", *["--shared"] * shared, "--config", str(config)]


def _variables(config: Path, plan: Plan | None) -> list[str]:
    """Return the variables that servers need from the environment of the client."""
    planned = {change.path: change.after for change in (plan.changes if plan else ())}
    text = (planned.get(config) or content(config) or b"").decode(errors="replace")
    written = "\n".join(line.partition(" #")[0] for line in text.splitlines() if _is_said(line))
    kept = {*_GIVEN, *_assigned(planned.values())}
    for each in re.findall(r"envFile:\s*[\"']?([^\"'\s]+)", written):
        with suppress(EnvFileError):
            kept |= read_env_file(config.parent / Path(each).expanduser()).keys()
    return [name for name in dict.fromkeys(_VARIABLE.findall(written)) if name not in kept]


def _assigned(files: Iterable[bytes | None]) -> Iterable[str]:
    """Yield the variables that an env file about to be written holds."""
    for data in files:
        yield from re.findall(r"^(\w+)=", (data or b"").decode(errors="replace"), re.MULTILINE)


def _is_said(line: str) -> bool:
    return not line.lstrip().startswith("#")


def _secrets(path: Path) -> set[str]:
    return secrets_in(read_tree(path)) if path.exists() else set()
