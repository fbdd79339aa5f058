"""`aggregator add`: one more server in `servers.yaml`."""

import argparse
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from aggregator.basics.json import is_plain_object
from aggregator.cli.clients.changes import make, show
from aggregator.cli.clients.foreign import Foreign, read_tree
from aggregator.cli.clients.plan import plan_import, section_of, tell_unused
from aggregator.cli.config_file import config_path
from aggregator.cli.environment import CommandError, Environment, ExitStatus
from aggregator.cli.opening import place
from aggregator.config import load_config
from aggregator.config.load import NAME_HINT, OUR_NAME
from aggregator.errors import ConfigError
from aggregator.names import ServerName

_ADDRESS = re.compile(r"https?://", re.IGNORECASE)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+")
_PLACE = re.compile(
    r"(?P<host>\[[0-9A-Fa-f:]+\]|[\w-]+(?:\.[\w-]+)*):\d+(?:/.*)?"
    r"|(?P<domain>[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,})/.*"
)
"""A machine and its port, or a domain and a path: what people write of an address."""
_LOCAL = re.compile(r"localhost|127(?:\.\d+){3}|0\.0\.0\.0|\[::1\]|.*\.localhost", re.IGNORECASE)
_NEEDS_HTTP = "it must begin with `https://` or `http://`"
_NEEDS_WORDS = "write the program and its arguments after `--`, without quotes around all of them"


def run(options: argparse.Namespace, environment: Environment) -> ExitStatus:
    """Write the server into the file, and show what was changed."""
    target = config_path(options.config, environment)
    replaced = _check_name(options, target)
    entry, notes = _entry(options, target, environment)
    server = Foreign(options.name, options.name, entry)
    try:
        plan = plan_import([server], target, environment, replacing=options.name)
    except ConfigError as error:
        raise _refused(options.name, target, environment, error) from None
    show(plan.changes, plan.secrets, environment, asks=False)
    make(plan.changes)
    for warning in plan.warnings:
        environment.warn(warning)
    for note in notes:
        environment.note(note)
    if _is_missing(entry, target, environment):
        where = "there" if "/" in entry["command"] else "on your PATH"
        environment.warn(f"`{entry['command']}` is not {where}")
    if (problem := _problem(options.name, target, environment)) is not None:
        environment.warn(f"{options.name}: {problem}")
    environment.note(
        f"`{options.name}` is in `{environment.known_as(target)}`; "
        f"`aggregator inspect {options.name}{place(options)}` shows what it offers"
    )
    tell_unused(replaced, target, environment)
    return ExitStatus.FINE


def _check_name(options: argparse.Namespace, target: Path) -> object:
    """Refuse to write over a server, and return the one that is to be replaced.

    Raises:
        CommandError: The file has one of that name, or it is not allowed.
    """
    tree = read_tree(target, ExitStatus.USAGE) if target.exists() else {}
    if section_of(tree) == "servers" and not OUR_NAME.fullmatch(options.name):
        problem = f"`{options.name}` is not allowed as a name"
        raise CommandError(problem, NAME_HINT, ExitStatus.USAGE)
    for section in ("servers", "mcpServers"):
        servers = tree.get(section)
        if is_plain_object(servers) and options.name in servers:
            if options.force and section == section_of(tree):
                return servers[options.name]
            raise CommandError(
                f"`{target}` has a server `{options.name}` already",
                "`--force` replaces it; another name adds another server",
            )
    return None


def _entry(
    options: argparse.Namespace, target: Path, environment: Environment
) -> tuple[dict[str, Any], tuple[str, ...]]:
    words: list[str] = options.target
    about = {"description": options.description} if options.description else {}
    if _ADDRESS.match(words[0]):
        _refuse_more(words[1:])
        _refuse(options.env, "`--env` is for programs", "an address takes `--header`")
        _refuse(options.transport == "stdio", "an address is not reached over stdio", None)
        sse = {"type": "sse"} if options.transport == "sse" else {}
        headers = dict(_pairs(options.header, ":", "--header", "Name: value"))
        return _said({"url": words[0], **sse, "headers": headers, **about}), ()
    program = words[0]
    is_program = (environment.directory / program).exists()
    if "://" in program or not (options.behind_dashes or is_program):
        _refuse_address(program)
    is_sentence = len(words) == 1 and len(program.split()) > 1
    _refuse(is_sentence and not is_program, f"`{program}` is one word", _NEEDS_WORDS)
    _refuse(options.header, "`--header` is for addresses", "a program takes `--env`")
    remote = options.transport in ("http", "sse")
    _refuse(remote, f"`{words[0]}` is not an address", "an address begins with `https://`")
    env = dict(_pairs(options.env, "=", "--env", "NAME=value"))
    there = _directory(words, target, environment)
    cwd = {"cwd": str(there[0])} if there else {}
    notes = (f"`{options.name}` starts in `{there[0]}`, as `{there[1]}` is there",) if there else ()
    return _said({"command": words[0], "args": words[1:], "env": env, **cwd, **about}), notes


def _refuse_more(words: Sequence[str]) -> None:
    """Refuse what is written behind an address.

    Raises:
        CommandError: There is something.
    """
    several = ", ".join(f"`{each}`" for each in words)
    are = "are" if words[1:] else "is"
    _refuse(words, f"{several} {are} too many: nothing follows an address", None)


def _refuse_address(word: str) -> None:
    """Refuse what looks like an address and is none; behind `--`, it is a program.

    Raises:
        CommandError: It does.
    """
    # Before an `@` there may be a password.
    said = "what is given" if "@" in word else f"`{word}`"
    scheme, place = _SCHEME.match(word), _PLACE.fullmatch(word)
    whole = None
    if scheme and scheme[1].lower() in ("http", "https") and word[scheme.end() :]:
        whole = f"{scheme[1].lower()}://{word[scheme.end() :]}"
    elif place:
        is_local = _LOCAL.fullmatch(place["host"] or place["domain"])
        whole = f"{'http' if is_local else 'https'}://{word}"
    hint = f"Did you mean `{whole}`? Write a program after `--`"
    hint = hint if whole and "@" not in word else _NEEDS_HTTP
    _refuse(scheme or place, f"{said} is not an address that can be reached", hint)


def _refused(name: str, target: Path, environment: Environment, error: ConfigError) -> Exception:
    """Return what to say of a file that could not be used with the server in it.

    What is wrong with the server itself is on a line that is nowhere: nothing was written.
    """
    if target.exists():
        try:
            load_config(target, environment.variables)
        except ConfigError:
            return error
    return CommandError(f"`{name}` cannot be added: {error.problem}", error.hint, ExitStatus.USAGE)


def _problem(name: str, target: Path, environment: Environment) -> str | None:
    """Say why a server cannot be started as it was written, if it cannot."""
    try:
        config = load_config(target, environment.variables)
    except ConfigError:
        # Whatever else is in the file is not of this server.
        return None
    server = config.servers.get(ServerName(name))
    return server and server.problem


def _is_missing(entry: dict[str, Any], target: Path, environment: Environment) -> bool:
    """Return whether a program is not where it is looked for, be it a place or the PATH."""
    program: str = entry.get("command", "")
    if not program or {"\\", "$"} & set(program):
        return False
    if "/" in program:
        start = Path(entry.get("cwd") or target.parent)
        return not (start / Path(program).expanduser()).exists()
    return shutil.which(program, path=environment.variables.get("PATH")) is None


def _refuse(given: object, problem: str, hint: str | None) -> None:
    if given:
        said = f"{hint[0].upper()}{hint[1:]}" if hint and not hint.startswith("`") else hint
        raise CommandError(problem, said, ExitStatus.USAGE)


def _pairs(
    given: Sequence[str], separator: str, option: str, form: str
) -> Iterator[tuple[str, str]]:
    for each in given:
        name, found, value = each.partition(separator)
        if not found or not name.strip():
            raise CommandError(
                # What was typed may be a secret.
                f"`{option}` needs a name and a value",
                f"Write `{option} '{form}'`",
                ExitStatus.USAGE,
            )
        yield name.strip(), value.strip() if separator == ":" else value


def _directory(
    words: Sequence[str], target: Path, environment: Environment
) -> tuple[Path, str] | None:
    """Return where a program has to start, as it is named what is here, and what that is."""
    here = environment.directory
    if here == target.parent:
        return None
    # A bare program is looked for elsewhere.
    named = [*(words[:1] if "/" in words[0] else ()), *words[1:]]
    found = next((each for each in named if each and _is_here(each, here)), None)
    return (here, found) if found else None


def _is_here(word: str, directory: Path) -> bool:
    try:
        return not Path(word).is_absolute() and (directory / word).exists()
    except (OSError, ValueError):
        # It is no path at all.
        return False


def _said(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if value}
