"""The file a command works with."""

import argparse
from pathlib import Path

from aggregator.cli.environment import CommandError, Environment, ExitStatus
from aggregator.config import Config, check_profile, load_config
from aggregator.entry import place


def config_path(given: str | None, environment: Environment) -> Path:
    """Say which file to use: the one named, the nearest from here upwards, or the person's own.

    Raises:
        CommandError: It is none.
    """
    directory = str(environment.directory)
    path = Path(place.config_path(given, environment.variables, directory, environment.platform))
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise CommandError(
            f"`{path}` is no file",
            hint="It is read more than once: write what comes out of it into a file",
            status=ExitStatus.USAGE,
        )
    return path


def user_config(environment: Environment) -> Path:
    """Return the file that holds wherever there is no other.

    Raises:
        CommandError: No home directory is known.
    """
    path = place.user_config(environment.variables, environment.platform)
    return environment.home if path is None else Path(path)


def read_config(
    options: argparse.Namespace, environment: Environment, *, quiet: bool = False
) -> Config:
    """Return what the file says, and pass on what may not be meant in it.

    Raises:
        ConfigError: It cannot be read, or cannot be used as written.
    """
    path = config_path(options.config, environment)
    config = load_config(path, environment.variables)
    if not quiet:
        tell_file(path, environment)
    for warning in config.warnings:
        environment.warn(warning)
    check_profile(config, getattr(options, "profile", None) or "")
    return config


def tell_file(path: Path, environment: Environment) -> None:
    """Say which of the files that there may be is used."""
    environment.note(f"Using `{environment.known_as(path)}`")
