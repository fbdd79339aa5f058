"""The file a command works with."""

import argparse
from pathlib import Path

from aggregator.cli.environment import Environment
from aggregator.cli.parser import CONFIG_VARIABLE, DEFAULT_CONFIG
from aggregator.config import Config, load_config


def config_path(given: str | None, environment: Environment) -> Path:
    """Say which file to read: the one named, or `servers.yaml` where the command is run."""
    chosen = given or environment.variables.get(CONFIG_VARIABLE) or DEFAULT_CONFIG
    return environment.directory / Path(chosen).expanduser()


def read_config(options: argparse.Namespace, environment: Environment) -> Config:
    """Return what the file says, and pass on what may not be meant in it.

    Raises:
        ConfigError: It cannot be read, or cannot be used as written.
    """
    config = load_config(config_path(options.config, environment), environment.variables)
    for warning in config.warnings:
        environment.warn(warning)
    return config
