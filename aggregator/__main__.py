"""`python -m aggregator` and the `aggregator` command."""

import gc

# Nothing that is made while modules are loaded is garbage: looking for it only delays the start.
gc.disable()

import signal  # noqa: E402 - see above
import sys  # noqa: E402 - see above


def _leave(*_: object) -> None:
    """Leave as whoever is interrupted does, before there is anything to say."""
    sys.exit(130)


if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, _leave)

from aggregator.entry import enter  # noqa: E402 - see above
from aggregator.entry.stack import roomy  # noqa: E402 - see above


@roomy
def run() -> None:
    """Run the command that was typed, and leave with its exit status."""
    arguments = sys.argv[1:]
    if (status := enter(arguments)) is not None:
        sys.exit(status)
    # Whoever is handed on needs none of this; and whoever is not is answered while it is loaded.
    from aggregator.entry.ahead import begin  # noqa: PLC0415 - see above

    herald = begin(arguments)
    from aggregator.cli import main  # noqa: PLC0415 - see above
    from aggregator.cli.environment import Environment  # noqa: PLC0415 - see above

    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(main(arguments, Environment.of_process(herald)))


if __name__ == "__main__":
    run()
