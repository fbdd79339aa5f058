"""`aggregator serve`: be the one server a client talks to."""

import argparse

import anyio

from aggregator.app import serve_standard_streams
from aggregator.cli.environment import Environment, ExitStatus
from aggregator.cli.logs import set_up_logging
from aggregator.cli.source import read_config


def run(options: argparse.Namespace, environment: Environment) -> ExitStatus:
    """Serve a client over stdio until it leaves."""
    config = read_config(options, environment)
    set_up_logging(config, options.verbose, options.log_format, environment.stderr)
    anyio.run(serve_standard_streams, config)
    return ExitStatus.FINE
