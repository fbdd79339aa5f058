"""`aggregator serve`: be the one server a client talks to."""

import argparse
import logging
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import anyio

from aggregator.app import Expect, serve_http, serve_standard_streams
from aggregator.cli.config_file import read_config
from aggregator.cli.environment import CommandError, Environment, ExitStatus
from aggregator.cli.logs import set_up_logging, tell_of_loss
from aggregator.config import Config
from aggregator.descriptors import raise_limit
from aggregator.memory import state_path

EVENT_LOOP = {"use_uvloop": find_spec("uvloop") is not None}
"""The quicker event loop, where it is installed."""

SWITCH_INTERVAL = 0.001
"""Seconds after which a thread that computes lets the event loop have its turn."""


def run(options: argparse.Namespace, environment: Environment) -> ExitStatus:
    """Serve a client over stdio until it leaves, or clients over HTTP until told to stop."""
    _check(options)
    _check_platform(environment)
    sys.setswitchinterval(SWITCH_INTERVAL)
    raise_limit()
    # A client shows what we say as errors, and programs wait for the address that is said first.
    config = read_config(options, environment, quiet=not environment.stderr.isatty())
    if options.only:
        config = config.only(options.only)
    if options.afresh:
        config = config.afresh()
    # A client shows what we say as errors; over HTTP a person or a service reads it.
    least = logging.ERROR if options.http is None else logging.WARNING
    if environment.spout is not None:
        environment.spout.never_wait(tell_of_loss)
    form: str = options.log_format
    lines = set_up_logging(config, options.verbose, form, environment.stderr, least)
    if options.http is None:
        _greet(environment)
        serve = partial(
            serve_standard_streams,
            config,
            environment.variables,
            lines.expect,
            environment.herald,
            options.profile,
        )
        anyio.run(serve, backend_options=EVENT_LOOP)
    else:
        _serve_http(config, options, environment, lines.expect)
    return ExitStatus.FINE


def _check(options: argparse.Namespace) -> None:
    """Refuse what would have no effect, since somebody counts on it.

    Raises:
        CommandError: An option needs another.
    """
    for option in ("no_auth", "allow_host", "token_file") if options.http is None else ():
        if getattr(options, option):
            raise CommandError(
                f"`--{option.replace('_', '-')}` is of use only with `--http`",
                "`aggregator serve --http 8765` serves clients over HTTP",
                ExitStatus.USAGE,
            )


def _check_platform(environment: Environment) -> None:
    """Say what would otherwise be found out by a traceback.

    Raises:
        CommandError: There are no pipes to wait for, and no groups of processes to end.
    """
    if environment.platform == "win32":
        raise CommandError(
            "`aggregator serve` needs Linux or macOS, and does not run on Windows",
            "Run it in the Windows Subsystem for Linux; `inspect --url` reaches it there",
        )


def _greet(environment: Environment) -> None:
    """Tell a person who typed the command why nothing happens."""
    if environment.stdin.isatty() and environment.stderr.isatty():
        environment.note("Waiting for an MCP client on standard input; Ctrl-C ends it.")


def _serve_http(
    config: Config, options: argparse.Namespace, environment: Environment, expect: Expect
) -> None:
    # A client that starts us over stdio does not wait for what HTTP takes.
    from aggregator.cli.token import ring_of  # noqa: PLC0415 - see above
    from aggregator.upstream.http.binding import BindingError, parse_binding  # noqa: PLC0415 - see above
    from aggregator.upstream.http.keys import Keys  # noqa: PLC0415 - see above
    from aggregator.upstream.http.serving import FROM_ENVIRONMENT, Access, Listener  # noqa: PLC0415 - see above

    try:
        binding = parse_binding(options.http)
    except BindingError as error:
        raise CommandError(str(error), error.hint, ExitStatus.USAGE) from error
    try:
        given = None if options.token_file else environment.variables.get(FROM_ENVIRONMENT)
        token = None if options.no_auth else given or None
        token_file = None if options.no_auth or token else _token_file(options, environment)
        names = tuple(options.allow_host)
        access = Access(
            binding,
            token_file,
            token,
            names,
            options.profile,
            keys=Keys(None if options.no_auth else ring_of(config.path, environment)),
            say=environment.note,
        )
        listener = Listener(access)
    except BindingError as error:
        raise CommandError(str(error), error.hint) from error
    try:
        serve = partial(serve_http, config, environment.variables, listener, expect)
        anyio.run(serve, backend_options=EVENT_LOOP)
    finally:
        listener.close()


def _token_file(options: argparse.Namespace, environment: Environment) -> Path:
    if options.token_file:
        return environment.directory / Path(options.token_file).expanduser()
    state = state_path(environment.variables, environment.platform)
    if state is None:
        raise CommandError("there is no place for the token", "Set HOME or XDG_STATE_HOME")
    return state.with_name("http-token")
