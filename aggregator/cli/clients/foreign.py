"""Read the servers in a client's file, and put each into our form."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from aggregator.basics.files import in_words
from aggregator.basics.frozen import frozen
from aggregator.basics.json import is_array, is_plain_object
from aggregator.cli.clients.dialects import Dialect
from aggregator.cli.clients.documents import Tree, format_of, found
from aggregator.cli.clients.location import ClientFile, locate
from aggregator.cli.environment import CommandError, Environment, ExitStatus
from aggregator.clients import INSTALLABLE
from aggregator.clients.client import FROM_ENVIRONMENT, VariableStyle
from aggregator.clients.table import EDITOR
from aggregator.config import parse_config
from aggregator.config.client import translate, unfolded
from aggregator.config.document import Value
from aggregator.config.quantities import parted
from aggregator.errors import ConfigError

KEYS = (
    ("mcpServers",),
    ("servers",),
    ("mcp", "servers"),
    ("mcp",),
    ("context_servers",),
    ("extensions",),
    ("mcp_servers",),
)
"""Where servers stand in a file that no known client is known to keep."""

ANY_STYLE: tuple[VariableStyle, ...] = (*EDITOR, "file", "secrets", "curly")
"""How variables may be written in such a file."""

_NAME = re.compile(r"[^A-Za-z0-9_.-]+")
_MAX_NAME = 64


@frozen(slots=False)
class Foreign:
    """One server of a client, in our form."""

    name: str
    written: str
    """Its name in the client's file."""
    entry: dict[str, Any]
    notes: tuple[str, ...] = ()
    """What a person should know about it."""
    problem: str | None = None
    """Why it cannot be used."""
    file: ClientFile = field(default_factory=lambda: ClientFile(Path(), ()))
    """Where it comes from."""


def read_tree(path: Path, status: ExitStatus = ExitStatus.ERROR) -> Tree:
    """Return what a file says; one that makes no sense ends the command with the status.

    Raises:
        CommandError: It cannot be read, or not be understood.
    """
    try:
        return format_of(path).read(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise CommandError(f"`{path}` does not exist") from None
    except OSError as error:
        reason = in_words(error)
        raise CommandError(f"`{path}` cannot be read: {reason}") from None
    except ValueError as error:
        reason = "it is not UTF-8 text" if isinstance(error, UnicodeError) else error
        raise CommandError(
            f"`{path}` cannot be understood: {reason}",
            "Fix the file and run the command again",
            status,
        ) from None


def recognise(path: Path, environment: Environment) -> ClientFile:
    """Return whose a file is, and where the servers of a file stand.

    Raises:
        CommandError: There are none.
    """
    for client in INSTALLABLE:
        for scope in client.files:
            file = locate(client, scope, environment)
            if file.path == path and servers_in(file):
                return file
    tree = read_tree(path)
    for keys in KEYS:
        value = found(tree, keys)
        if value and (is_plain_object(value) or is_array(value)):
            return ClientFile(path, keys)
    known = ", ".join(f"`{'.'.join(keys)}`" for keys in KEYS)
    raise CommandError(f"`{path}` names no servers", f"They are looked for under {known}")


def servers_in(file: ClientFile) -> Mapping[str, Mapping[str, Any]]:
    """Return the servers of a file as they are written."""
    value = found(read_tree(file.path), file.keys) if file.path.exists() else None
    if is_array(value):
        named = [each for each in value if is_plain_object(each)]
        return {str(each.get("name")): each for each in named}
    entries = value if is_plain_object(value) else {}
    return {str(key): each for key, each in entries.items() if is_plain_object(each)}


def foreign_servers(file: ClientFile, environment: Environment) -> list[Foreign]:
    """Return the servers of a file in our form, without ourselves."""
    return [
        _foreign(name, entry, file, environment)
        for name, entry in servers_in(file).items()
        if not is_ours(entry)
    ]


def is_ours(entry: object) -> bool:
    """Return whether an entry is a registration of the aggregator itself, however it is started."""
    if not is_plain_object(entry):
        return False
    inside = entry.get("transport")
    entry = inside if is_plain_object(inside) else entry
    if _comes_by_our_token(entry):
        return True
    words = [*_list(entry.get("command") or entry.get("cmd")), *_list(entry.get("args"))]
    program = Path(words[0]).stem if words else ""
    pairs = list(pairwise(words))
    by_other = ("-m", "aggregator") in pairs or ("aggregator", "serve") in pairs
    return "serve" in words and (program == "aggregator" or by_other)


def _comes_by_our_token(entry: Mapping[str, Any]) -> bool:
    """Whether an entry is that of the door over HTTP: it names the variable with its token."""
    headers = entry.get("headers")
    given = headers.values() if is_plain_object(headers) else ()
    return any(
        FROM_ENVIRONMENT in str(each) for each in (*given, entry.get("bearer_token_env_var"))
    )


def _foreign(
    name: str, written: Mapping[str, Any], file: ClientFile, environment: Environment
) -> Foreign:
    ways = file.client.variables if file.client else ANY_STYLE
    dialect = Dialect(ways, environment.home, _project(file, environment))
    plain = unfolded({key: _texts(value, dialect) for key, value in written.items()})
    translation = translate(dict(_normalise(plain)))
    entry = _tidied(translation.data)
    notes = list(dict.fromkeys(dialect.notes))
    if file.client is not None and file.client.tries_transports and _is_bare(plain):
        notes += _guess_transport(file.client.title, entry)
    if entry.get("oauth") == "false":
        entry["oauth"] = False
    if translation.ignored:
        notes.append(f"left out, as it means nothing here: {', '.join(translation.ignored)}")
    ours = _NAME.sub("-", name).strip("-_.")[:_MAX_NAME] or "server"
    problem = _problem(ours, entry)
    return Foreign(ours, name, entry, tuple(notes), problem, file)


def _is_bare(entry: Mapping[str, Value]) -> bool:
    """Return whether an entry leaves open how its address is spoken to."""
    return bool(entry.get("url")) and not entry.get("httpUrl") and not entry.get("type")


def _guess_transport(client: str, entry: dict[str, Any]) -> Iterator[str]:
    """Settle what a client finds out by trying, and yield what a person should know of it."""
    parts = parted(str(entry["url"]))
    if parts is not None and parts.path.rstrip("/").endswith("/sse"):
        entry["type"] = "sse"
    else:
        yield f"{client} tries two transports here; write `type: sse` if it does not connect"


def _project(file: ClientFile, environment: Environment) -> Path:
    """Return the directory a client has open when it reads the file."""
    folder = file.path.absolute().parent
    hidden = folder.name.startswith(".") and folder.parent != environment.home
    in_home = folder.is_relative_to(environment.home) and not folder.is_relative_to(
        environment.directory
    )
    return environment.directory if in_home else folder.parent if hidden else folder


def _texts(value: object, dialect: Dialect) -> Value:
    """Return a value as the text it would be in our file."""
    if is_plain_object(value):
        return {str(key): _texts(each, dialect) for key, each in value.items()}
    if is_array(value):
        return [_texts(each, dialect) for each in value]
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else dialect.translate(str(value))


def _normalise(entry: Mapping[str, Value]) -> Iterator[tuple[str, Value]]:
    """Yield the keys of an entry, with what only one client has in words that all share."""
    env, headers = _mapping(entry, "env", "environment", "envs"), _mapping(entry, "headers")
    for key, value in entry.items():
        if key not in _GATHERED:
            yield from _renamed(key, value)
    env |= {name: f"${{{name}}}" for name in _names(entry.get("env_vars"), entry.get("env_keys"))}
    headers |= _mapping(entry, "http_headers") | _sent(entry)
    if env:
        yield "env", env
    if headers:
        yield "headers", headers


def _renamed(key: str, value: Value) -> Iterator[tuple[str, Value]]:
    if key == "command" and isinstance(value, dict):
        # Zed once wrote the program as an object of its own.
        yield from (("command" if each == "path" else each, of) for each, of in value.items())
    elif key in _SECONDS:
        yield _SECONDS[key], f"{value}s"
    else:
        yield _RENAMED.get(key, key), value


def _sent(entry: Mapping[str, Value]) -> dict[str, Value]:
    """Return the headers that are named by the variables that hold them."""
    sent: dict[str, Value] = {
        header: f"${{{name}}}" for header, name in _mapping(entry, "env_http_headers").items()
    }
    options = entry.get("requestOptions")
    sent |= _mapping(options, "headers") if isinstance(options, dict) else {}
    bearer = entry.get("bearer_token_env_var")
    return {**sent, "Authorization": f"Bearer ${{{bearer}}}"} if bearer else sent


_RENAMED = {
    "enabled_tools": "includeTools",
    "available_tools": "includeTools",
    "disabled_tools": "disabledTools",
}
_SECONDS = {"startup_timeout_sec": "connectTimeout", "tool_timeout_sec": "callTimeout"}
_GATHERED = frozenset(
    (
        *("env", "environment", "envs", "env_vars", "env_keys"),
        *("headers", "http_headers", "env_http_headers", "bearer_token_env_var", "requestOptions"),
        *("required", "omit_tools_from", "deferTools", "disableToolCache"),
        *("alwaysAllow", "autoApprove", "trust", "display_name", "bundled"),
    )
)
"""Keys that are put together from others, or that only concern the client itself."""


def _tidied(data: Mapping[str, Value]) -> dict[str, Any]:
    """Leave out what goes without saying, in an order that reads well."""
    entry: dict[str, Any] = {key: data[key] for key in _ORDER if data.get(key)}
    entry |= {key: value for key, value in data.items() if key not in entry and value}
    if str(entry.get("type", "")).lower() != "sse":
        entry.pop("type", None)
    if entry.pop("enabled", "true") == "false":
        entry["enabled"] = False
    if entry.get("alwaysLoad") in ("true", "false"):
        entry["alwaysLoad"] = entry["alwaysLoad"] == "true"
    if entry.get("tools") in ({"allow": ["*"]}, {"allow": []}, {}):
        del entry["tools"]
    return entry


_ORDER = ("command", "args", "url", "type", "headers", "env", "envFile", "cwd")


def _problem(name: str, entry: Mapping[str, Any]) -> str | None:
    """Return why our own reader would not take an entry, in its words."""
    text = yaml.safe_dump({"servers": {name: entry}}, allow_unicode=True)
    try:
        parse_config(text, Path("servers.yaml"), {})
    except ConfigError as error:
        return error.problem
    return None


def _mapping(entry: Mapping[str, Value], *keys: str) -> dict[str, Value]:
    gathered: dict[str, Value] = {}
    for key in keys:
        value = entry.get(key)
        gathered |= value if isinstance(value, dict) else {}
    return gathered


def _names(*lists: Value) -> Iterator[str]:
    for each in lists:
        for name in each if isinstance(each, list) else ():
            if isinstance(name, str):
                yield name


def _list(value: object) -> Sequence[str]:
    if is_array(value):
        return [str(each) for each in value]
    return [value] if isinstance(value, str) else []
