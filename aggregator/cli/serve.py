"""`aggregator serve`: be the one server a client talks to."""

import logging

import anyio

from aggregator.app import serve_standard_streams
from aggregator.cli.environment import ExitStatus
from aggregator.config import Config

LEVELS = (logging.ERROR, logging.INFO, logging.DEBUG)
"""What is logged without `-v`, with it, and with `-vv`."""


def serve(config: Config, *, verbosity: int) -> ExitStatus:
    """Serve a client over stdio until it leaves."""
    level = LEVELS[min(verbosity, len(LEVELS) - 1)]
    # Nothing of the protocol is on stderr; a few clients show it to people, so it stays quiet.
    logging.basicConfig(level=logging.CRITICAL, format="%(levelname)s %(message)s")
    logging.getLogger("aggregator").setLevel(level)
    anyio.run(serve_standard_streams, config)
    return ExitStatus.FINE
