"""Where a response on a connection of our own ends, and what comes of one that does not."""

from collections import Counter
from collections.abc import AsyncGenerator

import anyio
import anyio.lowlevel
import httpx2
import pytest

from aggregator.downstream.http.address import Address
from aggregator.downstream.http.connection import (
    GATHERED,
    PIECES_AT_ONCE,
    READ_BYTES,
    Connection,
)
from aggregator.downstream.http.endpoint import Endpoint, open_endpoint
from aggregator.downstream.http.form import Form
from aggregator.downstream.http.reading import MAX_HEAD_BYTES
from aggregator.downstream.transport import UndeliveredError
from tests.downstream.http.test_wire import HEADERS, OK, Visit, bare, post
from tests.patience import PATIENCE
from tests.work import counting

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("said", "body"),
    [
        (b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + OK, b"{}"),
        (b"HTTP/1.0 200 OK\r\n\r\nuntil the end", b"until the end"),
        (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n1\r\n \r\n0\r\n\r\n",
            b"{} ",
        ),
        (b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}", b"{}"),
    ],
)
async def test_a_body_ends_where_its_head_says(said: bytes, body: bytes) -> None:
    async def answer(visit: Visit) -> None:
        await visit.read()
        await visit.say(said)

    async with bare(answer) as server, open_endpoint(Address(server.url)) as endpoint:
        assert await post(endpoint) == (200, body)


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 200 OK\r\nx: " + b"x" * (MAX_HEAD_BYTES + 1),
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}",
    ],
)
async def test_what_is_no_response_is_a_fault_that_may_have_run(said: bytes) -> None:
    async def answer(visit: Visit) -> None:
        await visit.read()
        await visit.say(said)

    async with bare(answer) as server, open_endpoint(Address(server.url)) as endpoint:
        with pytest.raises(UndeliveredError) as caught:
            await post(endpoint)

    assert caught.value.undelivered.may_have_run
    assert len(server.visits) == 1


def said(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


FULL = READ_BYTES - len(said(b"")) - len(str(READ_BYTES)) + 1
"""Bytes of a body that is read to its end with the last byte that is wanted at once."""


@pytest.mark.parametrize("first", [said(b"1"), said(b"1" * FULL)], ids=["short", "full"])
@pytest.mark.parametrize("more", [said(b"planted"), b"rest"], ids=["answer", "rubbish"])
async def test_what_comes_behind_a_response_is_not_read_as_the_next(
    first: bytes, more: bytes
) -> None:
    async def answer(visit: Visit) -> None:
        await visit.read()
        await visit.say(first + more if visit.number == 0 else said(b"2"))
        await visit.end()

    async with bare(answer) as server, open_endpoint(Address(server.url)) as endpoint:
        await post(endpoint)
        assert await post(endpoint) == (200, b"2")
        assert len(server.visits) == 2


async def test_a_body_in_many_pieces_lets_others_have_their_turn() -> None:
    async def answer(visit: Visit) -> None:
        await visit.read()
        pieces = b"1\r\nx\r\n" * 5000
        await visit.say(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        await visit.say(pieces + b"0\r\n\r\n")
        await visit.end()

    turn = 0

    async def take_turns() -> None:
        nonlocal turn
        while True:
            await anyio.lowlevel.checkpoint()
            turn += 1

    pieces = Counter[int]()
    async with (
        bare(answer) as server,
        open_endpoint(Address(server.url)) as endpoint,
        anyio.create_task_group() as group,
        endpoint.send("POST", HEADERS, b"{}") as response,
    ):
        group.start_soon(take_turns)
        async for piece in response.aiter_raw():
            pieces[turn] += len(piece)
        group.cancel_scope.cancel()

    assert pieces.total() == 5000
    assert max(pieces.values()) <= 2 * PIECES_AT_ONCE


async def test_no_more_of_what_nobody_reads_is_skipped_than_others_can_wait_for() -> None:
    async def answer(visit: Visit) -> None:
        await visit.read()
        await visit.say(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        await visit.say(b"1\r\nx\r\n" * 5000)
        await visit.end()

    async with (
        bare(answer) as server,
        open_endpoint(Address(server.url)) as endpoint,
        endpoint.send("POST", HEADERS, b"{}") as response,
    ):
        pieces = response.aiter_raw()
        await anext(pieces)
        with counting() as tally:
            await response.aclose()
        assert tally.calls < 20 * PIECES_AT_ONCE


class Crumbs:
    """A stream of which all has come, and is read by the HTTP client chunk by chunk."""

    status_code, is_success, headers = 200, True, dict[str, str]()

    async def aiter_raw(self) -> AsyncGenerator[bytes, None]:
        for _ in range(5000):
            yield b"data: x\n\n"

    async def aclose(self) -> None:
        return


async def test_a_stream_in_many_pieces_lets_others_have_their_turn() -> None:
    turn, events = 0, Counter[int]()

    async def take_turns() -> None:
        nonlocal turn
        while True:
            await anyio.lowlevel.checkpoint()
            turn += 1

    async with open_endpoint(Address("http://127.0.0.1:1/mcp")) as endpoint:
        async with anyio.create_task_group() as group:
            group.start_soon(take_turns)
            async for _ in endpoint.events(Crumbs()):
                events[turn] += 1
            group.cancel_scope.cancel()

    assert events.total() == 5000
    assert max(events.values()) <= 2 * PIECES_AT_ONCE


@pytest.mark.parametrize("coding", [b"chunked", b"Chunked"], ids=["usual", "by h11"])
async def test_tiny_pieces_are_gathered_up_to_what_is_wrong_behind_them(coding: bytes) -> None:
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: %b\r\n\r\n" % coding

    async def answer(visit: Visit) -> None:
        await visit.read()
        await visit.say(head + b"2\r\nxy\r\n" * 1010 + b"wrong\r\n")
        await visit.end()

    pieces: list[bytes] = []

    async def collect(endpoint: Endpoint) -> None:
        async with endpoint.send("POST", HEADERS, b"{}") as response:
            async for piece in response.aiter_raw():
                pieces.append(piece)  # noqa: PERF401 - what came before the fault counts

    async with bare(answer) as server, open_endpoint(Address(server.url)) as endpoint:
        with pytest.raises(UndeliveredError):
            await collect(endpoint)

    assert b"".join(pieces) == b"xy" * 1010
    assert len(pieces) <= 2 + 1010 // GATHERED


async def test_what_was_left_in_single_bytes_is_read_in_one_piece() -> None:
    async def wait(visit: Visit) -> None:
        await visit.end()

    async with bare(wait) as server:
        url = httpx2.URL(server.url)
        connection = Connection(await anyio.connect_tcp(url.host, url.port or 0), PATIENCE)
        connection.leave_ahead([*(bytes((each,)) for each in OK), b""])
        head = await connection.answer(Form(httpx2.Request("POST", url)).event)
        pieces = [piece async for piece in connection.body()]
        await connection.close()

    assert head.status == 200
    assert pieces == [b"{}"]
