"""Read `servers.yaml` from its file to its value."""

import re
import sys
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType

from aggregator.config.audit import Audit
from aggregator.config.client import translate
from aggregator.config.clients_form import limits_of, surfaces_of
from aggregator.config.document import (
    Location,
    Value,
    beginning,
    dotted,
    is_json,
    read_document,
)
from aggregator.config.dotenv import EnvFileError
from aggregator.config.form import SECTIONS, SettingsForm, top_keys
from aggregator.config.http import Http
from aggregator.config.http_form import http_of, unknown_profile
from aggregator.config.inheritance import Environment
from aggregator.config.keychain import held
from aggregator.config.mode import ToolSearchMode
from aggregator.config.profile_form import profile_of
from aggregator.config.server import Draft, Entry, Shared, draft, said, settle
from aggregator.config.settings import Settings
from aggregator.config.source import Source, anyone_can_write, read_text
from aggregator.config.tokens_form import counter_of
from aggregator.config.values import Config, ServerConfig
from aggregator.config.variables import OURS, THEIRS, Expansion
from aggregator.config.wording import example, first_of, nearest
from aggregator.errors import ConfigError
from aggregator.names import MetaTools, ServerName, prefixes
from aggregator.secrecy import Redaction

TOOL_SEARCH_VARIABLE = "AGGREGATOR_TOOL_SEARCH"
"""The environment variable that overrides `toolSearch`."""
PYTHON_VARIABLE = "AGGREGATOR_PYTHON"
"""Stands in the file for the interpreter that runs the aggregator."""

OUR_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII)
NAME_HINT = "Use at most 64 letters, digits, `-`, `_` and `.`; begin with a letter or digit"
_MAX_NAME = 64


def load_config(path: Path, environ: Mapping[str, str], deadline: float | None = None) -> Config:
    """Return what a file says; pipes must have been read by the deadline.

    Raises:
        ConfigError: It cannot be read, or cannot be used as written.
    """
    text = read_text(path, environ, deadline)
    digest = sha256(text.encode()).digest()
    config = replace(parse_config(text, path, environ, deadline), digest=digest)
    if anyone_can_write(path):
        warning = f"`{path}` can be changed by every user of this machine"
        return replace(config, warnings=(warning, *config.warnings))
    return config


def parse_config(
    text: str, path: Path, environ: Mapping[str, str], deadline: float | None = None
) -> Config:
    """Return what the text of a file says; relative paths in it start beside `path`.

    Raises:
        ConfigError: It cannot be used as written.
    """
    source = Source(path, read_document(text, str(path)), deadline, home=environ.get("HOME"))
    return _Reading(source, environ).config()


def check_profile(config: Config, name: str) -> None:
    """See to it that a profile which is asked for by a name, if one is, is in the file.

    Raises:
        ConfigError: It is not.
    """
    profiles = config.settings.profiles
    if name and name not in profiles:
        known = f"It has {_listed([*profiles])}" if profiles else "It has no `profiles`"
        hint = nearest(name, tuple(profiles)) or known
        raise ConfigError(str(config.path), f"has no profile `{name}`", hint=hint, is_of_file=True)


class _Reading:
    """One reading of a file: gathers warnings on the way to its value."""

    def __init__(self, source: Source, environ: Mapping[str, str]) -> None:
        self._source = source
        self._environ = environ
        self._held = held(source.document.data)
        self._warnings: list[str] = []
        self._problems: list[ConfigError] = []

    def config(self) -> Config:
        data = self._top()
        if self._held.is_silent and self._source.deadline is not None:
            # What runs has its secrets, and is not ended for want of them.
            silence = next(iter(self._held.problems.values()))
            raise ConfigError(str(self._source.path), f"cannot be read: {silence}")
        written, variables = self._written(data)
        forms, drafts = list[SettingsForm](), list[Draft]()
        with self._noting():
            forms.append(self._settings(written, variables))
        with self._noting():
            for entry in self._entries(data):
                with self._noting():
                    drafts.append(draft(entry, self._source, variables, self._held))
        if self._problems:
            raise first_of(self._problems)
        (form,) = forms
        if not drafts:
            self._warnings.append("no servers are configured")
        return Config(
            path=self._source.path,
            servers=MappingProxyType(self._settled(drafts, self._shares(form, variables, written))),
            settings=self._overridden(form),
            warnings=tuple(self._warnings),
            names=frozenset(self._source.names),
            files=tuple(self._source.files),
        )

    def _top(self) -> dict[str, Value]:
        data = self._source.document.data
        path = str(self._source.path)
        hint, section = beginning(path), "mcpServers" if is_json(path) else "servers"
        if data is None:
            raise ConfigError(path, "is empty", hint=hint, is_of_file=True)
        if not isinstance(data, dict):
            raise self._source.error(f"must be a mapping with the key `{section}`", (), hint)
        if "servers" not in data and "mcpServers" not in data:
            self._refuse_unknown(data)
            raise self._source.error(f"has no `{section}`", (), hint)
        return data

    def _refuse_unknown(self, data: dict[str, Value]) -> None:
        for key in data:
            if key not in _TOP_KEYS:
                hint = nearest(key, _TOP_KEYS)
                raise self._source.error(f"`{key}` is not a known key", (key,), hint)

    @contextmanager
    def _noting(self) -> Generator[None, None, None]:
        """Go on after what is wrong, so that all of it can be told at once."""
        try:
            yield
        except ConfigError as error:
            self._problems.append(error)

    def _written(self, data: dict[str, Value]) -> tuple[dict[str, Value], Mapping[str, str]]:
        """Return the settings as written, and the variables that every server may use."""
        written = said(data, _TOP_KEYS)
        if "servers" not in data:
            written = self._without_foreign(written)
        builtin = {PYTHON_VARIABLE: sys.executable, **self._environ}
        builtin = {**builtin, **self._held.values}
        variables = {**self._shared(written.get("envFile"), builtin), **builtin}
        return {key: value for key, value in written.items() if key not in SECTIONS}, variables

    def _settings(self, written: Mapping[str, Value], variables: Mapping[str, str]) -> SettingsForm:
        return self._source.filled(SettingsForm, self._expanded(written, variables), ())

    def _without_foreign(self, data: dict[str, Value]) -> dict[str, Value]:
        """Drop what else a client keeps in the same file."""
        foreign = [key for key in data if key not in _TOP_KEYS]
        if foreign:
            self._warnings.append(f"Ignored, as it means nothing here: {_listed(foreign)}")
        return {key: value for key, value in data.items() if key in _TOP_KEYS}

    def _shared(self, written: Value, variables: Mapping[str, str]) -> dict[str, str]:
        if not isinstance(written, str):
            return {}
        expanded = self._expanded({"envFile": written}, variables)
        path = self._source.resolved(str(expanded["envFile"]))
        redact = Redaction(self._held.values.items())
        try:
            return self._source.variables_in(path)
        except EnvFileError as error:
            if not error.missing:
                raise ConfigError(redact(str(path)), error.problem, line=error.line) from None
            # Often kept out of version control: each server says what it misses.
            self._warnings.append(redact(f"`envFile` {error}"))
            return {}

    def _shares(
        self, form: SettingsForm, variables: Mapping[str, str], written: Mapping[str, Value]
    ) -> Shared:
        secrets = self._held.referred_to(written.get("env"))
        return Shared(
            Environment(variables),
            form.inherit_env,
            form.env,
            secrets,
            _own_names(form),
            form.start,
            form.idle_timeout,
            form.drift,
        )

    def _expanded(
        self, settings: Mapping[str, Value], variables: Mapping[str, str]
    ) -> dict[str, Value]:
        expansion = Expansion(variables)
        expanded = {key: expansion.expand(value, (key,)) for key, value in settings.items()}
        self._source.check_references(expansion)
        for location, name in expansion.missing.items():
            if name in self._held.problems:
                raise self._source.error(self._held.problems[name], location)
            hint = f"Set it, or write a default: `${{{name}:-default}}`"
            raise self._source.error(
                f"`{dotted(location)}` needs the variable `{name}`, which is not set",
                location,
                hint,
            )
        return expanded

    def _entries(self, data: dict[str, Value]) -> Iterator[Entry]:
        ours = self._section(data, "servers")
        for name, entry in ours.items():
            with self._noting():
                yield self._own_entry(name, entry)
        for name, entry in self._section(_named(data), "mcpServers").items():
            with self._noting():
                yield self._client_entry(name, entry, ours)

    def _own_entry(self, name: str, entry: Value) -> Entry:
        location = ("servers", name)
        if not OUR_NAME.fullmatch(name):
            problem = f"`{name}` is not allowed as a name" if name else "a server has no name"
            raise self._source.error(problem, location, NAME_HINT)
        return Entry(ServerName(name), location, self._mapping(entry, location), OURS, {})

    def _client_entry(self, name: str, entry: Value, ours: Mapping[str, Value]) -> Entry:
        location = ("mcpServers", name)
        if not name.isprintable() or not name.strip() or len(name) > _MAX_NAME:
            raise self._source.error(f"{name[:80]!r} is not allowed as a name", location)
        if name in ours:
            raise self._source.error(f"`{name}` is under both `servers` and `mcpServers`", location)
        translation = translate(self._mapping(entry, location))
        if translation.ignored:
            self._warnings.append(
                f"`{name}`: ignored, as it means nothing here: {_listed(translation.ignored)}"
            )
        places = {
            "userHome": str(self._source.resolved("~")),
            "workspaceFolder": str(self._source.directory),
        }
        return Entry(ServerName(name), location, translation.data, THEIRS, places)

    def _section(self, data: dict[str, Value], key: str) -> dict[str, Value]:
        section = data.get(key)
        if section is None:
            return {}
        if not isinstance(section, dict):
            hint = "Write each server's name, a colon, and its keys indented below"
            raise self._source.error(f"`{key}` must be a mapping", (key,), hint)
        return section

    def _mapping(self, entry: Value, location: Location) -> Mapping[str, Value]:
        if entry is None:
            return {}
        if not isinstance(entry, dict):
            problem = f"`{dotted(location)}` must be a mapping"
            raise self._source.error(problem, location, example(location))
        return entry

    def _settled(self, drafts: list[Draft], shared: Shared) -> dict[ServerName, ServerConfig]:
        chosen = self._chosen_prefixes(drafts)
        derived = prefixes(
            [each.entry.name for each in drafts if each.entry.name not in chosen],
            taken={*chosen, *chosen.values()},
        )
        settled = {**derived, **chosen}
        return {
            each.entry.name: settle(each, settled[each.entry.name], self._source, shared)
            for each in drafts
        }

    def _chosen_prefixes(self, drafts: list[Draft]) -> dict[ServerName, str]:
        chosen: dict[ServerName, str] = {}
        for each in drafts:
            name, prefix = each.entry.name, each.form.prefix
            if prefix is not None:
                location = (*each.entry.location, "prefix")
                self._check_prefix(prefix, location, chosen)
                if prefix != name:
                    self._check_unlike(
                        prefix,
                        location,
                        (other.entry.name for other in drafts if other is not each),
                    )
                chosen[name] = prefix
        return chosen

    def _check_unlike(self, prefix: str, location: Location, names: Iterable[ServerName]) -> None:
        """Refuse the name of another server: what begins with it could be meant for either."""
        if name := next((each for each in names if each.casefold() == prefix.casefold()), None):
            problem = f"`{dotted(location)}` is the name of the server `{name}`"
            raise self._source.error(problem, location, "Use another prefix")

    def _check_prefix(
        self, prefix: str, location: Location, chosen: Mapping[ServerName, str]
    ) -> None:
        clean = prefixes([prefix])[ServerName(prefix)] if prefix else ""
        if clean != prefix:
            raise self._source.error(
                f"`{dotted(location)}` may only have letters, digits and single underscores",
                location,
                f"Use `{clean}`",
            )
        if prefix and prefix in chosen.values():
            raise self._source.error(f"`{dotted(location)}` is used twice", location)

    def _overridden(self, form: SettingsForm) -> Settings:
        written = self._environ.get(TOOL_SEARCH_VARIABLE)
        try:
            given = ToolSearchMode.parse(written) if written else None
        except ValueError:
            raise ConfigError(
                TOOL_SEARCH_VARIABLE, "must be `true`, `false`, `auto` or `auto:N`"
            ) from None
        apart = {"tool_search", "names", "audit", "skills", "profiles", "tokens", "clients"}
        apart |= {"http"}
        values = form.model_dump(exclude=_OF_SERVERS | apart)
        audit = form.audit and Audit(
            self._source.resolved(form.audit.file),
            form.audit.arguments,
            form.audit.required,
            form.audit.max_bytes,
        )
        return Settings(
            http=self._http(form),
            tool_search=given or form.tool_search,
            names=_own_names(form),
            audit=audit,
            tokens=counter_of(form.tokens, self._source.resolved),
            skills=tuple(map(self._source.resolved, form.skills)),
            clients=surfaces_of(form.clients),
            result_limits=limits_of(form.clients),
            profiles={name: profile_of(name, each, given) for name, each in form.profiles.items()},
            **values,
        )

    def _http(self, form: SettingsForm) -> Http:
        if (found := unknown_profile(form.http, form.profiles)) is not None:
            at, name = found
            hint = nearest(name, tuple(form.profiles)) or "Name one that is under `profiles`"
            location = ("http", "access", at, "profile")
            raise self._source.error(f"`http.access` names no profile: `{name}`", location, hint)
        return http_of(form.http, self._source.resolved)


def _own_names(form: SettingsForm) -> MetaTools:
    return MetaTools(form.names.search, form.names.call, form.names.call_read_only)


def _named(data: dict[str, Value]) -> dict[str, Value]:
    """Return the data with a list of named servers made a mapping, as one client writes it."""
    section = data.get("mcpServers")
    if not isinstance(section, list):
        return data
    named: dict[str, Value] = {
        str(item.get("name")): item for item in section if isinstance(item, dict)
    }
    return {**data, "mcpServers": named}


def _listed(names: list[str] | tuple[str, ...]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:8])
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"  # noqa: PLR2004


_OF_SERVERS = {"env", "env_file", "inherit_env", "start", "idle_timeout"}
"""Settings of which each server has its own."""
_TOP_KEYS = top_keys()
