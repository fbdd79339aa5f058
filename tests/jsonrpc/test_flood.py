"""Chatter is read as it comes, a flood is slowed down, and one that does not let up is ended."""

import os
from collections.abc import Generator
from contextlib import contextmanager

import anyio
import anyio.lowlevel
import pytest
from mcp_types import JSONRPCNotification

from aggregator.jsonrpc.decoding import Noise
from aggregator.jsonrpc.flood import (
    AFFORDED,
    AT_ONCE,
    BROKEN_COST,
    LASTING,
    LINE_COST,
    Flood,
)
from aggregator.jsonrpc.pipes import MessageReader

MESSAGE = b'{"jsonrpc": "2.0", "method": "hello"}\n'


def test_chatter_is_no_flood_however_long_it_goes_on() -> None:
    flood = Flood()

    assert not any(flood.pause(AFFORDED // 2, second) for second in range(10_000))
    assert not flood.is_lasting


def test_much_at_once_is_no_flood() -> None:
    flood = Flood()

    assert flood.pause(AT_ONCE, 0.0) == 0
    assert flood.pause(0, 1000.0) == 0
    assert not flood.is_lasting


def test_what_is_too_much_waits_for_as_long_as_it_takes_to_be_afforded() -> None:
    flood = Flood()

    assert flood.pause(AT_ONCE + 2 * AFFORDED, 0.0) == 2
    assert flood.pause(AFFORDED, 2.0) == 1


def test_a_flood_that_ebbs_away_begins_anew() -> None:
    flood = Flood()
    now = 0.0
    for _ in range(3):
        flood.pause(AT_ONCE, now)
        while now % 100 < LASTING - 1:
            now += 1
            flood.pause(AFFORDED + 1, now)
        now += 100 - now % 100

    assert not flood.is_lasting


def test_a_flood_that_does_not_let_up_is_lasting() -> None:
    flood = Flood()
    now = 0.0
    while not flood.is_lasting:
        now += flood.pause(AFFORDED, now)

    assert LASTING <= now <= LASTING + 1


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


class Pipe:
    """A pipe with a reader at one end, and somebody who writes at the other."""

    def __init__(self, reading: int, writing: int, limit: int) -> None:
        self._writing = writing
        self.noise = 0
        self.written = 0
        self.reader = MessageReader(
            reading, limit, on_noise=self._count, on_end=anyio.lowlevel.checkpoint, flood=Flood()
        )

    def _count(self, _noise: Noise) -> None:
        self.noise += 1

    async def write(self, data: bytes, times: int) -> None:
        """Write the same over and over, as fast as it is read."""
        for _ in range(times):
            rest = memoryview(data)
            while rest:
                await anyio.wait_writable(self._writing)
                size = os.write(self._writing, rest)
                self.written += size
                rest = rest[size:]


@contextmanager
def piped(limit: int = 1 << 20) -> Generator[Pipe, None, None]:
    reading, writing = os.pipe()
    for end in (reading, writing):
        os.set_blocking(end, False)
    pipe = Pipe(reading, writing, limit)
    try:
        yield pipe
    finally:
        pipe.reader.end()
        os.close(reading)
        os.close(writing)


@pytest.mark.anyio
async def test_a_message_behind_a_hundred_thousand_lines_is_read_at_once() -> None:
    began, message = anyio.current_time(), None

    async def chat() -> None:
        await pipe.write(b"Loading ... 50 %\n" * 1000 + b"\n", 100)
        await pipe.write(MESSAGE, 1)

    with piped() as pipe:
        async with anyio.create_task_group() as group:
            group.start_soon(chat)
            message = await pipe.reader.read()

    assert pipe.noise == 100_000
    assert isinstance(message, JSONRPCNotification)
    assert anyio.current_time() == began


@pytest.mark.no_cover
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("line", "most"),
    [
        # So many bytes are read of each at the most: lines cost more than their bytes.
        (b"y\n" * 32_768, 2 * (AT_ONCE + 20 * AFFORDED) // LINE_COST),
        (b"x" * 65_535 + b"\n", AT_ONCE + 20 * AFFORDED),
        (b"{" * 1023 + b"\n", (AT_ONCE + 20 * AFFORDED) // BROKEN_COST),
        (b"\n" * 65_536, AT_ONCE + 20 * AFFORDED),
    ],
    ids=["short lines", "long lines", "broken messages", "blank lines"],
)
async def test_endless_noise_is_read_slowly_and_then_no_more(line: bytes, most: int) -> None:
    began = anyio.current_time()

    with piped() as pipe:
        async with anyio.create_task_group() as group:
            group.start_soon(pipe.write, line, 1_000_000)
            with pytest.raises(anyio.EndOfStream):
                await pipe.reader.read()
            group.cancel_scope.cancel()

    assert pipe.reader.is_flooded
    assert LASTING <= anyio.current_time() - began <= LASTING + 10
    assert pipe.written <= most


@pytest.mark.anyio
async def test_a_line_without_an_end_is_a_flood(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aggregator.jsonrpc.pipes.ENDLESS_BYTES", 1 << 20)

    with piped(1024) as pipe:
        async with anyio.create_task_group() as group:
            group.start_soon(pipe.write, b"x" * 65_536, 1_000_000)
            with pytest.raises(anyio.EndOfStream):
                await pipe.reader.read()
            group.cancel_scope.cancel()

    assert pipe.reader.is_flooded
