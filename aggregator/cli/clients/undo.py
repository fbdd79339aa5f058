"""Undo an installation: to the byte if the client left its file alone, with care if not."""

import argparse
import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import Any

from aggregator.basics.json import is_array, is_plain_object
from aggregator.cli.clients.changes import Change, content, make, show
from aggregator.cli.clients.documents import (
    Format,
    UneditableError,
    format_of,
    found,
)
from aggregator.cli.clients.foreign import is_ours, read_tree, servers_in
from aggregator.cli.clients.location import ClientFile
from aggregator.cli.clients.records import Kept, Record
from aggregator.cli.clients.registrations import registrations
from aggregator.cli.clients.vault import secrets_in
from aggregator.cli.environment import CommandError, Environment, ExitStatus
from aggregator.cli.parser.editing import USUAL_NAME
from aggregator.clients import Client


def undo(
    client: Client,
    file: ClientFile,
    options: argparse.Namespace,
    environment: Environment,
    record: Record,
) -> ExitStatus:
    """Put back what an installation changed."""
    kept = record.load()
    changes = [_restore(each, file, options.name, environment) for each in kept]
    if not any(each.path == file.path for each in kept):
        changes.append(_change(Kept(file.path, None, None), file, options.name))
    needed = [change for change in changes if change.is_needed]
    if not needed:
        raise CommandError(
            f"`{options.name}` is not registered in {_where(client, options.scope)}",
            _elsewhere(client, environment),
        )
    secrets = secrets_in(read_tree(file.path)) if file.path.exists() else set[str]()
    hidden = {*secrets, *(each for old in kept for each in _secrets(old))}
    show(needed, hidden, environment, asks=not options.yes)
    if not options.yes and not environment.agrees(f"Restore `{environment.known_as(file.path)}`?"):
        environment.note("Nothing was changed")
        return ExitStatus.ERROR
    make(needed)
    _tidy(kept, needed)
    record.forget()
    environment.note(_outcome(client, file, options.scope))
    return ExitStatus.FINE


def undo_command(client: Client, scope: str | None, name: str) -> str:
    """Return what to type to undo an installation."""
    words = ["aggregator", "install", client.name]
    if scope and scope != next(iter(client.files)):
        words += ["--scope", scope]
    if name != USUAL_NAME:
        words += ["--name", name]
    return shlex.join([*words, "--undo"])


def to_keep(changes: Sequence[Change], file: ClientFile, name: str, record: Record) -> list[Kept]:
    """Return what undoing needs to know of changes, so that it undoes earlier ones with them."""
    earlier = {kept.path: kept for kept in record.load()}
    return [
        Kept(
            change.path,
            _reverted(change.before, earlier[change.path], file, name),
            change.after,
            earlier[change.path].made,
        )
        if change.path in earlier
        else Kept(change.path, change.before, change.after, tuple(_missing(change.path)))
        for change in changes
    ]


def _missing(path: Path) -> Iterator[Path]:
    """Yield the folders that a file needs and that are not there, the innermost first."""
    return takewhile(lambda each: not each.exists(), path.parents)


def _tidy(kept: Sequence[Kept], changes: Sequence[Change]) -> None:
    """Take away the folders that were made, as `.vscode` in a project, if nothing is in them."""
    gone = {change.path for change in changes if change.after is None}
    for folder in (each for old in kept if old.path in gone for each in old.made):
        with suppress(OSError):
            folder.rmdir()


def _restore(kept: Kept, file: ClientFile, name: str, environment: Environment) -> Change:
    change = _change(kept, file, name)
    if change.before != kept.after:
        is_client = kept.path == file.path
        what = "only what was done here is undone" if is_client else "it stays as it is"
        environment.warn(f"`{kept.path}` has been changed since; {what}")
    return change


def _change(kept: Kept, file: ClientFile, name: str) -> Change:
    now = content(kept.path)
    private = kept.path.suffix == ".env" or kept.path.name == ".env"
    return Change(kept.path, now, _reverted(now, kept, file, name), confidential=private)


def _reverted(now: bytes | None, kept: Kept, file: ClientFile, name: str) -> bytes | None:
    """Return a file without what an installation did to it."""
    if now == kept.after:
        return kept.before
    if now is None or kept.path != file.path:
        return now
    form = format_of(file.path)
    try:
        text = now.decode("utf-8-sig")
        if is_ours(found(form.read(text), (*file.keys, name))):
            text = form.drop(text, (*file.keys, name))
        for each, entry in _taken(form, kept, file, name).items():
            if found(form.read(text), (*file.keys, each)) is None:
                text = form.put(text, (*file.keys, each), entry, listed=file.listed)
    except (UneditableError, ValueError):
        raise CommandError(
            f"`{file.path}` is written in a way that cannot be changed safely",
            f"Remove `{'.'.join(file.keys)}.{name}` by hand",
        ) from None
    return text.encode()


def _taken(form: Format, kept: Kept, file: ClientFile, name: str) -> dict[str, Any]:
    """Return the servers that an installation moved away, and the one it replaced."""
    before, after = (_servers(form, data, file.keys) for data in (kept.before, kept.after))
    return {each: entry for each, entry in before.items() if each == name or each not in after}


def _servers(form: Format, data: bytes | None, keys: Sequence[str]) -> dict[str, Any]:
    servers = found(form.read(data.decode("utf-8-sig")), keys) if data else None
    if is_array(servers):
        return {
            str(each["name"]): each for each in servers if is_plain_object(each) and "name" in each
        }
    return servers if is_plain_object(servers) else {}


def _outcome(client: Client, file: ClientFile, scope: str | None) -> str:
    servers = servers_in(file)
    ours = [name for name, entry in servers.items() if is_ours(entry)]
    if not ours:
        return f"{client.title} no longer starts the aggregator"
    names = ", ".join(f"`{name}`" for name in ours)
    return (
        f"{client.title} still starts the aggregator as {names}, as it did before\n"
        f"`{undo_command(client, scope, ours[0])}` removes that, too"
    )


def _where(client: Client, scope: str | None) -> str:
    return f"{client.title} for scope `{scope}`" if scope else client.title


def _elsewhere(client: Client, environment: Environment) -> str | None:
    """Return what would undo the registrations that there are, if there are any."""
    commands = [
        f"`{undo_command(client, each['scope'], name)}` for `{name}` in `{each['path']}`"
        for each in registrations(environment)
        for name in (each["registered"] if each["client"] == client.name else ())
    ]
    return "Use " + ", or ".join(commands) if commands else None


def _secrets(kept: Kept) -> set[str]:
    try:
        return secrets_in(format_of(kept.path).read((kept.before or b"").decode("utf-8-sig")))
    except ValueError:
        return set()
