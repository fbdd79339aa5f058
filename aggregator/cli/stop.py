"""`aggregator stop`: end what runs in the background, with its servers."""

import argparse

from aggregator.cli.environment import CommandError, Environment, ExitStatus
from aggregator.cli.hubs import stop


def run(_options: argparse.Namespace, environment: Environment) -> ExitStatus:
    """End every hub of this person, and say so.

    Raises:
        CommandError: One does not end.
    """
    told = stop(environment)
    for process, has_ended in told:
        if not has_ended:
            raise CommandError(
                f"the hub in process {process} has not ended yet",
                f"`kill -9 {process}` ends it at once; its watchdog ends the servers",
            )
        environment.say(f"The hub in process {process} has ended")
    if not told:
        environment.say("Nothing is shared now: no background process is running")
    return ExitStatus.FINE
