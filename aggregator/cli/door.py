"""A door that clients come in by over HTTP, as commands open one."""

import argparse
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import anyio

from aggregator.app.life import Expect, serve_http
from aggregator.cli.doors import announced
from aggregator.cli.doorway import Door
from aggregator.cli.environment import CommandError, Environment, ExitStatus
from aggregator.cli.replicas import common_for
from aggregator.cli.serve import EVENT_LOOP
from aggregator.cli.shared_door import open_in_hub
from aggregator.cli.token import ring_of
from aggregator.config import Config
from aggregator.memory import state_path
from aggregator.records.keeping import stats_path
from aggregator.upstream.http.binding import BindingError, parse_binding
from aggregator.upstream.http.keys import Keys
from aggregator.upstream.http.proxies import parse_proxies
from aggregator.upstream.http.serving import DRAIN_TIME, FROM_ENVIRONMENT, Access, Listener
from aggregator.upstream.http.tls import Certificate
from aggregator.upstream.replica import ALONE

OnOpen = Callable[[Listener], None]
"""Told of a door that can be knocked at."""


def access_for(options: argparse.Namespace, config: Config, environment: Environment) -> Access:
    """Return where to listen and whom to let in, as `serve --http` was told.

    Raises:
        CommandError: It cannot be done so.
    """
    try:
        binding = parse_binding(options.http, is_secure=options.tls_cert is not None)
        proxies = parse_proxies(options.behind_proxy)
    except BindingError as error:
        raise CommandError(str(error), error.hint, ExitStatus.USAGE) from error
    if options.no_auth and config.settings.http.issuer is not None:
        raise CommandError(
            "`--no-auth` lets everybody in, and `http.issuer` only those whom it knows",
            "Leave out one of them",
            ExitStatus.USAGE,
        )
    given = None if options.token_file else environment.variables.get(FROM_ENVIRONMENT)
    token = None if options.no_auth else given or None
    keys = _keys(options, config, environment)
    return Access(
        binding,
        None if options.no_auth or token else _token_file(options, environment),
        token,
        tuple(options.allow_host),
        options.profile,
        keys=keys,
        say=environment.note,
        stats=stats_of(config, environment),
        shows_arguments=options.show_arguments,
        certificate=_certificate(options, environment),
        proxies=proxies,
        drain_time=DRAIN_TIME if options.drain is None else options.drain,
        notice=options.notice or 0.0,
        common=common_for(options, config.settings.http.replicas, binding, environment),
        asks_issuer=True,
        takes_token=config.settings.http.issuer is None or config.settings.http.local_token,
        notes=tuple(_notes(config, has_others=bool(keys.valid))),
    )


def _notes(config: Config, *, has_others: bool) -> Iterator[str]:
    """Yield what whoever opens a door to others is to know."""
    issuer = config.settings.http.issuer
    if issuer is not None:
        yield f"people log in at `{issuer.name}`"
    personal = [f"`{name}`" for name, server in config.enabled.items() if server.is_personal]
    if personal and (issuer is not None or has_others):
        yield (
            f"only you see {', '.join(personal)}, which may have your login; "
            "`shared: true` under a server shows it to others"
        )


def serve_door(
    access: Access,
    config: Config,
    environment: Environment,
    expect: Expect,
    *,
    on_open: OnOpen = lambda _listener: None,
    confides: bool = False,
    is_shared: bool = False,
) -> ExitStatus:
    """Serve whoever comes in by a door until told to stop, from a hub's servers if it is shared.

    `confides` says whether other commands of the same person may know the token, where it is in
    no file.

    Raises:
        CommandError: We cannot listen there.
    """
    try:
        listener = Listener(access)
    except BindingError as error:
        raise CommandError(str(error), error.hint) from error
    told = Door(
        listener.near,
        None if access.token_file is None else str(access.token_file),
        access.token if confides else None,
        access.certificate and str(access.certificate.chain.absolute()),
        f"{access.names[0]}:{listener.binding.port}" if access.names else None,
    )
    # Of a door that the token does not open, commands of the same person have no use.
    known = announced(told, config.path, environment) if access.takes_token else nullcontext()
    try:
        with known:
            on_open(listener)
            status = open_in_hub(listener, config, environment) if is_shared else None
            if status is not None:
                return ExitStatus(status)
            replica = ALONE if access.common is None else access.common.replica
            serve = partial(serve_http, config, environment.variables, listener, expect, replica)
            anyio.run(serve, backend_options=EVENT_LOOP)
    finally:
        listener.close()
    return ExitStatus.FINE


def stats_of(config: Config, environment: Environment) -> Path | None:
    """Return where stats of a configuration are kept, if they are."""
    state = state_path(environment.variables, environment.platform)
    is_kept = config.settings.state and config.settings.stats
    return stats_path(state) if is_kept and state is not None else None


def _keys(options: argparse.Namespace, config: Config, environment: Environment) -> Keys:
    has_place = state_path(environment.variables, environment.platform) is not None
    is_asked = has_place and not options.no_auth
    return Keys(ring_of(config.path, environment) if is_asked else None)


def _certificate(options: argparse.Namespace, environment: Environment) -> Certificate | None:
    """Return what connections are to be secured with, if they are."""
    if options.tls_cert is None:
        if options.tls_key is not None:
            raise CommandError(
                "`--tls-key` is of use only with `--tls-cert`",
                "Name the file of the certificate, too",
                ExitStatus.USAGE,
            )
        return None
    named = (options.tls_cert, options.tls_key)
    chain, key = (each and environment.directory / Path(each).expanduser() for each in named)
    try:
        return Certificate(chain, key)
    except BindingError as error:
        raise CommandError(str(error), error.hint) from error


def _token_file(options: argparse.Namespace, environment: Environment) -> Path:
    if options.token_file:
        return environment.directory / Path(options.token_file).expanduser()
    state = state_path(environment.variables, environment.platform)
    if state is None:
        raise CommandError("there is no place for the token", "Set HOME or XDG_STATE_HOME")
    return state.with_name("http-token")
