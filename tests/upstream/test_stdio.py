"""Our own standard streams, on pipes in place of them."""

import json
import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
from anyio import wait_all_tasks_blocked
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from aggregator.upstream.stdio import (
    DEAF_AFTER,
    MAX_UNREAD,
    ClientReader,
    ClientWriter,
    claimed,
    standard_streams,
)
from tests.patience import PATIENCE

pytestmark = pytest.mark.anyio

TURNS = 50
"""Turns of the loop by which what has come is read."""

INITIALIZE: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}
DISCOVER: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "server/discover",
    "params": {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}},
}


class Client:
    """The other ends of the pipes."""

    def __init__(self, reader: ClientReader, writer: ClientWriter, stop: anyio.Event) -> None:
        self.reader, self.writer, self.stop = reader, writer, stop
        self.write_end = self.read_end = -1

    def write(self, *messages: Any) -> None:
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps(message).encode()
            os.write(self.write_end, line + b"\n")

    def end_input(self) -> None:
        os.close(self.write_end)
        self.write_end = -1

    def end_output(self) -> None:
        os.close(self.read_end)
        self.read_end = -1

    def read(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in os.read(self.read_end, 1 << 20).splitlines()]


@asynccontextmanager
async def connected() -> AsyncGenerator[Client, None]:
    stdin, write_end = os.pipe()
    read_end, stdout = os.pipe()
    stop = anyio.Event()
    try:
        async with standard_streams(stdin, stdout, stop=stop) as (reader, writer):
            client = Client(reader, writer, stop)
            client.write_end, client.read_end = write_end, read_end
            yield client
        for descriptor in {client.write_end, client.read_end} - {-1}:
            os.close(descriptor)
    finally:
        for descriptor in (stdin, stdout):
            os.close(descriptor)


async def received(client: Client) -> Any:
    item = await client.reader.receive()
    assert isinstance(item, SessionMessage)
    return item.message


@pytest.mark.parametrize(
    ("lines", "modern"),
    [
        ([INITIALIZE], False),
        ([DISCOVER], True),
        ([{"jsonrpc": "2.0", "method": "notifications/x"}, DISCOVER], True),
        ([{"jsonrpc": "2.0", "id": 1, "method": "ping"}], False),
    ],
)
async def test_the_first_request_tells_the_era_and_is_not_lost(lines: Any, modern: bool) -> None:
    async with connected() as client:
        client.write(*lines)
        told = await client.reader.opens_modern()
        first = await received(client)

    assert told is modern
    assert first.method == lines[0]["method"]


async def test_a_client_that_leaves_before_it_asks_is_no_error() -> None:
    async with connected() as client:
        client.end_input()

        assert not await client.reader.opens_modern()
        with pytest.raises(anyio.EndOfStream):
            await client.reader.receive()


async def until_the_end(client: Client) -> None:
    with pytest.raises(anyio.EndOfStream):
        await client.reader.receive()


async def test_input_that_ended_ends_the_stream_only_when_all_is_answered() -> None:
    async with connected() as client:
        client.write(INITIALIZE)
        client.end_input()
        request = await received(client)
        ended = client.reader.ended
        early = True

        async with anyio.create_task_group() as group:
            group.start_soon(until_the_end, client)
            # Not until all are blocked: one looks from time to time whether the client is there.
            for _ in range(TURNS):
                await anyio.lowlevel.checkpoint()
            early = ended.is_set()
            answer = JSONRPCResponse(jsonrpc="2.0", id=request.id, result={})
            await client.writer.send(SessionMessage(answer))
            with anyio.fail_after(PATIENCE):
                await ended.wait()
        written = client.read()

    assert isinstance(request, JSONRPCRequest)
    assert not early
    assert written == [{"jsonrpc": "2.0", "id": 1, "result": {}}]


async def test_a_request_that_was_taken_back_is_not_waited_for() -> None:
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}

    async with connected() as client:
        client.write(INITIALIZE, cancel)
        await received(client)
        await received(client)
        client.stop.set()
        with anyio.fail_after(PATIENCE), pytest.raises(anyio.EndOfStream):
            await client.reader.receive()


NEWS = {"jsonrpc": "2.0", "method": "notifications/x"}


def ping(number: int) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": "ping"}


async def test_from_the_order_to_stop_on_no_request_is_taken_but_all_else_is() -> None:
    async with connected() as client:
        client.write(INITIALIZE)
        await received(client)
        client.stop.set()
        await wait_all_tasks_blocked()
        client.write(ping(2), {"jsonrpc": "2.0", "id": 9, "result": {}})
        assert isinstance(await received(client), JSONRPCResponse)
        (declined,) = client.read()
        await client.writer.send(SessionMessage(JSONRPCResponse(jsonrpc="2.0", id=1, result={})))

    assert declined["id"] == 2
    assert "We are shutting down" in declined["error"]["message"]


@pytest.mark.parametrize("numbers", [range(MAX_UNREAD), [7] * MAX_UNREAD])
async def test_a_client_that_reads_no_answers_cannot_ask_without_end(
    numbers: Sequence[int],
) -> None:
    async with connected() as client:
        while not client.writer.is_full:
            client.writer.put(JSONRPCResponse(jsonrpc="2.0", id=0, result={"x": "y" * 1000}))
        for number in numbers:
            client.write(ping(number))
            assert (await received(client)).id == number
        client.write(ping(MAX_UNREAD), NEWS)
        assert (await received(client)).method == "notifications/x"
        written = b""
        with anyio.fail_after(PATIENCE):
            while b"read some of the answers" not in written:
                written += await anyio.to_thread.run_sync(os.read, client.read_end, 1 << 20)
        while client.writer.is_full:
            await anyio.lowlevel.checkpoint()
        client.write(ping(MAX_UNREAD + 1))
        later = await received(client)
        client.stop.set()

    assert later.id == MAX_UNREAD + 1


class TestDeaf:
    """Clients that do not read, or cannot, on a clock that does not wait for them."""

    @pytest.fixture
    def anyio_backend(self, virtual_time: object) -> object:
        return virtual_time

    async def test_who_reads_nothing_is_not_waited_for_when_we_are_told_to_stop(self) -> None:
        async with connected() as client:
            client.write(ping(1))
            await received(client)
            while not client.writer.is_full:
                client.writer.put(JSONRPCResponse(jsonrpc="2.0", id=0, result={"x": "y" * 1000}))
            await anyio.sleep(DEAF_AFTER)
            began = anyio.current_time()
            client.stop.set()
            with pytest.raises(anyio.EndOfStream):
                await client.reader.receive()

        assert anyio.current_time() - began < 0.1

    async def test_who_has_gone_is_not_waited_for(self) -> None:
        async with connected() as client:
            client.write(ping(1))
            await received(client)
            began = anyio.current_time()
            client.end_input()
            client.end_output()
            with pytest.raises(anyio.EndOfStream):
                await client.reader.receive()

        assert anyio.current_time() - began < 0.1

    async def test_who_goes_while_an_answer_is_waited_for_is_not_waited_for(self) -> None:
        began = anyio.current_time()
        async with connected() as client, anyio.create_task_group() as group:
            client.write(ping(1))
            await received(client)
            client.end_input()
            group.start_soon(until_the_end, client)
            await anyio.sleep(1)
            assert not client.reader.ended.is_set()
            client.end_output()
            await client.reader.ended.wait()

        assert 1 <= anyio.current_time() - began < 1.2

    async def test_who_reads_slowly_is_waited_for_when_we_are_told_to_stop(self) -> None:
        async with connected() as client:
            client.write(ping(1))
            await received(client)
            while not client.writer.is_full:
                client.writer.put(JSONRPCResponse(jsonrpc="2.0", id=0, result={"x": "y" * 1000}))
            client.stop.set()
            for _ in range(4):
                await anyio.sleep(DEAF_AFTER * 0.9)
                assert not client.reader.ended.is_set()
                os.read(client.read_end, 1 << 13)
            await anyio.sleep(DEAF_AFTER * 2)
            assert client.reader.ended.is_set()


async def test_an_unreadable_line_is_answered() -> None:
    async with connected() as client:
        client.write(b"nonsense", INITIALIZE)
        request = await received(client)
        (complaint,) = client.read()

    assert request.method == "initialize"
    assert complaint["error"]["code"] == -32700


async def test_what_a_slow_client_has_not_read_is_written_in_the_end() -> None:
    text = "x" * 300_000
    note = JSONRPCNotification(jsonrpc="2.0", method="n", params={"text": text})
    seen = b""

    async with connected() as client:
        await client.writer.send(SessionMessage(note))

        async def read() -> None:
            nonlocal seen
            while not seen.endswith(b"\n"):
                seen += await anyio.to_thread.run_sync(os.read, client.read_end, 65536)

        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as group:
                group.start_soon(read)
                await client.writer.flush()

    assert json.loads(seen)["params"]["text"] == text


def test_what_is_printed_elsewhere_does_not_reach_the_client() -> None:
    before = (os.fstat(0).st_ino, os.fstat(1).st_ino)
    with claimed() as (stdin, stdout):
        assert os.read(0, 1) == b""
        assert os.fstat(1).st_ino == os.fstat(2).st_ino
        assert (os.fstat(stdin).st_ino, os.fstat(stdout).st_ino) == before

    assert (os.fstat(0).st_ino, os.fstat(1).st_ino) == before
