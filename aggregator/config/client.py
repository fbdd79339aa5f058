"""Translate a server as clients write it into a server as we write it."""

from collections.abc import Callable, Mapping

from aggregator.basics.frozen import frozen
from aggregator.config.client_oauth import translate_oauth
from aggregator.config.document import Value
from aggregator.config.form import ONLY_FOR_ADDRESSES, ONLY_FOR_PROGRAMS, ServerForm, keys

_RENAMED = {
    "environment": "env",
    "envs": "env",
    "env_file": "envFile",
    "cmd": "command",
    "workingDirectory": "cwd",
    "httpUrl": "url",
    "serverUrl": "url",
    "uri": "url",
    "transport": "type",
    "transportType": "type",
}
_TYPES = {"local": "stdio", "remote": "http", "streamable": "http"}
_SECONDS_BELOW = 1000
"""Timeouts below this are seconds, as Cline and Roo write them; others write milliseconds."""


@frozen(slots=False)
class Translation:
    """A server in our form, and the keys that mean nothing to us."""

    data: dict[str, Value]
    ignored: tuple[str, ...]


def unfolded(entry: Mapping[str, Value]) -> Mapping[str, Value]:
    """Return the entry with what one client writes inside `transport` beside the rest."""
    inside = entry.get("transport")
    if not isinstance(inside, dict):
        return entry
    return {**{key: value for key, value in entry.items() if key != "transport"}, **inside}


def translate(entry: Mapping[str, Value]) -> Translation:
    """Return the entry in our form."""
    data: dict[str, Value] = {}
    ignored: list[str] = []
    for key, value in unfolded(entry).items():
        name = _RENAMED.get(key, key)
        if key in _MEANINGS:
            _MEANINGS[key](data, value)
        elif name in _KNOWN:
            data[name] = value
        elif key != "name":
            ignored.append(key)
    return Translation(_settled(data, ignored), tuple(ignored))


def _settled(data: dict[str, Value], ignored: list[str]) -> dict[str, Value]:
    """Drop what has no meaning beside the rest."""
    if isinstance(data.get("type"), str):
        data["type"] = _TYPES.get(str(data["type"]), data["type"])
    useless = ONLY_FOR_PROGRAMS if data.get("url") else ONLY_FOR_ADDRESSES
    ignored.extend(key for key in useless if data.get(key))
    return {key: value for key, value in data.items() if key not in useless}


def _disabled(data: dict[str, Value], value: Value) -> None:
    data["enabled"] = "false" if value == "true" else "true"


def _timeout(data: dict[str, Value], value: Value) -> None:
    try:
        number = float(str(value))
    except ValueError:
        data["callTimeout"] = value
    else:
        data["callTimeout"] = f"{number:g}s" if number < _SECONDS_BELOW else f"{number / 1000:g}s"


def _tools(data: dict[str, Value], value: Value) -> None:
    """Read `tools` as a list of those to offer; in our form it is a mapping."""
    data["tools"] = {"allow": value} if isinstance(value, list) else value


def _oauth(data: dict[str, Value], value: Value) -> None:
    """Read how a client logs in; what means nothing here is no reason to refuse the server."""
    if (login := translate_oauth(value)) is not None:
        data["oauth"] = login


def _some(rule: str) -> Callable[[dict[str, Value], Value], None]:
    def add(data: dict[str, Value], value: Value) -> None:
        rules = data.setdefault("tools", {})
        if isinstance(rules, dict) and value:
            rules[rule] = value

    return add


_MEANINGS: Mapping[str, Callable[[dict[str, Value], Value], None]] = {
    "disabled": _disabled,
    "timeout": _timeout,
    "tools": _tools,
    "oauth": _oauth,
    "auth": _oauth,
    "includeTools": _some("allow"),
    "excludeTools": _some("deny"),
    "disabledTools": _some("deny"),
}
_KNOWN = frozenset(keys(ServerForm))
