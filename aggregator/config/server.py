"""One server, from its entry in the file to its value."""

import json
from collections.abc import Collection, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Literal

from aggregator.basics.frozen import frozen
from aggregator.config.document import Location, Value, dotted
from aggregator.config.dotenv import EnvFileError
from aggregator.config.form import ONLY_FOR_ADDRESSES, ONLY_FOR_PROGRAMS, ServerForm, keys
from aggregator.config.inheritance import Environment, Wish
from aggregator.config.keychain import Held
from aggregator.config.limits import Limits
from aggregator.config.login_form import NO_LOGIN, OAuthForm
from aggregator.config.oauth import OAuth
from aggregator.config.own_process import why_own_process
from aggregator.config.quantities import PROXIES, address_fault, header_fault
from aggregator.config.settings import DriftChoice
from aggregator.config.source import Source
from aggregator.config.values import (
    MAX_IN_FLIGHT,
    MAX_IN_FLIGHT_FAR,
    ServerConfig,
    StartChoice,
)
from aggregator.config.variables import (
    Dialect,
    Expansion,
    MissingVariableError,
    expand,
)
from aggregator.names import MetaTools, ServerName
from aggregator.secrecy import Redaction, is_secret


@frozen(slots=False)
class Entry:
    """A server as the file has it."""

    name: ServerName
    location: Location
    data: Mapping[str, Value]
    dialect: Dialect
    variables: Mapping[str, str]
    """What may stand in it beside the variables every server may use."""


@frozen(slots=False)
class Draft:
    """A server whose form is filled in, but whose prefix is not settled."""

    entry: Entry
    form: ServerForm
    file_variables: Mapping[str, str]
    secrets: Mapping[str, str]
    problem: str | None = None


@frozen(slots=False)
class Shared:
    """What the file says of every server."""

    environment: Environment
    wish: Wish
    env: Mapping[str, str]
    secrets: Mapping[str, str]
    names: MetaTools
    start: StartChoice
    idle_timeout: float | None
    drift: DriftChoice


def draft(entry: Entry, source: Source, variables: Mapping[str, str], held: Held) -> Draft:
    """Return the entry with its variables filled in and its keys checked.

    A variable, secret or env file that is missing is the problem of this server alone, and so is
    a value that cannot be sent.

    Raises:
        ConfigError: The entry cannot be used as written.
    """
    variables = {**entry.variables, **variables}
    data = said(entry.data, _KEYS)
    own, problem = _file_variables(data.get("envFile"), entry, source, variables)
    expansion = Expansion({**variables, **own}, entry.dialect)
    expanded = {key: expansion.expand(value, (*entry.location, key)) for key, value in data.items()}
    source.check_references(expansion)

    # A key that waits for a variable cannot be checked; one that is unknown can.
    waiting = {str(location[len(entry.location)]) for location in expansion.missing} & _KEYS
    known = {key: value for key, value in expanded.items() if key not in waiting}
    form = source.filled(ServerForm, known, entry.location)
    problem = problem or _missing_variables(expansion, held)
    if problem is None:
        _check_transport(form, entry, source)
        problem = _header_problem(form.headers, data.get("headers"), expansion)
    secrets = {name: value for name, value in expansion.used.items() if is_secret(name, value)}
    secrets |= held.referred_to(dict(entry.data))
    return Draft(entry, form, own, secrets, problem and Redaction(secrets.items())(problem))


def said(data: Mapping[str, Value], known: Collection[str]) -> dict[str, Value]:
    """Return the data without known keys that are left empty: they keep their defaults."""
    return {key: value for key, value in data.items() if value is not None or key not in known}


def settle(draft: Draft, prefix: str, source: Source, shared: Shared) -> ServerConfig:
    """Return the server's value."""
    form = draft.form
    wish = shared.wish if form.inherit_env is None else form.inherit_env
    return ServerConfig(
        name=draft.entry.name,
        prefix=prefix,
        reserved=shared.names,
        type=form.type or ("http" if form.url else "stdio"),
        era=form.era,
        command=_program(form.command[0], source) if form.command else None,
        args=(*form.command[1:], *form.args),
        env={} if form.url else {**shared.env, **draft.file_variables, **form.env},
        inherited={} if form.url else shared.environment.inherited(wish),
        cwd=None if form.url else source.resolved(form.cwd or "."),
        limits=Limits(form.limits.memory, form.limits.processes, form.limits.files),
        detach=form.detach,
        url=form.url,
        headers=form.headers,
        ca_file=_file(form.ca_file, source),
        verify=form.verify,
        client_cert=_file(form.client_cert, source),
        client_key=_file(form.client_key, source),
        proxy=form.proxy,
        oauth=_oauth(form.oauth, source),
        shared=form.shared,
        description=" ".join(form.description.split()),
        always_load=form.always_load,
        allow=form.tools.allow,
        deny=form.tools.deny,
        rename=form.tools.rename,
        describe=form.tools.describe,
        read_only=form.tools.read_only,
        secrets={**shared.secrets, **draft.secrets},
        search_hints=form.search_hints,
        enabled=form.enabled,
        start=form.start or shared.start,
        idle_timeout=_idle_timeout(form, shared),
        per_client=_is_per_client(form),
        connect_timeout=form.connect_timeout,
        call_timeout=form.call_timeout,
        max_call_time=max(form.max_call_time, form.call_timeout),
        max_message_bytes=form.max_message_bytes,
        max_in_flight=form.max_in_flight or (MAX_IN_FLIGHT_FAR if form.url else MAX_IN_FLIGHT),
        max_queued=form.max_queued,
        trust_annotations=form.trust_annotations,
        honour_always_load=form.honour_always_load,
        source=_source(draft.entry.data),
        pin=form.pin,
        drift=form.drift or shared.drift,
        problem=draft.problem,
    )


def _source(data: Mapping[str, Value]) -> str:
    """Return what stands for the address or the program that an entry names, as it is written.

    What variables stand for is not in it: others who share the file have other values.
    """
    parts = [data.get("url")] if data.get("url") else [data.get("command"), data.get("args")]
    words = [word for part in parts for word in (part if isinstance(part, list) else [part])]
    text = json.dumps([word for word in words if word is not None])
    return sha256(text.encode()).hexdigest()


def _is_per_client(form: ServerForm) -> bool:
    """Return whether it has a process for each client: as the file says, or as it is known to."""
    if form.per_client is not None:
        return form.per_client
    words = (*form.command, *form.args)
    return why_own_process(words[0] if words else None, words[1:]) is not None


def _idle_timeout(form: ServerForm, shared: Shared) -> float | None:
    """Return when it is stopped; what is said of all holds for those that start when needed."""
    is_eager = (form.start or shared.start) == "eager"
    return form.idle_timeout or (None if is_eager else shared.idle_timeout)


def _file_variables(
    written: Value, entry: Entry, source: Source, variables: Mapping[str, str]
) -> tuple[dict[str, str], str | None]:
    if not isinstance(written, str):
        return {}, None
    try:
        path = source.resolved(expand(written, variables, entry.dialect))
        return source.variables_in(path), None
    except MissingVariableError:
        return {}, None  # reported with the other missing variables
    except EnvFileError as error:
        return {}, f"its `envFile` {error}"


def _missing_variables(expansion: Expansion, held: Held) -> str | None:
    names = list(dict.fromkeys(expansion.missing.values()))
    if not names:
        return None
    if unheld := [name for name in names if name in held.problems]:
        return held.problems[unheld[0]]
    if asked := [name for name in names if name.startswith("input:")]:
        return f"`${{{asked[0]}}}` is asked for by a client; write a variable such as `${{TOKEN}}`"
    which = " and ".join(f"`{name}`" for name in names)
    what, it = ("variable", "it") if len(names) == 1 else ("variables", "them")
    return (
        f"the {what} {which} must be set, and many clients hide your environment: "
        f"put {it} in a file named by `envFile`, or in `env` where the client configures "
        f"the aggregator, or write a default: `${{{names[0]}:-default}}`"
    )


def _header_problem(headers: Mapping[str, str], written: Value, expansion: Expansion) -> str | None:
    """Say which header cannot be sent, and why; its value is often a secret, and is not told."""
    for name, value in headers.items():
        if fault := header_fault(value):
            text = written.get(name) if isinstance(written, dict) else None
            if empty := expansion.empty_in(text):
                return f"the variable `{empty[0]}` is empty, and its header `{name}` needs it"
            return f"its header `{name}` {fault}: look at the value, or the variable it comes from"
    return None


def _check_transport(form: ServerForm, entry: Entry, source: Source) -> None:
    name = entry.name
    if form.command and form.url:
        raise source.error(f"`{name}` has both `command` and `url`", entry.location)
    if not form.command and not form.url:
        raise source.error(
            f"`{name}` has neither `command` nor `url`",
            entry.location,
            "Use `command` to start a program, or `url` to reach a server over HTTP",
        )
    if form.url:
        _check_url(form, form.url, entry, source)
    else:
        _check_command(form, entry, source)


def _check_url(form: ServerForm, url: str, entry: Entry, source: Source) -> None:
    location = (*entry.location, "url")
    if fault := address_fault(url):
        raise source.error(f"`{dotted(location)}` {fault}", location)
    if form.type == "stdio":
        raise source.error(
            f"`{entry.name}` has a `url`, so its `type` must be `http` or `sse`",
            (*entry.location, "type"),
        )
    _refuse_useless(ONLY_FOR_PROGRAMS, "url", entry, source)
    if form.proxy and (fault := address_fault(form.proxy, PROXIES)):
        location = (*entry.location, "proxy")
        raise source.error(f"`{dotted(location)}` {fault}", location)


def _check_command(form: ServerForm, entry: Entry, source: Source) -> None:
    location = (*entry.location, "command")
    program = form.command[0]
    if form.type not in {None, "stdio"}:
        raise source.error(
            f"`{entry.name}` has a `command`, so its `type` must be `stdio`",
            (*entry.location, "type"),
        )
    _refuse_useless(ONLY_FOR_ADDRESSES, "command", entry, source)
    if not program.strip():
        raise source.error(f"`{dotted(location)}` is empty", location)
    if _is_line(program):
        first, _, rest = program.partition(" ")
        raise source.error(
            f"`{dotted(location)}` must be the program alone",
            location,
            f"Write `command: {first}` and put the rest in `args`" if rest else None,
        )


def _refuse_useless(keys: tuple[str, ...], beside: str, entry: Entry, source: Source) -> None:
    for key in keys:
        if entry.data.get(key):
            location = (*entry.location, key)
            raise source.error(f"`{dotted(location)}` has no meaning beside `{beside}`", location)


def _oauth(form: OAuthForm | None, source: Source) -> OAuth | Literal[False] | None:
    if form is None or form is NO_LOGIN:
        return None if form is None else False
    return OAuth(
        client_id=form.client_id,
        client_secret=form.client_secret,
        private_key=_file(form.private_key, source),
        scopes=tuple(word for scope in form.scopes for word in scope.split()),
        redirect_uri=form.redirect_uri,
        authorization_params=form.authorization_params,
        resource=form.resource,
        issuer=form.issuer,
        client_metadata_url=form.client_metadata_url,
        verify=form.verify,
        grant=form.grant,
    )


def _file(written: str | None, source: Source) -> Path | None:
    return None if written is None else source.resolved(written)


def _program(command: str, source: Source) -> str:
    """Return a path as an absolute one, and a bare name as it is, to be found on the PATH."""
    return str(source.resolved(command)) if _is_path(command) else command


def _is_line(command: str) -> bool:
    """Whether a program is written with its arguments; a path may have spaces in it."""
    first, *rest = command.split(" ")
    if not rest or _is_path(first):
        return False
    # No directory is called so, but a package is, and an option or a script has such a beginning.
    return not _is_path(command) or any(word.startswith(("-", "@", ".", "/", "~")) for word in rest)


def _is_path(command: str) -> bool:
    return "/" in command or "\\" in command or command.startswith("~")


_KEYS = frozenset(keys(ServerForm))
