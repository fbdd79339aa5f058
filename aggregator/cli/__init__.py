"""The command line: argv, files, exit status."""

from aggregator.cli.main import main

__all__ = ["main"]
