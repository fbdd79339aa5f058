"""What writes to a pipe ends with it; what reads may be interrupted and loses nothing."""

import os
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from mcp_types import JSONRPCNotification

from aggregator.jsonrpc.pipes import MessageReader, MessageWriter
from tests.patience import PATIENCE

pytestmark = pytest.mark.anyio

LARGE = JSONRPCNotification(jsonrpc="2.0", method="x", params={"text": "x" * 1_000_000})


async def test_a_writer_ends_when_nobody_reads_what_a_full_pipe_holds() -> None:
    read, write = os.pipe()
    os.set_blocking(write, False)
    with os.fdopen(write, "wb", buffering=0) as pipe, anyio.fail_after(PATIENCE):
        writer = MessageWriter(pipe)
        writer.put(LARGE)
        async with anyio.create_task_group() as group:
            group.start_soon(writer.run)
            await anyio.wait_all_tasks_blocked()
            os.close(read)

        assert writer.broken.is_set()


async def nothing() -> None:
    """Do what is to be done at the end."""


@pytest.mark.parametrize("turns", range(0, 40, 3))
async def test_a_reader_that_is_interrupted_at_any_time_reads_on(
    tmp_path: Path, turns: int
) -> None:
    path = tmp_path / "input"
    numbers = b"1.5," * 300_000 + b"0"
    path.write_bytes(b'{"jsonrpc":"2.0","method":"x","params":{"a":[' + numbers + b"]}}\n")

    async def interrupt(scope: anyio.CancelScope) -> None:
        for _ in range(turns):
            await anyio.lowlevel.checkpoint()
        scope.cancel()

    came = list[object]()
    with path.open("rb") as file:
        reader = MessageReader(file.fileno(), 16 << 20, on_noise=came.append, on_end=nothing)
        async with anyio.create_task_group() as group:
            with anyio.CancelScope() as scope:
                group.start_soon(interrupt, scope)
                came.append(await reader.read())
        if not came:
            came.append(await reader.read())
        await reader.aclose()

    [message] = came
    assert isinstance(message, JSONRPCNotification)
    assert len((message.params or {})["a"]) == 300_001
