"""The hub as a process: the first client that needs it runs `python -m aggregator.cli.hub`."""

import logging
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import anyio
import anyio.abc

from aggregator.app.hub.hub import Hub
from aggregator.app.hub.preloading import preload
from aggregator.basics import garbage
from aggregator.basics.descriptors import raise_limit
from aggregator.cli.logs import set_up_logging
from aggregator.cli.serve import EVENT_LOOP, SWITCH_INTERVAL
from aggregator.config import Config
from aggregator.entry.hub_socket import HubSocket


def run(words: Sequence[str]) -> None:
    """Be the hub of whoever holds the lock that we were given."""
    path, descriptor, name, lock = words
    hub_socket, held = HubSocket(path, int(descriptor), name), int(lock)
    for each in (hub_socket.descriptor, held):
        os.set_inheritable(each, False)
    sys.setswitchinterval(SWITCH_INTERVAL)
    raise_limit()
    lines = set_up_logging(Config(Path()), 0, "text", sys.stderr, logging.WARNING)
    preload()
    garbage.begin()
    garbage.give_back()
    hub = Hub(hub_socket, lines.expect)
    anyio.run(_serve, hub, held, backend_options=EVENT_LOOP)


async def _serve(hub: Hub, lock: int) -> None:
    async with anyio.create_task_group() as group:
        await group.start(_heed_signals, hub)
        await hub.run(lock)
        group.cancel_scope.cancel()


async def _heed_signals(
    hub: Hub, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    """Stop when told to; when told twice, leave it to the watchdogs to clean up."""
    has_stopped = False
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
        task_status.started()
        async for number in signals:
            if number == signal.SIGHUP:
                hub.reload()
            elif has_stopped:
                os._exit(128 + number)
            else:
                has_stopped = True
                hub.stop()


if __name__ == "__main__":
    run(sys.argv[1:])
