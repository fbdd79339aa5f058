"""Requests on connections of our own: kept, written at once, and never written twice."""

from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import anyio
import anyio.abc
import anyio.lowlevel
import anyio.to_thread
import pytest
from mcp_types import JSONRPCMessage, JSONRPCRequest

from aggregator.downstream.http.address import Address
from aggregator.downstream.http.endpoint import MAX_COOKIES, Endpoint, open_endpoint
from aggregator.downstream.http.post import Post
from aggregator.downstream.http.reading import MAX_HEAD_BYTES
from aggregator.downstream.http.wire import GATHERED, PIECES_AT_ONCE, READ_BYTES
from aggregator.downstream.transport import UndeliveredError
from tests.loopback.web import listening
from tests.patience import PATIENCE

pytestmark = pytest.mark.anyio

HEADERS = {"accept": "application/json", "content-type": "application/json"}
OK = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"

Script = Callable[["Visit"], Awaitable[None]]


class Visit:
    """One connection to the server, as it sees it."""

    def __init__(self, stream: anyio.abc.SocketStream, number: int) -> None:
        self._stream = stream
        self.number = number
        self.pieces: list[bytes] = []

    async def read(self) -> bytes:
        """Read what comes at once."""
        piece = await self._stream.receive()
        self.pieces.append(piece)
        return piece

    async def end(self) -> None:
        """Read until the other side has closed."""
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
            while True:
                await self._stream.receive()

    async def say(self, answer: bytes) -> None:
        await self._stream.send(answer)


class Bare:
    """A server that does what it is told to with each connection."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.visits: list[Visit] = []
        self.left = anyio.Event()
        """Set when the first connection has been closed by the script."""


@asynccontextmanager
async def bare(script: Script) -> AsyncGenerator[Bare, None]:
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)  # noqa: S610 - not Django
    server = Bare(f"http://127.0.0.1:{port}/mcp")

    async def meet(stream: anyio.abc.SocketStream) -> None:
        visit = Visit(stream, len(server.visits))
        server.visits.append(visit)
        async with stream:
            await script(visit)
        server.left.set()

    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, meet)
        with anyio.fail_after(PATIENCE):
            yield server
        group.cancel_scope.cancel()


async def post(endpoint: Endpoint, content: bytes = b"{}") -> tuple[int, bytes]:
    async with endpoint.send("POST", HEADERS, content) as response:
        return response.status_code, await endpoint.read(response)


async def test_requests_one_after_another_share_a_connection_and_are_one_write_each() -> None:
    async def answer(visit: Visit) -> None:
        for _ in range(3):
            await visit.read()
            await visit.say(OK)
        await visit.end()

    async with bare(answer) as server, open_endpoint(Address(server.url)) as endpoint:
        answers = [await post(endpoint, content) for content in (b"1", b"22", b"333")]

    assert answers == [(200, b"{}")] * 3
    assert len(server.visits) == 1
    assert [piece.rpartition(b"\r\n\r\n")[2] for piece in server.visits[0].pieces] == [
        b"1",
        b"22",
        b"333",
    ]


async def test_requests_at_the_same_time_have_a_connection_each() -> None:
    both = anyio.Event()

    async def answer(visit: Visit) -> None:
        await visit.read()
        if visit.number == 1:
            both.set()
        await both.wait()
        await visit.say(OK)
        await visit.end()

    async with bare(answer) as server, open_endpoint(Address(server.url)) as endpoint:
        async with anyio.create_task_group() as group:
            group.start_soon(post, endpoint)
            group.start_soon(post, endpoint)

    assert len(server.visits) == 2


async def test_a_kept_connection_that_has_been_closed_is_not_used() -> None:
    async def answer_once(visit: Visit) -> None:
        await visit.read()
        await visit.say(OK)

    async with bare(answer_once) as server, open_endpoint(Address(server.url)) as endpoint:
        first = await post(endpoint)
        await server.left.wait()
        second = await post(endpoint)

    assert (first, second) == ((200, b"{}"), (200, b"{}"))
    assert [len(visit.pieces) for visit in server.visits] == [1, 1]


async def test_what_was_written_to_a_connection_that_then_breaks_is_not_written_again() -> None:
    async def answer_first(visit: Visit) -> None:
        await visit.read()
        await visit.say(OK)
        await visit.read()

    async with bare(answer_first) as server, open_endpoint(Address(server.url)) as endpoint:
        await post(endpoint)
        with pytest.raises(UndeliveredError, match="broke before the answer") as caught:
            await post(endpoint, b"second")

    assert caught.value.undelivered.may_have_run
    assert len(server.visits) == 1
    assert [b"second" in piece for piece in server.visits[0].pieces] == [False, True]


async def test_a_stream_that_ends_after_its_answer_leaves_its_connection_for_the_next() -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked"
    event = b'data: {"jsonrpc":"2.0","id":1,"result":{}}\n\n'
    chunk = b"%x\r\n%b\r\n" % (len(event), event)
    heard: list[JSONRPCMessage] = []

    async def stream(visit: Visit) -> None:
        for _ in range(2):
            await visit.read()
            await visit.say(head + b"\r\n\r\n" + chunk)
            # Its end comes later than its answer, which need not wait for it.
            await anyio.wait_all_tasks_blocked()
            await visit.say(b"0\r\n\r\n")
        await visit.end()

    async with bare(stream) as server, open_endpoint(Address(server.url)) as endpoint:
        for _ in range(2):
            request = JSONRPCRequest(jsonrpc="2.0", id=1, method="ping")
            await Post(endpoint, request, heard.append).run(HEADERS)

    assert len(heard) == 2
    assert len(server.visits) == 1


async def test_what_needs_no_answer_leaves_its_connection_for_the_next() -> None:
    async def accept(visit: Visit) -> None:
        for _ in range(2):
            await visit.read()
            await visit.say(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")
        await visit.end()

    async with bare(accept) as server, open_endpoint(Address(server.url)) as endpoint:
        for _ in range(2):
            async with endpoint.send("POST", HEADERS, b"{}") as response:
                assert response.status_code == 202

    assert len(server.visits) == 1


async def test_a_response_that_is_left_unread_costs_its_connection() -> None:
    async def trickle(visit: Visit) -> None:
        await visit.read()
        await visit.say(OK[:-1])
        await visit.end()

    async with bare(trickle) as server, open_endpoint(Address(server.url)) as endpoint:
        async with endpoint.send("POST", HEADERS, b"{}") as response:
            assert response.status_code == 200
        await server.left.wait()

    assert len(server.visits) == 1


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


async def test_a_refusal_of_what_was_not_read_to_the_end_is_heard() -> None:
    async def refuse(visit: Visit) -> None:
        await visit.read()
        await visit.say(b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n")
        await visit.end()

    async with bare(refuse) as server, open_endpoint(Address(server.url)) as endpoint:
        status, _ = await post(endpoint, b" " * 8_000_000)

    assert status == 413


async def test_a_refusal_is_heard_though_the_rest_is_never_read_and_nothing_follows_it() -> None:
    over = anyio.Event()

    async def refuse(visit: Visit) -> None:
        await visit.read()
        if visit.number == 0:
            await visit.say(b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n")
            await over.wait()
        else:
            await visit.say(OK)
            await visit.end()

    async with bare(refuse) as server, open_endpoint(Address(server.url)) as endpoint:
        refused, _ = await post(endpoint, b" " * 16_000_000)
        answered, _ = await post(endpoint)
        over.set()

    assert (refused, answered) == (413, 200)
    # What was left of the first would have been read as the second.
    assert len(server.visits) == 2


async def test_what_is_said_meanwhile_does_not_end_a_long_request() -> None:
    body = b"0123456789abcdef" * 500_000

    async def take(visit: Visit) -> None:
        taken = await visit.read()
        await visit.say(b"HTTP/1.1 100 Continue\r\n\r\n")
        while len(taken.partition(b"\r\n\r\n")[2]) < len(body):
            taken += await visit.read()
        whole.append(taken.partition(b"\r\n\r\n")[2])
        await visit.say(OK)
        await visit.read()
        await visit.say(OK)
        await visit.end()

    whole: list[bytes] = []
    async with bare(take) as server, open_endpoint(Address(server.url)) as endpoint:
        answers = [await post(endpoint, body), await post(endpoint, b"{}")]

    assert answers == [(200, b"{}")] * 2
    assert whole == [body]
    assert len(server.visits) == 1


async def test_a_cookie_is_sent_back_for_gateways_that_route_by_it() -> None:
    async def answer(visit: Visit) -> None:
        await visit.read()
        await visit.say(OK.replace(b"content-type", b"set-cookie: at=two; Path=/\r\ncontent-type"))
        await visit.read()
        await visit.say(OK)
        await visit.end()

    async with bare(answer) as server, open_endpoint(Address(server.url)) as endpoint:
        await post(endpoint)
        await post(endpoint)

    assert [b"cookie: at=two" in piece.lower() for piece in server.visits[0].pieces] == [
        False,
        True,
    ]


async def test_a_header_that_would_end_before_its_time_is_not_sent() -> None:
    async def answer(visit: Visit) -> None:
        await visit.end()

    forged = {**HEADERS, "mcp-name": "x\r\nevil: yes"}
    async with bare(answer) as server, open_endpoint(Address(server.url)) as endpoint:
        with pytest.raises(UndeliveredError) as caught:
            async with endpoint.send("POST", forged, b"{}"):
                pass

    assert not caught.value.undelivered.may_have_run
    assert all(not visit.pieces for visit in server.visits)


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
async def test_a_header_that_is_no_ascii_is_a_fault_like_others(method: str) -> None:
    """The server itself may have said what it is to hear again."""

    async def answer(visit: Visit) -> None:
        await visit.end()

    headers = {**HEADERS, "mcp-session-id": "caf\u00e9"}
    content = b"{}" if method == "POST" else None
    async with bare(answer) as server, open_endpoint(Address(server.url)) as endpoint:
        with pytest.raises(UndeliveredError, match="a header cannot be sent") as caught:
            async with endpoint.send(method, headers, content):
                pass

    assert not caught.value.undelivered.may_have_run


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


async def test_a_request_may_have_run_though_its_stream_cannot_be_taken_up_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("aggregator.downstream.http.post.RECONNECT_FLOOR", 0)
    listener = listening()

    def break_off() -> None:
        with listener:
            connection, _ = listener.accept()
        with connection:
            connection.recv(READ_BYTES)
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
            connection.sendall(b"id: 7\ndata:\n\n")

    address = Address(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp")
    request = JSONRPCRequest(jsonrpc="2.0", id=1, method="tools/call", params={"name": "x"})
    async with open_endpoint(address) as endpoint, anyio.create_task_group() as group:
        group.start_soon(anyio.to_thread.run_sync, break_off)
        with pytest.raises(UndeliveredError, match="cannot be reached") as caught:
            await Post(endpoint, request, lambda _: None).run(HEADERS)

        assert caught.value.undelivered.may_have_run


async def test_cookies_without_end_are_not_all_sent_back() -> None:
    async def answer(visit: Visit) -> None:
        for number in range(4):
            await visit.read()
            lines = (b"set-cookie: c%d-%d=1\r\n" % (number, each) for each in range(50))
            head, _, body = OK.partition(b"\r\n\r\n")
            await visit.say(b"".join((head, b"\r\n", *lines, b"\r\n", body)))
        await visit.end()

    async with bare(answer) as server, open_endpoint(Address(server.url)) as endpoint:
        for _ in range(4):
            await post(endpoint)

    sent = [piece.count(b"=1") for piece in server.visits[0].pieces]
    assert sent[:2] == [0, 50]
    assert max(sent) <= MAX_COOKIES


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
