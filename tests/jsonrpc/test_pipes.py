"""What writes to a pipe ends with it."""

import os

import anyio
import pytest
from mcp_types import JSONRPCNotification

from aggregator.jsonrpc.pipes import MessageWriter

pytestmark = pytest.mark.anyio

LARGE = JSONRPCNotification(jsonrpc="2.0", method="x", params={"text": "x" * 1_000_000})


async def test_a_writer_ends_when_nobody_reads_what_a_full_pipe_holds() -> None:
    read, write = os.pipe()
    os.set_blocking(write, False)
    with os.fdopen(write, "wb", buffering=0) as pipe, anyio.fail_after(5):
        writer = MessageWriter(pipe)
        writer.put(LARGE)
        async with anyio.create_task_group() as group:
            group.start_soon(writer.run)
            await anyio.wait_all_tasks_blocked()
            os.close(read)

        assert writer.broken.is_set()
