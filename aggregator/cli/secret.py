"""`aggregator secret`: what `${keyring:NAME}` stands for."""

import argparse
import re
from getpass import getpass

from aggregator.cli.environment import CommandError, Environment, ExitStatus
from aggregator.config.keychain import NAME, KeyringError, check, forget, keep


def run(options: argparse.Namespace, environment: Environment) -> ExitStatus:
    """Put a secret into the system's keyring, or take it out."""
    name: str = options.name
    if not re.fullmatch(NAME, name, re.ASCII):
        raise CommandError(
            # It may be `NAME=value`, so it is not repeated.
            "this is not allowed as a name, and a secret is not given on the command line",
            "Use at most 128 letters, digits, `_`, `.`, `@`, `/` and `-`",
            ExitStatus.USAGE,
        )
    try:
        if options.action == "delete":
            forget(name)
            environment.note(f"`{name}` is no longer in the keyring")
            return ExitStatus.FINE
        check(name)
        keep(name, _value(name, environment))
    except KeyringError as error:
        raise CommandError(str(error)) from None
    environment.note(f"The keyring has it: write `${{keyring:{name}}}` where it is needed")
    return ExitStatus.FINE


def _value(name: str, environment: Environment) -> str:
    """Return what is typed, without showing it, or what comes through a pipe.

    Raises:
        CommandError: It is nothing.
    """
    if environment.stdin.isatty():
        value = _typed(f"Value of `{name}` (not shown): ")
    else:
        # What programs print ends with a line that is no part of it.
        value = re.sub(r"\r?\n\Z", "", environment.read_all())
    if not value:
        raise CommandError("no value was given, so nothing was stored")
    return value


def _typed(prompt: str) -> str:
    try:
        return getpass(prompt)
    except EOFError:
        return ""
