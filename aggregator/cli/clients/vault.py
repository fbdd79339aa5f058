"""Secrets on their way out of a configuration: each becomes a variable kept in an env file."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from aggregator.cli.clients.dialects import variable_name
from aggregator.json import is_array, is_plain_object
from aggregator.secrecy import SHORTEST, is_secret, looks_secret, names_secret

_SCHEME = re.compile(r"(?P<scheme>Bearer|Basic|Token|ApiKey)\s+(?P<value>\S+)", re.IGNORECASE)
_OPTION = re.compile(r"(?P<option>[\w.-]+)=(?P<value>.+)", re.DOTALL)
_REFERENCE = re.compile(r"(?<!\$)(?:\$\$)*\$\{")
_NAMED = re.compile(r"(?<!\$)(?:\$\$)*\$\{([A-Za-z_][A-Za-z0-9_]*)")
_NAMING = "_env_var"
"""How a key ends that names a variable."""
_UPPER = re.compile(r"[A-Z_][A-Z0-9_]*")
# A default may hold what would end the user, so a reference is taken whole.
_PASSWORD = re.compile(
    r"(?<=://)(?P<user>(?:\$\{(?:[^{}]|\{[^{}]*\})*+\}|[^\s/?#@:])*+):(?P<password>[^\s/?#]+)(?=@)"
)
_QUERY = re.compile(r"(?<=[?&])(?P<name>[^\s?&#=]+)=(?P<value>[^\s&#]+)")


@dataclass
class Vault:
    """What was taken out, by the names of the variables that stand for it."""

    kept: Mapping[str, str]
    """What the env file holds already."""
    taken: dict[str, str] = field(default_factory=dict[str, str])

    def emptied(self, server: str, entry: dict[str, Any]) -> dict[str, Any]:
        """Return a server in which every literal secret is a reference."""
        changed = dict(entry)
        for key, hide in (("env", self._variable), ("headers", self._header)):
            if is_plain_object(entry.get(key)):
                changed[key] = {
                    name: hide(server, name, value) for name, value in entry[key].items()
                }
        for key in ("command", "args"):
            if is_array(entry.get(key)):
                changed[key] = self._arguments(server, entry[key])
        if isinstance(entry.get("url"), str):
            changed["url"] = self._address(server, entry["url"])
        return changed

    def _variable(self, server: str, name: str, value: object) -> object:
        if not isinstance(value, str):
            return value
        if not is_secret(name, value):
            return self._address(server, value)
        return self._hidden(server, variable_name(name), value)

    def _header(self, server: str, name: str, value: object) -> object:
        if not isinstance(value, str):
            return value
        if not is_secret(name, value):
            return self._address(server, value)
        scheme = _SCHEME.fullmatch(value.strip())
        if scheme:
            return f"{scheme['scheme']} {self._hidden(server, 'TOKEN', scheme['value'], own=True)}"
        return self._hidden(server, variable_name(name), value, own=True)

    def _arguments(self, server: str, arguments: list[Any]) -> list[Any]:
        """Hide `--token=…` and `TOKEN=…`, what follows `--token`, and secrets anywhere."""
        hidden: list[Any] = []
        before = ""
        for argument in arguments:
            text = argument if isinstance(argument, str) else ""
            hidden.append(self._argument(server, before, text) if text else argument)
            before = text
        return hidden

    def _argument(self, server: str, before: str, text: str) -> str:
        option = _OPTION.fullmatch(text)
        if option and is_secret(option["option"].lstrip("-"), option["value"]):
            name = variable_name(option["option"])
            return f"{option['option']}={self._hidden(server, name, option['value'], own=True)}"
        follows = before.startswith("-") and "=" not in before and names_secret(before.lstrip("-"))
        if looks_secret(text) or (follows and is_secret("key", text)):
            name = variable_name(before) if follows else "SECRET"
            return self._hidden(server, name, text, own=True)
        return self._address(server, text)

    def _address(self, server: str, text: str) -> str:
        """Hide the passwords of addresses in a text, and the secrets in their queries."""
        text = _PASSWORD.sub(lambda match: self._password(server, match), text)
        return _QUERY.sub(lambda match: self._parameter(server, match), text)

    def _password(self, server: str, match: re.Match[str]) -> str:
        user, password = match["user"], match["password"]
        if _REFERENCE.search(password):
            return match[0]
        return f"{user}:{self._hidden(server, 'PASSWORD', password, own=True)}"

    def _parameter(self, server: str, match: re.Match[str]) -> str:
        name, value = match["name"], match["value"]
        if len(value) < SHORTEST or not is_secret(unquote(name), unquote(value)):
            return match[0]
        return f"{name}={self._hidden(server, variable_name(unquote(name)), value, own=True)}"

    def _hidden(self, server: str, name: str, written: str, *, own: bool = False) -> str:
        """Keep a value under a name that no other value has, and return the reference."""
        value = written.replace("$$", "$")
        prefixed = f"{variable_name(server)}_{name}"
        names = [prefixed] if own else [name, prefixed]
        names += [f"{prefixed}_{number}" for number in range(2, 100)]
        held = {**self.kept, **self.taken}
        free = next(each for each in names if held.get(each, value) == value)
        if free not in self.kept:
            self.taken[free] = value
        return f"${{{free}}}"


def env_lines(variables: Mapping[str, str]) -> str:
    """Return variables as the lines of an env file."""
    return "".join(f"{name}={_quoted(value)}\n" for name, value in variables.items())


def _quoted(value: str) -> str:
    if re.fullmatch(r"[\w./:@%+,~^=-]*", value, re.ASCII):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t") + '"'


def references(value: object) -> set[str]:
    """Return the variables that a value refers to."""
    if is_plain_object(value):
        return references(list(value.values()))
    if is_array(value):
        return {name for item in value for name in references(item)}
    return set(_NAMED.findall(value)) if isinstance(value, str) else set()


def secrets_in(value: object, name: str = "") -> set[str]:
    """Return every secret in a file, so that none of them is shown."""
    if is_plain_object(value):
        end = _NAMING if name == "env_http_headers" else ""
        return {each for key, item in value.items() for each in secrets_in(item, f"{key}{end}")}
    if is_array(value):
        return {each for item in value for each in secrets_in(item, name)} | _told({"args": value})
    if isinstance(value, str):
        is_hidden = is_secret(name, value) and not _is_variable(name, value)
        hidden = {value, value.rpartition(" ")[2]} if is_hidden else set[str]()
        return hidden | (_told({"url": value}) if "://" in value else set())
    return set()


def _is_variable(name: str, value: str) -> bool:
    """Return whether a value only names a variable; some people put the secret itself there."""
    return name.endswith(_NAMING) and not looks_secret(value) and bool(_UPPER.fullmatch(value))


def _told(entry: dict[str, Any]) -> set[str]:
    """Return the secrets among a program's arguments, or in an address."""
    vault = Vault({})
    vault.emptied("", entry)
    return set(vault.taken.values())
