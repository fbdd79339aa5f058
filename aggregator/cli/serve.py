"""`aggregator serve`: be the one server a client talks to."""

import argparse
import logging
import shlex
import sys
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec

import anyio

from aggregator.app.life import serve_standard_streams
from aggregator.basics.descriptors import raise_limit
from aggregator.cli.config_file import read_config
from aggregator.cli.environment import CommandError, Environment, ExitStatus
from aggregator.cli.logs import Lines, set_up_logging, tell_of_loss
from aggregator.config import Config

EVENT_LOOP = {"use_uvloop": find_spec("uvloop") is not None}
"""The quicker event loop, where it is installed."""

SWITCH_INTERVAL = 0.001
"""Seconds after which a thread that computes lets the event loop have its turn."""


def run(options: argparse.Namespace, environment: Environment) -> ExitStatus:
    """Serve a client over stdio until it leaves, or clients over HTTP until told to stop."""
    _check(options)
    # A client shows what we say as errors; over HTTP a person or a service reads it.
    least = logging.ERROR if options.http is None else logging.WARNING
    config, lines = prepare(options, environment, least)
    if options.http is not None:
        # A client that starts us over stdio does not wait for what HTTP takes.
        from aggregator.cli.door import access_for, serve_door  # noqa: PLC0415 - see above

        access = access_for(options, config, environment)
        return serve_door(
            access,
            config,
            environment,
            lines.expect,
            on_open=partial(_tell, options, environment),
            is_shared=_is_shared(options),
        )
    _greet(environment)
    serve = partial(
        serve_standard_streams,
        config,
        environment.variables,
        lines.expect,
        environment.herald,
        options.profile,
        say_when_told=_say_to_person(options, environment),
    )
    anyio.run(serve, backend_options=EVENT_LOOP)
    return ExitStatus.FINE


def prepare(
    options: argparse.Namespace, environment: Environment, least: int
) -> tuple[Config, Lines]:
    """Get this process ready to serve; return what to serve, and what follows it in the log.

    Raises:
        CommandError: It cannot be done on this system.
        ConfigError: The file cannot be used.
    """
    _check_platform(environment)
    sys.setswitchinterval(SWITCH_INTERVAL)
    raise_limit()
    # A client shows what we say as errors, and programs wait for the address that is said first.
    config = read_config(options, environment, quiet=not environment.stderr.isatty())
    if options.only:
        config = config.only(options.only)
    if options.afresh:
        config = config.afresh()
    if environment.writer is not None:
        environment.writer.never_wait(tell_of_loss)
    form: str = options.log_format
    return config, set_up_logging(config, options.verbose, form, environment.stderr, least)


_OF_HTTP = (
    "no_auth",
    "allow_host",
    "token_file",
    "tls_cert",
    "tls_key",
    "behind_proxy",
    "drain",
    "notice",
    "state_key",
    "state",
    "show_arguments",
)
"""What means something only with `--http`."""


def _check(options: argparse.Namespace) -> None:
    """Refuse what would have no effect, since somebody counts on it.

    Raises:
        CommandError: An option needs another.
    """
    for option in _OF_HTTP if options.http is None else ():
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


def _tell(options: argparse.Namespace, environment: Environment, _listener: object) -> None:
    """Tell a person who typed the command how to see what it does."""
    if environment.stderr.isatty():
        there = f" --config {shlex.quote(options.config)}" if options.config else ""
        environment.note(f"`aggregator open{there}` shows a page of what it does; Ctrl-C ends it")


def _greet(environment: Environment) -> None:
    """Tell a person who typed the command why nothing happens."""
    if environment.stdin.isatty() and environment.stderr.isatty():
        environment.note("Waiting for an MCP client on standard input; Ctrl-C ends it.")


def _say_to_person(
    options: argparse.Namespace, environment: Environment
) -> Callable[[str], None] | None:
    """Return how to tell a person at a terminal what is not in the log that their client reads."""
    is_for_person = environment.stderr.isatty() and options.log_format == "text"
    return environment.note if is_for_person else None


def _is_shared(options: argparse.Namespace) -> bool:
    """Whether others may serve in our place: who wants to hear more hears it from us."""
    return options.shared and not (options.verbose or options.only or options.afresh)
