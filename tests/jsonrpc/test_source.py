"""Bytes are read as they come, on either kind of event loop."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from aggregator.jsonrpc.source import CHUNK_BYTES, Source

pytestmark = pytest.mark.anyio

Pipe = tuple[int, int]


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    yield reading, writing
    os.close(reading)
    with suppress(OSError):
        os.close(writing)


async def read(source: Source, size: int) -> bytes:
    """Read so many bytes, in as many chunks as they come in."""
    found = b""
    while len(found) < size:
        found += await source.read()
        await anyio.lowlevel.checkpoint()
    return found


async def write(descriptor: int, *parts: bytes) -> None:
    """Write to somebody who is already waiting."""
    for part in parts:
        await anyio.wait_all_tasks_blocked()
        os.write(descriptor, part)


async def test_what_came_before_and_what_comes_later_is_read_in_order(pipe: Pipe):
    reading, writing = pipe
    source = Source(reading)
    os.write(writing, b"before ")
    async with anyio.create_task_group() as group:
        group.start_soon(write, writing, b"first ", b"second ", b"third")
        assert await read(source, 25) == b"before first second third"
    source.close()


async def test_bytes_wait_for_whoever_takes_his_time(pipe: Pipe):
    reading, writing = pipe
    source = Source(reading)
    async with anyio.create_task_group() as group:
        group.start_soon(write, writing, b"x")
        assert await source.read() == b"x"
    os.write(writing, b"y" * CHUNK_BYTES)
    for _ in range(10):
        await anyio.lowlevel.checkpoint()
    assert await read(source, CHUNK_BYTES) == b"y" * CHUNK_BYTES
    async with anyio.create_task_group() as group:
        group.start_soon(write, writing, b"z")
        assert await source.read() == b"z"
    source.close()


async def test_a_read_that_is_cancelled_loses_nothing(pipe: Pipe):
    reading, writing = pipe
    source = Source(reading)
    for _ in range(2):
        async with anyio.create_task_group() as group:
            group.start_soon(source.read)
            await anyio.wait_all_tasks_blocked()
            os.write(writing, b"kept")
            group.cancel_scope.cancel()
        assert await source.read() == b"kept"
    source.close()


async def test_the_end_is_told_as_often_as_it_is_asked_for(pipe: Pipe):
    reading, writing = pipe
    source = Source(reading)

    async def end() -> None:
        await anyio.wait_all_tasks_blocked()
        os.close(writing)

    async with anyio.create_task_group() as group:
        group.start_soon(end)
        assert await source.read() == b""
    assert await source.read() == b""
    source.close()


async def test_whoever_waits_is_told_that_the_source_was_closed(pipe: Pipe):
    source = Source(pipe[0])

    async def close() -> None:
        await anyio.wait_all_tasks_blocked()
        source.close()
        source.close()

    async with anyio.create_task_group() as group:
        group.start_soon(close)
        with pytest.raises(anyio.ClosedResourceError):
            await source.read()
    with pytest.raises(anyio.ClosedResourceError):
        await source.read()


async def test_a_file_is_read_to_its_end(tmp_path: Path):
    path = tmp_path / "file"
    path.write_bytes(b"x" * (CHUNK_BYTES + 1))
    with path.open("rb") as file:
        source = Source(file.fileno())
        assert await read(source, CHUNK_BYTES + 1) == path.read_bytes()
        assert await source.read() == b""
        source.close()


async def test_a_descriptor_that_cannot_be_read_is_at_its_end(pipe: Pipe):
    source = Source(pipe[1])
    assert await source.read() == b""
    source.close()
