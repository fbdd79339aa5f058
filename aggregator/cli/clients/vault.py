"""Secrets on their way out of a configuration: each becomes a variable kept in an env file.

A reference that was not needed costs nothing, since it stands for the same text; a secret that was
missed is in a file that people share. So in doubt a value becomes a reference.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from aggregator.basics.json import is_array, is_plain_object
from aggregator.cli.clients.dialects import variable_name
from aggregator.cli.clients.doubt import is_random, may_be_secret
from aggregator.secrecy import SHORTEST, is_secret, looks_secret, names_secret, well_known

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
_USER = re.compile(r"(?<=://)(?P<user>[^\s/?#@:]+)(?=@)")
_QUERY = re.compile(r"(?<=[?&#])(?P<name>[^\s?&#=]+)=(?P<value>[^\s&#\"']+)")
_PAIR = re.compile(
    r"""(?<![\w.-])(?<!\$\{)(?P<name>-{0,2}[A-Za-z_][\w.-]*)\\?["']?\s*(?P<sign>[=:])\s*\\?"""
    r"""(?P<quote>["']?)"""
)
"""What begins `NAME=value`, `Name: value` and `"name": "value"`."""
_VALUES = {
    "=": re.compile(r"""[^\s;&"',}#]+"""),
    ";": re.compile(r"""[^;"]+"""),
    ":": re.compile(r"""[^"'\n]+"""),
    '"': re.compile(r"""[^"\\]+"""),
    "'": re.compile(r"""[^'\\]+"""),
}
"""Where values end: behind a sign, between semicolons, or in quotes."""
_WEB = re.compile(r"""(?P<host>(?:https?|wss?)://[^\s/?#"'<>]+/)(?P<path>[^\s?#"'<>]+)""")
_HOOK = re.compile(
    r"https://(?:hooks\.slack\.com/\w+/|(?:\w+\.)?discord(?:app)?\.com/api/webhooks/"
    r"|hooks\.zapier\.com/hooks/catch/|[\w.-]+\.webhook\.office\.com/|outlook\.office\.com/webhook/"
    r"|api\.telegram\.org/bot|hook\.[\w.]*make\.com/|maker\.ifttt\.com/trigger/)"
    r"(?P<capability>[^\s?#\"'<>]+)"
)
"""Addresses that anybody may post to who knows them."""
_DEFAULT = re.compile(
    r"(?P<before>(?<!\$)(?:\$\$)*)\$\{(?P<name>[A-Za-z_]\w*):-(?P<default>[^${}]+)\}", re.ASCII
)
_SPELLED = re.compile(
    r"""(?<![^\s"'])(?P<option>--?[A-Za-z][\w-]*\s+)"""
    r"""(?P<value>(?:(?<=\s)["'])?[^\s"'\\;|&()$-][^\s"'\\;|&()]*)"""
)
"""`--option value` inside a line for a shell."""
_LOGIN = re.compile(
    r"(?P<user>(?:-u|--user=|--login=|--proxy-user=)[^\s:/]+):(?P<password>.+)", re.DOTALL
)
_WHOLE = re.compile(r"((?<!\$)(?:\$\$)*\$\{(?:[^{}]|\{[^{}]*\})*\})")
"""A reference, whole, that a text can be split at."""
_BEGINNING = re.compile(r"\s*(?:(?:Bearer|Basic|Token|ApiKey)\s+)?", re.IGNORECASE)
_SHELL = re.compile(r"-\w*c|/c", re.IGNORECASE)
"""What stands before a line for a shell."""
_SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ash", "ksh", "fish", "cmd", "cmd.exe"})
_ASSIGNMENT = re.compile(
    r"""(?<![^\s;&|(])(?P<name>[A-Za-z_]\w*)=(?:"(?P<double>[^"\\]+)"|'(?P<single>[^']+)'"""
    r"""|(?P<plain>[^\s;&|()"'\\]+))"""
)
"""`NAME=value` in such a line."""
_CAPABILITIES = frozenset({"code", "k", "ak", "sk"})
"""Parameters of addresses that whoever knows them may come in by."""
_ASKING = frozenset({
    "mysql", "mysqldump", "mysqladmin", "mariadb", "mariadb-dump", "mongo", "mongosh", "mongodump",
    "sshpass",
})  # fmt: skip
"""Programs to which `-p` gives a password."""
_LOGINS = frozenset({"-u", "--user", "--login", "--proxy-user"})
"""Options that a name and a password follow."""


@dataclass
class Vault:
    """What was taken out, by the names of the variables that stand for it."""

    kept: Mapping[str, str]
    """What the env file holds already."""
    taken: dict[str, str] = field(default_factory=dict[str, str])
    set_here: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables of the environment, which would win over the file."""

    def emptied(self, server: str, entry: dict[str, Any]) -> dict[str, Any]:
        """Return a server in which every literal secret is a reference."""
        changed = dict(entry)
        # What a variable or a header is called is the better name for what it holds.
        for key in sorted(entry, key=lambda each: each not in ("env", "headers")):
            value = entry[key]
            if key in ("env", "headers") and is_plain_object(value):
                hide = self._variable if key == "env" else self._header
                changed[key] = {name: hide(server, name, each) for name, each in value.items()}
            elif key in ("command", "args") and is_array(value):
                changed[key] = self._arguments(server, value, _programs(entry))
            elif isinstance(value, str):
                changed[key] = self._swept(server, value)
        return changed

    def _variable(self, server: str, name: str, value: object) -> object:
        if not isinstance(value, str):
            # A password of digits may be written as a number.
            is_there = type(value) is int and is_secret(name, str(value))
            return self._hidden(server, variable_name(name), str(value)) if is_there else value
        value = self._beside(server, name, self._without_default(server, name, value))
        if is_secret(name, value):
            return self._hidden(server, variable_name(name), value)
        swept = self._swept(server, value)
        if swept == value and may_be_secret(name, value):
            return self._hidden(server, variable_name(name), value)
        return swept

    def _header(self, server: str, name: str, value: object) -> object:
        if not isinstance(value, str):
            return value
        value = self._beside(server, name, self._without_default(server, name, value))
        if is_secret(name, value):
            return self._sent(server, name, value)
        swept = self._swept(server, value)
        return self._sent(server, name, value) if self._is_left(name, value, swept) else swept

    def _is_left(self, name: str, value: str, swept: str) -> bool:
        """Return whether there may still be a secret in a value that nothing was taken from."""
        scheme = _SCHEME.fullmatch(value.strip())
        return swept == value and may_be_secret(name, scheme["value"] if scheme else value)

    def _sent(self, server: str, name: str, value: str) -> str:
        """Hide what a header says, but not in which scheme it says it."""
        scheme = _SCHEME.fullmatch(value.strip())
        if scheme:
            return f"{scheme['scheme']} {self._hidden(server, 'TOKEN', scheme['value'], own=True)}"
        return self._hidden(server, variable_name(name), value, own=True)

    def _arguments(self, server: str, arguments: list[Any], programs: set[str]) -> list[Any]:
        """Hide `--token=…` and `TOKEN=…`, what follows `--token`, and secrets anywhere."""
        hidden: list[Any] = []
        before = ""
        for argument in arguments:
            text = argument if isinstance(argument, str) else ""
            known = self._short(server, before, text, programs)
            if known is None and programs & _SHELLS and _SHELL.fullmatch(before):
                known = self._line(server, text)
            shown = known or self._argument(server, before, text)
            hidden.append(shown if text else argument)
            before = text
        return hidden

    def _short(self, server: str, before: str, text: str, programs: set[str]) -> str | None:
        """Hide what `-u` and `-p` give, if this is such a password."""
        login = _LOGIN.fullmatch(text if before not in _LOGINS else f"-u{text}")
        if login and "://" not in text and not re.fullmatch(r"-u\d+:\d+", login[0]):
            user = text.partition(":")[0]
            return f"{user}:{self._password_of(server, login['password'])}"
        if not programs & _ASKING:
            return None
        if before == "-p" and text and not text.startswith("-"):
            return self._password_of(server, text)
        is_joined = text.startswith("-p") and len(text) > len("-p")
        return f"-p{self._password_of(server, text[2:])}" if is_joined else None

    def _without_default(self, server: str, name: str, text: str) -> str:
        """Hide the secrets that stand in for variables which are not set."""

        def hide(match: re.Match[str]) -> str:
            called = name if names_secret(name) else match["name"]
            default = match["default"]
            if not is_secret(called, default):
                return match[0]
            hidden = self._hidden(server, variable_name(called), default, own=True)
            return f"{match['before']}${{{match['name']}:-{hidden}}}"

        return _DEFAULT.sub(hide, text)

    def _argument(self, server: str, before: str, text: str) -> str:
        follows = before.startswith("-") and "=" not in before
        called = before if follows else text.partition("=")[0]
        text = self._without_default(server, called.lstrip("-"), text)
        text = self._beside_option(server, before.lstrip("-") if follows else "", text)
        option = _OPTION.fullmatch(text)
        if option and is_secret(option["option"].lstrip("-"), option["value"]):
            name = variable_name(option["option"])
            return f"{option['option']}={self._hidden(server, name, option['value'], own=True)}"
        name = before.lstrip("-")
        if follows and names_secret(name) and is_secret(name, text):
            return self._hidden(server, variable_name(before), text, own=True)
        swept = self._swept(server, text)
        if swept != text or text.startswith("-"):
            return swept if swept != text or not option else self._doubted(server, option)
        is_doubtful = may_be_secret(before.lstrip("-") if follows else "", text)
        return self._hidden(server, "SECRET", text, own=True) if is_doubtful else text

    def _line(self, server: str, text: str) -> str:
        """Hide what is secret in a line for a shell; what follows an assignment is what is run."""
        text = _ASSIGNMENT.sub(lambda match: self._assignment(server, match), text)
        return self._swept(server, text)

    def _assignment(self, server: str, match: re.Match[str]) -> str:
        """Hide what a line for a shell sets a variable to."""
        name, value = match["name"], match["double"] or match["single"] or match["plain"]
        if not _is_literal(name, value):
            return match[0]
        return match[0].replace(value, self._hidden(server, variable_name(name), value, own=True))

    def _beside_option(self, server: str, before: str, text: str) -> str:
        """Hide what stands beside references in what an option is given."""
        option = _OPTION.fullmatch(text)
        if option is None:
            return self._beside(server, before, text)
        name = option["option"]
        return f"{name}={self._beside(server, name.lstrip('-'), option['value'])}"

    def _beside(self, server: str, name: str, text: str) -> str:
        """Hide what stands beside references in a value that is named like a secret."""
        pieces = _WHOLE.split(text)
        # Of an address, only a part is secret, and that is found by where it stands.
        if not pieces[1:] or "://" in text:
            return text
        for at, piece in enumerate(pieces):
            begun = _BEGINNING.match(piece)
            rest = piece[begun.end() :] if begun else piece
            if at % 2 == 0 and is_secret(name, rest):
                hidden = self._hidden(server, variable_name(name), rest, own=True)
                pieces[at] = piece.removesuffix(rest) + hidden
        return "".join(pieces)

    def _doubted(self, server: str, option: re.Match[str]) -> str:
        """Hide what an option is given if it may be a secret."""
        name, value = option["option"], option["value"]
        if not may_be_secret(name.lstrip("-"), value):
            return option[0]
        return f"{name}={self._hidden(server, variable_name(name), value, own=True)}"

    def _swept(self, server: str, text: str) -> str:
        """Hide the secrets in a text: in addresses, in pairs, and those of well-known forms."""
        steps: tuple[tuple[re.Pattern[str], Callable[[str, re.Match[str]], str]], ...] = (
            (_PASSWORD, self._password),
            (_USER, self._user),
            (_QUERY, self._parameter),
            (_HOOK, self._hook),
            (_WEB, self._web),
            (_SPELLED, self._spelled),
        )
        text = self._without_default(server, "", text)
        for pattern, hide in steps:
            text = pattern.sub(lambda match, hide=hide: hide(server, match), text)
        text = self._pairs(server, text)
        for secret in well_known(text):
            text = text.replace(secret, self._hidden(server, "SECRET", secret, own=True))
        return text

    def _password(self, server: str, match: re.Match[str]) -> str:
        return f"{match['user']}:{self._password_of(server, match['password'])}"

    def _password_of(self, server: str, password: str) -> str:
        is_there = _REFERENCE.search(password)
        return password if is_there else self._hidden(server, "PASSWORD", password, own=True)

    def _user(self, server: str, match: re.Match[str]) -> str:
        """Hide a key that stands where others have the name of a user."""
        is_key = looks_secret(match[0]) or is_random(match[0])
        return self._hidden(server, "TOKEN", match[0], own=True) if is_key else match[0]

    def _parameter(self, server: str, match: re.Match[str]) -> str:
        name, value = match["name"], match["value"]
        called = "key" if name.lower() in _CAPABILITIES else unquote(name)
        if len(value) < SHORTEST or not may_be_secret(called, unquote(value)):
            return match[0]
        return f"{name}={self._hidden(server, variable_name(unquote(name)), value, own=True)}"

    def _spelled(self, server: str, match: re.Match[str]) -> str:
        """Hide what follows an option in a line for a shell."""
        option, value = match["option"], match["value"]
        quote = value[0] if value[0] in "\"'" else ""
        name = option.strip().lstrip("-")
        literal = value.removeprefix(quote)
        if not names_secret(name) or not _is_literal(name, literal):
            return match[0]
        return f"{option}{quote}{self._hidden(server, variable_name(name), literal, own=True)}"

    def _hook(self, server: str, match: re.Match[str]) -> str:
        capability = match["capability"]
        if _REFERENCE.search(capability):
            return match[0]
        known = match[0].removesuffix(capability)
        return f"{known}{self._hidden(server, 'WEBHOOK', capability, own=True)}"

    def _web(self, server: str, match: re.Match[str]) -> str:
        """Hide the parts of a path that nobody could guess: whoever knows them may come in."""
        parts = match["path"].split("/")
        shown = (
            self._hidden(server, "PATH", each, own=True) if is_random(unquote(each)) else each
            for each in parts
        )
        return match["host"] + "/".join(shown)

    def _pairs(self, server: str, text: str) -> str:
        """Hide the values in a text whose names are those of secrets."""
        is_list = text.count(";") > 0 and text.count("=") > 1
        swept, position = "", 0
        while found := _PAIR.search(text, position):
            swept += text[position : found.end()]
            position = found.end()
            ends = _VALUES[found["quote"] or (";" if is_list else found["sign"])]
            value = ends.match(text, position)
            if value and names_secret(found["name"]) and _is_literal(found["name"], value[0]):
                swept += self._sent(server, found["name"], value[0])
                position = value.end()
        return swept + text[position:]

    def _hidden(self, server: str, name: str, written: str, *, own: bool = False) -> str:
        """Keep a value under a name that no other value has, and return the reference."""
        value = written.replace("$$", "$")
        prefixed = f"{variable_name(server)}_{name}"
        names = [prefixed] if own else [name, prefixed]
        names += [f"{prefixed}_{number}" for number in range(2, 100)]
        held = {**self.set_here, **self.kept, **self.taken}
        free = next(each for each in names if held.get(each, value) == value)
        if free not in self.kept:
            self.taken[free] = value
        return f"${{{free}}}"


def _is_literal(name: str, value: str) -> bool:
    return not _REFERENCE.search(value) and is_secret(name, value)


def _programs(entry: dict[str, Any]) -> set[str]:
    """Return the words of a command line that may name what is run."""
    written = (entry.get("command"), entry.get("args"))
    words = [word for each in written for word in (each if is_array(each) else [each])]
    return {Path(word).name for word in words if isinstance(word, str)}


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
        found = {each for key, item in value.items() for each in secrets_in(item, f"{key}{end}")}
        # What an option gives may depend on the program.
        line = {key: value[key] for key in ("command", "args") if key in value}
        return found | _told(line)
    if is_array(value):
        return {each for item in value for each in secrets_in(item, name)} | _told({"args": value})
    if not isinstance(value, str) or _is_variable(name, value):
        return set()
    hidden = {value, value.rpartition(" ")[2]} if is_secret(name, value) else set[str]()
    return hidden | _told({"env": {name: value}})


def _is_variable(name: str, value: str) -> bool:
    """Return whether a value only names a variable; some people put the secret itself there."""
    return name.endswith(_NAMING) and not looks_secret(value) and bool(_UPPER.fullmatch(value))


def _told(entry: dict[str, Any]) -> set[str]:
    """Return the secrets among a program's arguments, or in an address."""
    vault = Vault({})
    vault.emptied("", entry)
    return set(vault.taken.values())
