"""`python -m aggregator` and the `aggregator` command."""

import sys

from aggregator.cli import main
from aggregator.cli.environment import Environment


def run() -> None:
    """Run the command that was typed, and leave with its exit status."""
    sys.exit(main(sys.argv[1:], Environment.of_process()))


if __name__ == "__main__":
    run()
