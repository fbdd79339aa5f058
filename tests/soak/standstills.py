"""How long the event loop stands still where it used to stand still for good."""

import logging
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from aggregator.cli.logs import set_up_logging
from aggregator.cli.stderr_writer import StderrWriter, never_blocking
from aggregator.fleet.reloading import Reloading
from tests.peers import ready
from tests.soak.client import faulty
from tests.soak.stalls import FOLLOWING, Running, Stall, in_process

FLOODS = {"odd_notices": 200, "stderr": 20_000, "noise": 900}
"""What makes lines for the log, and how much of it."""


async def measure(directory: Path) -> list[Stall]:
    """Bring about what only waiting could end, and return the longest stall of each."""
    servers = {"bad": faulty(callTimeout=20), "good": faulty()}
    async with in_process(directory, servers) as running:
        await ready(running.upstream)
        await running.client.call("good__echo", text="x")
        running.probe.forget()
        with unread_log(running):
            for kind, size in FLOODS.items():
                await running.client.call("bad__fault", kind=kind, size=size)
                await settle(running, f"unread log, {kind} {size}")
        for name, make in FILES.items():
            await reload(running, directory, name, make)
        return running.stalls


async def settle(running: Running, what: str) -> None:
    """Note the longest stall since the last, with what follows from it."""
    await running.client.call("good__echo", text="x")
    await running.probe.beats(FOLLOWING)
    running.note(what)


@contextmanager
def unread_log(running: Running) -> Generator[None, None, None]:
    """Have everything logged to a pipe that is full and that nobody reads."""
    output, written = os.pipe()
    os.set_blocking(written, False)
    while _takes(written):
        pass
    os.set_blocking(written, True)
    writer = StderrWriter(written)
    writer.never_wait()
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    with os.fdopen(written, "w", encoding="utf-8", closefd=False) as plain:
        config = running.upstream.fleet.now.config
        set_up_logging(config, 2, "text", never_blocking(plain, writer))
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    # Its thread may be writing for as long as the pipe is there.
    os.close(output)


def _takes(pipe: int) -> bool:
    try:
        return os.write(pipe, b"x" * 4096) > 0
    except BlockingIOError:
        return False


async def reload(
    running: Running, directory: Path, name: str, make: Callable[[Path], None]
) -> None:
    """Read the configuration again when it, or a file that it names, is no file."""
    path, kept = directory / "servers.yaml", directory / "kept"
    path.rename(kept)
    make(path)
    Reloading(running.upstream.fleet, os.environ).reload()
    await settle(running, f"configuration: {name}")
    path.unlink()
    variables = directory / "variables"
    make(variables)
    path.write_text("servers: {one: {command: x, enabled: false, envFile: variables}}\n")
    Reloading(running.upstream.fleet, os.environ).reload()
    kept.rename(path)
    variables.unlink()
    Reloading(running.upstream.fleet, os.environ).reload()
    await ready(running.upstream)
    await settle(running, f"env file: {name}")


FILES: dict[str, Callable[[Path], None]] = {
    "a pipe": os.mkfifo,
    "/dev/zero": lambda path: path.symlink_to("/dev/zero"),
}
