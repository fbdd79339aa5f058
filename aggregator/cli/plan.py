"""What taking over servers would change: `servers.yaml`, and the env file for their secrets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aggregator.cli.changes import Change, content
from aggregator.cli.documents import UneditableError, format_of
from aggregator.cli.environment import CommandError, Environment
from aggregator.cli.foreign import Foreign, read_tree
from aggregator.cli.vault import Vault, env_lines, references
from aggregator.config import parse_config
from aggregator.config.dotenv import EnvFileError, read_env_file

ENV_FILE = ".env"
HEADER = """\
# The servers behind the aggregator. `aggregator check` tells whether they are in good order.
# `aggregator schema --help` tells how an editor can complete and explain the keys.

"""


@dataclass(frozen=True)
class Plan:
    """What would be written, what is taken over by it, and what is not."""

    changes: tuple[Change, ...]
    taken: tuple[Foreign, ...]
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    secrets: tuple[str, ...]
    """What must not be shown."""


def plan_import(foreign: Sequence[Foreign], target: Path, environment: Environment) -> Plan:
    """Work out how servers get into a file; what is there already stays as it is.

    Raises:
        CommandError: The file cannot be read, or not be changed safely.
    """
    tree = read_tree(target) if target.exists() else {}
    env_path = target.parent / Path(str(tree.get("envFile") or ENV_FILE)).expanduser()
    sorting = _Sorting(tree.get("servers") or {}, Vault(_kept(env_path)))
    for each in foreign:
        sorting.sort(each)
    taken, vault = sorting.taken, sorting.vault
    edits: dict[tuple[str, ...], object] = {
        ("servers", each.name): entry for each, entry in taken.values()
    }
    in_file = {*vault.kept, *vault.taken}
    if not tree.get("envFile") and in_file & references([entry for _, entry in taken.values()]):
        edits = {("envFile",): ENV_FILE, **edits}
    changes = [_edited(target, edits, environment)]
    if vault.taken:
        one = len(vault.taken) == 1
        count = "1 secret moves" if one else f"{len(vault.taken)} secrets move"
        sorting.warnings.append(
            f"{count} to `{env_path}`, for you alone to read; keep it out of version control"
        )
        changes.append(_with_secrets(env_path, vault.taken))
    return Plan(
        tuple(change for change in changes if change.is_needed),
        tuple(each for each, _ in taken.values()),
        tuple(sorting.notes),
        tuple(sorting.warnings),
        tuple(vault.taken.values()),
    )


class _Sorting:
    """Tells the servers that can be taken from those that cannot."""

    def __init__(self, present: Mapping[str, Any], vault: Vault) -> None:
        self._present = present
        self.vault = vault
        self.taken: dict[str, tuple[Foreign, dict[str, Any]]] = {}
        self.notes: list[str] = []
        self.warnings: list[str] = []

    def sort(self, each: Foreign) -> None:
        """Take one server, or say why not."""
        if each.problem is not None:
            self.warnings.append(f"`{each.written}` is left out: {each.problem}")
            return
        before = dict(self.vault.taken)
        entry = self.vault.emptied(each.name, each.entry)
        if each.name in self._present or each.name in self.taken:
            self.vault.taken = before
            self._repeated(each, entry)
            return
        self.taken[each.name] = (each, entry)
        self.notes.append(f"`{each.name}` from {each.source.title}")
        self.warnings.extend(f"`{each.name}`: {note}" for note in each.notes)

    def _repeated(self, each: Foreign, entry: dict[str, Any]) -> None:
        known = self.taken[each.name][1] if each.name in self.taken else self._present[each.name]
        if {key: known.get(key) for key in entry} == entry:
            self.notes.append(f"`{each.name}` is there already")
        else:
            self.warnings.append(
                f"`{each.name}` from {each.source.title} is left out: "
                "another server of that name is there already"
            )


def _kept(path: Path) -> Mapping[str, str]:
    try:
        return read_env_file(path) if path.exists() else {}
    except EnvFileError as error:
        raise CommandError(str(error)) from None


def _edited(
    target: Path, edits: Mapping[tuple[str, ...], object], environment: Environment
) -> Change:
    before = content(target)
    text = HEADER if before is None else before.decode("utf-8-sig")
    try:
        for path, value in edits.items():
            text = format_of(target).put(text, path, value)
    except UneditableError:
        raise CommandError(
            f"`{target}` is written in a way that cannot be added to safely",
            "Write `servers:` as an indented block",
        ) from None
    if edits:
        parse_config(text, target, environment.variables)
    return Change(target, before, text.encode() if edits else before)


def _with_secrets(path: Path, secrets: Mapping[str, str]) -> Change:
    before = content(path)
    kept = (before or b"").decode()
    gap = "" if not kept or kept.endswith("\n") else "\n"
    return Change(path, before, f"{kept}{gap}{env_lines(secrets)}".encode(), confidential=True)
