"""Requests on connections of our own: kept, written at once, and never written twice."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import anyio
import anyio.abc
import anyio.to_thread
import pytest
from mcp_types import JSONRPCMessage, JSONRPCRequest

from aggregator.downstream.http.address import Address
from aggregator.downstream.http.connection import READ_BYTES
from aggregator.downstream.http.cookies import MAX_COOKIES
from aggregator.downstream.http.endpoint import Endpoint, open_endpoint
from aggregator.downstream.http.post import Post
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
