"""A stderr that nobody reads, as many clients give us, holds up nothing at all."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import anyio.abc
import pytest

from tests.processes.driver import PATIENCE, ROOT, Aggregator, faulty, texts

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

TRACEBACKS = 50
SERVERS = ("one", "two", "three")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    output, written = os.pipe()
    yield output, written
    os.close(output)
    os.close(written)


@pytest.fixture
def full(pipe: tuple[int, int]) -> int:
    """Return a pipe that takes nothing more."""
    fill(pipe[1])
    return pipe[1]


def fill(pipe: int) -> None:
    os.set_blocking(pipe, False)
    try:
        while True:
            os.write(pipe, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(pipe, True)


def command(directory: Path, *options: str) -> list[str]:
    path = directory / "servers.yaml"
    servers = {name: faulty() for name in SERVERS}
    path.write_text(json.dumps({"servers": servers, "state": False}), encoding="utf-8")
    return [sys.executable, "-m", "aggregator", *options, "--config", str(path)]


async def started(command: list[str], stderr: int) -> anyio.abc.Process:
    # The token would be made in the home of whoever runs the tests.
    environment = {**os.environ, "AGGREGATOR_TOKEN": "t" * 40}
    return await anyio.open_process(command, cwd=ROOT, stderr=stderr, env=environment)


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_over_stdio_every_call_is_answered_and_the_end_comes(
    tmp_path: Path, full: int, era: str
) -> None:
    async with await started(command(tmp_path, "serve", "-vv"), full) as process:
        client = Aggregator(process, era)
        await client.open()
        for name in SERVERS:
            said = await client.call(f"{name}__fault", kind="odd_notices", size=TRACEBACKS)
            assert texts(said) == "after what was odd"
            said = await client.call(f"{name}__fault", kind="stderr", size=10_000)
            assert texts(said) == "after the flood"
        await client.end_input()

        assert await client.ended() == 0


async def test_over_http_sigterm_is_heeded(tmp_path: Path, pipe: tuple[int, int]) -> None:
    output, stderr = pipe
    async with await started(command(tmp_path, "serve", "-vv", "--http", "0"), stderr) as process:
        said = b""
        with anyio.fail_after(PATIENCE):
            while b"token in" not in said:
                await anyio.wait_readable(output)
                said += os.read(output, 4096)
        fill(stderr)
        process.send_signal(signal.SIGTERM)

        with anyio.fail_after(PATIENCE):
            assert await process.wait() == 0


def test_a_command_says_its_result_all_the_same(tmp_path: Path, full: int) -> None:
    ended = subprocess.run(
        command(tmp_path, "inspect"),
        cwd=ROOT, stdout=subprocess.PIPE, stderr=full, timeout=60, check=False,
    )  # fmt: skip

    assert ended.returncode == 0
    assert all(name in ended.stdout.decode() for name in SERVERS)
