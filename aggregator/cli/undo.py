"""Undo an installation: to the byte if the client left its file alone, with care if not."""

import argparse
from collections.abc import Sequence

from aggregator.cli.changes import Change, content, make, show
from aggregator.cli.documents import Format, Tree, UneditableError, format_of, found, is_mapping
from aggregator.cli.environment import CommandError, Environment, ExitStatus
from aggregator.cli.foreign import read_tree
from aggregator.cli.records import Kept, Record, digest_of
from aggregator.cli.registry import ClientFiles, Found
from aggregator.cli.vault import secrets_in


def undo(
    client: ClientFiles,
    place: Found,
    options: argparse.Namespace,
    environment: Environment,
    record: Record,
) -> ExitStatus:
    """Put back what an installation changed."""
    kept = record.load()
    changes = [_restored(each, place, options.name, environment) for each in kept]
    if not any(each.path == place.path for each in kept):
        changes.append(_removed(place, options.name, None))
    needed = [change for change in changes if change is not None and change.is_needed]
    if not needed:
        raise CommandError(f"`{options.name}` is not registered in {client.title}")
    secrets = secrets_in(read_tree(place.path)) if place.path.exists() else set[str]()
    hidden = {*secrets, *(each for old in kept for each in _secrets(old))}
    show(needed, hidden, environment)
    if not options.yes and not environment.agrees(f"Restore `{place.path}`?"):
        environment.note("Nothing was changed")
        return ExitStatus.ERROR
    make(needed)
    record.forget()
    environment.note(f"{client.title} no longer starts the aggregator")
    return ExitStatus.FINE


def _restored(kept: Kept, place: Found, name: str, environment: Environment) -> Change | None:
    now = content(kept.path)
    if digest_of(now) == kept.after:
        private = kept.path.suffix == ".env" or kept.path.name == ".env"
        return Change(kept.path, now, kept.before, confidential=private)
    if kept.path != place.path:
        environment.warn(f"`{kept.path}` has been changed since, and stays as it is")
        return None
    environment.warn(f"`{kept.path}` has been changed since; only what was done here is undone")
    return _removed(place, name, kept.before)


def _removed(place: Found, name: str, before: bytes | None) -> Change | None:
    """Take our registration out of a file, and put back the servers that were moved."""
    now = content(place.path)
    if now is None:
        return None
    form = format_of(place.path)
    text = now.decode("utf-8-sig")
    try:
        if found(form.read(text), (*place.keys, name)) is not None:
            text = form.drop(text, (*place.keys, name))
        text = _put_back(form, text, place.keys, before)
    except (UneditableError, ValueError):
        raise CommandError(
            f"`{place.path}` is written in a way that cannot be changed safely",
            f"Remove `{'.'.join(place.keys)}.{name}` by hand",
        ) from None
    return Change(place.path, now, text.encode())


def _put_back(form: Format, text: str, keys: Sequence[str], before: bytes | None) -> str:
    old: Tree = form.read(before.decode("utf-8-sig")) if before else {}
    servers = found(old, keys)
    for name, entry in servers.items() if is_mapping(servers) else ():
        if found(form.read(text), (*keys, name)) is None:
            text = form.put(text, (*keys, name), entry)
    return text


def _secrets(kept: Kept) -> set[str]:
    try:
        return secrets_in(format_of(kept.path).read((kept.before or b"").decode("utf-8-sig")))
    except ValueError:
        return set()
