"""What may be wrong with a configuration that can be read, found without starting anything."""

import re
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from aggregator.basics.frozen import frozen
from aggregator.clients import is_known, likely_meant
from aggregator.config import Config, ServerConfig
from aggregator.config.document import Value, read_document
from aggregator.config.own_process import why_own_process
from aggregator.config.quantities import parted
from aggregator.config.settings import Settings
from aggregator.config.source import read_text
from aggregator.fleet.approving import lock_path, missing
from aggregator.names import prefixes
from aggregator.secrecy import Redaction, is_secret, looks_secret
from aggregator.toolsearch.offers.skills import read_skills

Severity = Literal["error", "warning", "hint"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "hint")
"""What is wrong, what may not be meant, and what could be better: the worst first."""

_LAUNCHERS: Mapping[str, str] = {"npx": "npm", "bunx": "npm", "uvx": "PyPI", "pipx": "PyPI"}
"""Programs that fetch what they run, and from where."""
_MARKS: Mapping[str, str] = {"npm": "@", "PyPI": "=="}
"""What stands there between a package and its version."""
_HASHED = re.compile(r"_[0-9a-f]{6}$")
"""The end of what was made of a name because it was not alone."""
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@frozen
class Finding:
    """One thing that is wrong, or may be."""

    severity: Severity
    server: str
    """Empty for what concerns the whole file."""
    text: str

    def __str__(self) -> str:
        return f"{self.severity}: {self.about}"

    @property
    def about(self) -> str:
        """What it is about, and what that is."""
        return f"{self.server}: {self.text}" if self.server else self.text


def gathered(findings: Iterable[Finding]) -> list[Finding]:
    """Say once what holds for several servers, with the names of all of them."""
    names: dict[tuple[Severity, str], dict[str, None]] = {}
    for each in findings:
        names.setdefault((each.severity, each.text), {})[each.server] = None
    return [Finding(severity, ", ".join(of), text) for (severity, text), of in names.items()]


def lint(config: Config, variables: Mapping[str, str]) -> list[Finding]:
    """Return everything that can be said before a server is started."""
    problems = read_skills(config.settings.skills).problems
    found = [Finding("warning", "", text) for text in (*config.warnings, *problems)]
    written = _written(config.path)
    found.extend(Finding("warning", *each) for each in _literal_secrets(written))
    found.extend(Finding("warning", "", text) for text in _open_env_files(written, config.path))
    found.extend(_misnamed(config.settings))
    found.extend(Finding("warning", *each) for each in _crowded(config))
    found.extend(Finding("warning", *each) for each in _unlocked(config))
    for server in config.enabled.values():
        found.extend(Finding("error", server.name, text) for text in _obstacles(server, variables))
        found.extend(Finding("warning", server.name, text) for text in _doubts(server))
        found.extend(Finding("hint", server.name, text) for text in _choices(server))
        if not server.description:
            text = "no `description`; one line about what it does helps the model to search"
            found.append(Finding("hint", server.name, text))
    return found


def _misnamed(settings: Settings) -> Iterator[Finding]:
    """Yield the names that no client has which is known; it may be a client's own all the same."""
    named = {"clients": (*settings.clients, *settings.result_limits)}
    named |= {f"profiles.{name}.clients": each.clients for name, each in settings.profiles.items()}
    for key, names in named.items():
        for name in dict.fromkeys(each for each in names if not is_known(each)):
            if (other := likely_meant(name)) is not None:
                text = f"no known client is called `{name}`. Did you mean `{other}`?"
                yield Finding("warning", "", f"`{key}`: {text}")
            else:
                text = f"`{name}` is not a known client; this applies to any of this name"
                yield Finding("hint", "", f"`{key}`: {text}")


def _crowded(config: Config) -> Iterator[tuple[str, str]]:
    """Yield what is called otherwise than its name says, as another is called so."""
    owners = {server.prefix: server.name for server in config.servers.values()}
    for server in config.enabled.values():
        wanted = prefixes([server.name])[server.name]
        owner = owners.get(wanted, server.name)
        if owner != server.name and _HASHED.search(server.prefix):
            text = f"its tools are called `{server.prefix}__…`, since those of `{owner}` are called"
            remedy = "rename one of the two, or give it a `prefix`"
            yield server.name, f"{text} `{wanted}__…`; {remedy}"


def _unlocked(config: Config) -> Iterator[tuple[str, str]]:
    """Yield what is to be withheld, and cannot be, since nothing was written down."""
    path = lock_path(config.path)
    if path.exists():
        return
    for server in config.enabled.values():
        if server.pin and server.drift == "block":
            yield server.name, missing(path)


def _obstacles(server: ServerConfig, variables: Mapping[str, str]) -> Iterator[str]:
    """Yield what keeps a server from being started."""
    redact = Redaction(server.confidential())
    if server.problem:
        yield server.problem
    elif server.command:
        path = server.env.get("PATH") or variables.get("PATH")
        if shutil.which(server.command, path=path) is None:
            yield redact(f"the program `{server.command}` does not exist or cannot be executed")
        if server.cwd and not server.cwd.is_dir():
            yield redact(f"the directory `{server.cwd}` does not exist")


def _doubts(server: ServerConfig) -> Iterator[str]:
    """Yield what works but may not be meant."""
    if unpinned(server.command or "", server.args):
        source = _LAUNCHERS.get(Path(server.command or "").stem, "its registry")
        yield (
            f"no version is pinned, so the newest on {source} is run; "
            f"write `PACKAGE{_MARKS.get(source, ':')}VERSION` in `args`"
        )
    if server.url and _is_readable_on_the_way(server.url) and server.headers:
        yield "headers are sent over plain HTTP, for anyone on the way to read"


def _choices(server: ServerConfig) -> Iterator[str]:
    """Yield what is done with a server without being asked for."""
    why = why_own_process(server.command, server.args)
    if server.per_client and why is not None:
        yield (
            f"each client that shares it gets its own process, because {why}; "
            "`perClient: false` gives all clients the same process"
        )


def unpinned(command: str, arguments: Sequence[str]) -> str | None:
    """Return the package that is fetched in whatever version is newest."""
    program = Path(command).stem.lower()
    if program == "docker":
        return next((each for each in arguments if each.endswith(":latest")), None)
    if program not in _LAUNCHERS:
        return None
    package = _package(arguments)
    return package if package and not _VERSION.search(package) else None


def _package(arguments: Sequence[str]) -> str | None:
    """Return the package among a launcher's arguments."""
    for at, argument in enumerate(arguments):
        if argument in {"--package", "-p", "--from"}:
            return arguments[at + 1] if at + 1 < len(arguments) else None
        if not argument.startswith("-") and argument != "run":
            return argument
    return None


_VERSION = re.compile(r"[^@]@(?!latest$).+|[=<>~]=|^(?:git\+|https?:|file:|[./~])")


def _written(path: Path) -> Mapping[str, Value]:
    """Return what a file says as it is written."""
    return _mapping(read_document(read_text(path), str(path)).data)


def _literal_secrets(data: Mapping[str, Value]) -> Iterator[tuple[str, str]]:
    """Yield the server and the place of each secret that is written in the file itself."""
    for place in _places({"env": data.get("env")}):
        yield "", f"a secret is written in `{place}`; use `${{NAME}}` and an `envFile`"
    for section in ("servers", "mcpServers"):
        for name, entry in _mapping(data.get(section)).items():
            for place in _places(_mapping(entry)):
                yield name, f"a secret is written in `{place}`; use `${{NAME}}` and an `envFile`"


def _places(entry: Mapping[str, Value]) -> Iterator[str]:
    for key in ("env", "environment", "envs", "headers"):
        for name, value in _mapping(entry.get(key)).items():
            if isinstance(value, str) and is_secret(name, value):
                yield f"{key}.{name}"
    arguments = entry.get("args")
    for at, value in enumerate(arguments if isinstance(arguments, list) else ()):
        if isinstance(value, str) and looks_secret(value):
            yield f"args[{at}]"
    url = entry.get("url")
    if isinstance(url, str) and (looks_secret(url) or _password(url)):
        yield "url"


def _open_env_files(data: Mapping[str, Value], path: Path) -> Iterator[str]:
    """Yield the env files that every user of the machine may read."""
    entries = [_mapping(entry) for entry in _mapping(data.get("servers")).values()]
    written = (each.get("envFile") for each in (data, *entries))
    for name in dict.fromkeys(each for each in written if isinstance(each, str)):
        file = path.absolute().parent / Path(name).expanduser()
        if file.is_file() and file.stat().st_mode & stat.S_IROTH:
            yield f"`{file}` can be read by every user of this machine; `chmod 600` it"


def _is_readable_on_the_way(url: str) -> bool:
    parts = parted(url)
    return parts is not None and parts.scheme == "http" and parts.hostname not in _LOOPBACK


def _password(url: str) -> str | None:
    parts = parted(url)
    password = parts and parts.password
    return password if password and "${" not in password else None


def _mapping(value: Value) -> Mapping[str, Value]:
    return value if isinstance(value, dict) else {}
