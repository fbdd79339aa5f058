"""`python -m aggregator` and the `aggregator` command."""

import gc

# Nothing that is made while modules are loaded is garbage: looking for it only delays the start.
gc.disable()

import sys  # noqa: E402 - see above

from aggregator.cli import main  # noqa: E402 - see above
from aggregator.cli.environment import Environment  # noqa: E402 - see above


def run() -> None:
    """Run the command that was typed, and leave with its exit status."""
    sys.exit(main(sys.argv[1:], Environment.of_process()))


if __name__ == "__main__":
    run()
