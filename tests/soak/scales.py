"""The aggregator as a process that can be weighed, from outside and at any moment.

    python -m tests.soak.scales PIPE serve ...
    python -m tests.soak.scales PIPE hub ...

What follows the named pipe is what `python -m aggregator` takes, or what a hub is started with,
and it runs as it does there.
On SIGUSR2 it collects its garbage and writes what it holds then into the pipe, in a line of JSON.
"""

import gc
import json
import os
import select
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import anyio.abc

PAGE = os.sysconf("SC_PAGE_SIZE")

PATIENCE = 30.0
"""Seconds that one weighing may take."""


@dataclass(frozen=True, slots=True)
class Weight:
    """What a process holds, once it has collected its garbage."""

    memory: int
    """Bytes that are resident."""
    objects: int
    """What the collector follows, those it was told to look at no more included."""
    descriptors: int
    tasks: int


class Scales:
    """The end of the pipe at which weights are read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        os.mkfifo(path)
        # Open for writing too: a pipe that nobody writes to would be at its end.
        self._descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK)

    def weigh_now(self, pid: int) -> Weight:
        """Have a process say what it holds, and wait for it."""
        os.kill(pid, signal.SIGUSR2)
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        assert poll.poll(1000 * PATIENCE)
        return Weight(**json.loads(os.read(self._descriptor, 4096)))

    async def weigh(self, process: anyio.abc.Process) -> Weight:
        """Have a process say what it holds."""
        process.send_signal(signal.SIGUSR2)
        with anyio.fail_after(PATIENCE):
            await anyio.wait_readable(self._descriptor)
        # A line is shorter than what a pipe takes at once.
        return Weight(**json.loads(os.read(self._descriptor, 4096)))

    def close(self) -> None:
        os.close(self._descriptor)


@asynccontextmanager
async def scales(path: Path) -> AsyncGenerator[Scales, None]:
    """Have scales at a path for the length of the block."""
    made = Scales(path)
    try:
        yield made
    finally:
        made.close()


def _weigh(path: str) -> None:
    gc.collect()
    held = {
        "memory": _resident(),
        "objects": len(gc.get_objects()) + gc.get_freeze_count(),
        "descriptors": len(os.listdir("/proc/self/fd")) - 1,  # noqa: PTH208 - one more is ours
        "tasks": len(anyio.get_running_tasks()),
    }
    with open(path, "wb", buffering=0) as pipe:  # noqa: PTH123 - as small as can be
        pipe.write(json.dumps(held).encode() + b"\n")


def _resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - as small as can be
        return PAGE * int(file.read().split()[1])


def main(path: str, *words: str) -> None:
    """Be the aggregator, and weigh ourselves when asked to."""

    def weigh(_number: int, _frame: Any) -> None:
        _weigh(path)

    signal.signal(signal.SIGUSR2, weigh)
    if words[0] == "hub":
        from aggregator.cli.hub import run as run_hub  # noqa: PLC0415 - see below

        run_hub(words[1:])
        return
    sys.argv = ["aggregator", *words]
    from aggregator.__main__ import run  # noqa: PLC0415 - it stops the collector while it is loaded

    run()


if __name__ == "__main__":
    main(*sys.argv[1:])
