"""What taking over servers would change: `servers.yaml`, and the env file for their secrets."""

import codecs
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from aggregator.basics.frozen import frozen
from aggregator.basics.json import is_array, is_plain_object
from aggregator.cli.clients.changes import Change, check_private, content
from aggregator.cli.clients.documents import YAML, Format, Tree, UneditableError, format_of
from aggregator.cli.clients.foreign import Foreign, read_tree
from aggregator.cli.clients.vault import Vault, env_lines, references
from aggregator.cli.environment import CommandError, Environment
from aggregator.config import parse_config
from aggregator.config.document import Value
from aggregator.config.dotenv import EnvFileError, read_env_file
from aggregator.config.quantities import parted
from aggregator.config.variables import Expansion

ENV_FILE = ".env"
HEADER = """\
# The servers behind the aggregator. `aggregator check` starts each once and says what is wrong.
# `aggregator add` and `aggregator remove` change this file, and so can you.
# `aggregator schema --help` says how an editor can complete and explain the keys.
#
# Relative paths start at the directory of this file, and so do the programs.
# ${NAME} and ${NAME:-default} are filled in from the environment and from `envFile`, and
# ${keyring:NAME} from your keyring, where `aggregator secret set NAME` puts it; $$ is a $.

"""
FOOTER = """
# Another server, as an example of further keys:
#
#  github:
#    url: https://api.githubcopilot.com/mcp/
#    headers: {Authorization: "Bearer ${GITHUB_TOKEN}"}
#    description: Issues, pull requests and code on GitHub   # tells the model when to search here
#    alwaysLoad: [search_issues]                             # shown to the model from the start
#    tools: {deny: ["delete_*"]}                             # never offered
"""
Rewrite = Callable[[Format, str], str]


@frozen(slots=False)
class Plan:
    """What would be written, what is taken over by it, and what is not."""

    changes: tuple[Change, ...]
    taken: tuple[Foreign, ...]
    same: tuple[Foreign, ...]
    """What the file has already, with the same values."""
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    secrets: tuple[str, ...]
    """What must not be shown."""


def plan_import(
    foreign: Sequence[Foreign],
    target: Path,
    environment: Environment,
    *,
    left: str = "is left out",
    replacing: str | None = None,
    is_needed: bool = False,
) -> Plan:
    """Work out how servers get into a file; what is there already stays as it is.

    Args:
        foreign: The servers.
        target: The file.
        environment: Where the command runs.
        left: What becomes of a server that does not get there.
        replacing: A server whose place one of these may take, under the key that the file uses.
        is_needed: Whether the file is to be made even if there are no servers.

    Raises:
        CommandError: The file cannot be read, or not be changed safely.
    """
    tree = read_tree(target) if target.exists() else {}
    env_path, kept = kept_secrets(target, tree)
    vault = Vault(kept, set_here=environment.variables)
    servers = tree.get("servers")
    present = dict(servers) if is_plain_object(servers) else {}
    present.pop(replacing or "", None)
    sorting = _Sorting(present, vault, environment.variables, target, left)
    for each in foreign:
        sorting.sort(each)
    taken = sorting.taken
    section = section_of(tree) if replacing else "servers"
    edits: dict[tuple[str, ...], object] = {
        (section, each.name): _listed(tree.get(section), each.name, entry)
        for each, entry in taken.values()
    }
    if is_needed and not edits:
        edits = {("servers",): {}}
    sorting.notes.extend(_wanting_login([each for each, _ in taken.values()], target))
    in_file = {*vault.kept, *vault.taken}
    if not tree.get("envFile") and in_file & sorting.relied:
        edits = {("envFile",): ENV_FILE, **edits}
    changes = [_with_servers(target, edits, environment)]
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
        tuple(sorting.same),
        tuple(sorting.notes),
        tuple(sorting.warnings),
        tuple(vault.taken.values()),
    )


def _wanting_login(taken: Sequence[Foreign], target: Path) -> Iterator[str]:
    """Say of servers far away without credentials that they may have to be logged in to here.

    A login that a client has is its own, and cannot be taken over.
    """
    for each in taken:
        url, login = str(each.entry.get("url") or ""), each.entry.get("oauth")
        parts = parted(url) if url else None
        is_far = parts is not None and parts.hostname not in ("localhost", "127.0.0.1", "::1")
        if login is not False and not each.entry.get("headers") and (is_far or login):
            where = shlex.quote(str(target.absolute()))
            yield (
                f"{each.name}: if it needs a login, log in again for the aggregator: "
                f"`aggregator login {each.name} --config {where}`"
            )


def section_of(tree: Tree) -> str:
    """Return the key under which a file has its servers, or is to have them."""
    return "mcpServers" if "mcpServers" in tree and "servers" not in tree else "servers"


def kept_secrets(target: Path, tree: Tree) -> tuple[Path, Mapping[str, str]]:
    """Return the env file that goes with a file, and what it holds.

    Raises:
        CommandError: It cannot be read.
    """
    path = target.parent / Path(str(tree.get("envFile") or ENV_FILE)).expanduser()
    try:
        return path, read_env_file(path) if path.exists() else {}
    except EnvFileError as error:
        raise CommandError(str(error)) from None


def tell_unused(gone: object, target: Path, environment: Environment) -> None:
    """Say which secrets only an entry that is gone has used: they are a person's to delete."""
    tree = read_tree(target)
    env_path, kept = kept_secrets(target, tree)
    before, now = references(gone), references(tree)
    unused = [f"`{name}`" for name in kept if name in before and name not in now]
    if unused:
        environment.note(f"Nothing uses {', '.join(unused)} in `{env_path}` any more")


def edited(target: Path, rewrite: Rewrite, environment: Environment) -> Change:
    """Return the change that an edit makes to a file of servers, which can be used afterwards.

    Raises:
        CommandError: It cannot be edited safely.
        ConfigError: It cannot be used once it is edited.
    """
    before = content(target)
    text = HEADER if before is None else before.decode("utf-8-sig")
    try:
        text = rewrite(format_of(target), text)
    except UneditableError:
        raise CommandError(
            f"`{target}` is written in a way that cannot be changed safely",
            "Change it by hand, or write `servers:` as an indented block without anchors",
        ) from None
    text += FOOTER if before is None and format_of(target) is YAML else ""
    parse_config(text, target, environment.variables)
    return Change(target, before, codecs.BOM_UTF8 * _has_mark(before) + text.encode())


def _has_mark(data: bytes | None) -> bool:
    return (data or b"").startswith(codecs.BOM_UTF8)


def _listed(servers: object, name: str, entry: dict[str, Any]) -> dict[str, Any]:
    """Return an entry with its name inside, where servers are a list."""
    return {"name": name, **entry} if is_array(servers) else entry


class _Sorting:
    """Tells the servers that can be taken from those that cannot."""

    def __init__(
        self,
        present: Mapping[str, Any],
        vault: Vault,
        variables: Mapping[str, str],
        target: Path,
        left: str,
    ) -> None:
        self._present = present
        self._vault = vault
        self._variables = variables
        self._target = target.name
        self._left = left
        self.taken: dict[str, tuple[Foreign, dict[str, Any]]] = {}
        self.same: list[Foreign] = []
        self.relied: set[str] = set()
        """The variables that servers need, or that stand for a secret of theirs."""
        self.notes: list[str] = []
        self.warnings: list[str] = []

    def sort(self, each: Foreign) -> None:
        """Take one server, or say why not."""
        if each.problem is not None:
            self.warnings.append(f"`{each.written}` {self._left}: {each.problem}")
            return
        if each.name in self._present or each.name in self.taken:
            self._sort_repeated(each)
            return
        entry = self._vault.emptied(each.name, each.entry)
        self.taken[each.name] = (each, entry)
        self.relied |= references(entry)
        self.notes.append(_origin(each))
        self.warnings.extend(f"`{each.name}`: {note}" for note in each.notes)

    def _sort_repeated(self, each: Foreign) -> None:
        known = self.taken[each.name][1] if each.name in self.taken else self._present[each.name]
        vault = Vault({**self._vault.kept, **self._vault.taken}, set_here=self._vault.set_here)
        entry = vault.emptied(each.name, each.entry)
        has_it = not vault.taken and _is_alike(known, entry)
        if not has_it and not self._has_values(known, each.entry):
            self.warnings.append(
                f"{_origin(each)} {self._left}: `{self._target}` has another server of that name; "
                "to have both, rename one, or add it by hand under another name"
            )
            return
        self.same.append(each)
        self.notes.append(f"`{each.name}` is in `{self._target}` already")
        if entry != each.entry:
            self.relied |= references(known)

    def _has_values(self, known: object, entry: dict[str, Any]) -> bool:
        """Return whether two servers are the same once variables have their values."""
        values = {**self._variables, **self._vault.kept, **self._vault.taken}
        expansion = Expansion(values)
        sides = (expansion.expand(_plain(each), ()) for each in (known, entry))
        return _is_alike(*sides)


def _origin(each: Foreign) -> str:
    """Return what a server is called, there too if that had to be changed."""
    there = f" (there `{each.written}`)" if each.written != each.name else ""
    return f"`{each.name}`{there} from {each.file.title}"


_DEFINING = ("url", "headers", "env", "envFile", "cwd")
"""What makes another server of one if only one of two has it."""


def _is_alike(known: object, entry: object) -> bool:
    """Return whether a server of the file is what a client has, and maybe more."""
    if not is_plain_object(known) or not is_plain_object(entry):
        return False
    here, there = ({**each, **_normal(each)} for each in (known, entry))
    return all(_plain(here.get(key)) == _plain(there.get(key)) for key in (*there, *_DEFINING))


def _normal(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return what may be written in several ways in one of them."""
    is_enabled = entry.get("enabled") not in (False, "false")
    return {"command": _words(entry), "args": None, "enabled": is_enabled}


def _words(entry: Mapping[str, Any]) -> list[Any]:
    """Return a program with its arguments, which may be written in one list or in two."""
    command, arguments = entry.get("command"), entry.get("args")
    program = command if is_array(command) else [command]
    return [*program, *(arguments if is_array(arguments) else ())]


def _plain(value: object) -> Value:
    """Return a value as texts, which is all that a client's server consists of."""
    if is_plain_object(value):
        return {key: _plain(each) for key, each in value.items()} or None
    if is_array(value):
        return [_plain(each) for each in value] or None
    if isinstance(value, bool):
        return str(value).lower()
    return None if value is None else str(value)


def _with_servers(
    target: Path, edits: Mapping[tuple[str, ...], object], environment: Environment
) -> Change:
    def put(form: Format, text: str) -> str:
        for path, value in edits.items():
            text = form.put(text, path, value)
        return text

    before = content(target)
    return edited(target, put, environment) if edits else Change(target, before, before)


def _with_secrets(path: Path, secrets: Mapping[str, str]) -> Change:
    check_private(path)
    before = content(path)
    kept = (before or b"").decode()
    gap = "" if not kept or kept.endswith("\n") else "\n"
    return Change(path, before, f"{kept}{gap}{env_lines(secrets)}".encode(), confidential=True)
