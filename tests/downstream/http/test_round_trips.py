"""Calls on kept connections that no task waits for, and all that is left to one."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from aggregator.config.values import MAX_MESSAGE_BYTES
from aggregator.downstream.http.address import Address
from aggregator.downstream.http.endpoint import open_endpoint
from aggregator.downstream.http.post import READING_OUT
from aggregator.downstream.http.streamable import Streamable, open_streamable
from aggregator.downstream.transport import Received, Related, Undelivered
from aggregator.jsonrpc.weight import UNWEIGHED_BYTES
from tests.downstream.http.test_wire import Script, Visit, bare
from tests.loops import LOOPS

pytestmark = pytest.mark.anyio

HANDSHAKE = {"mcp-protocol-version": "2025-11-25"}
STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"
ANSWER = b'{"jsonrpc":"2.0","id":7,"result":{"content":[]}}'
PROGRESS = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}'


@pytest.fixture(params=LOOPS)
# Elsewhere each call has its task.
def anyio_backend(request: pytest.FixtureRequest) -> object:
    return request.param


def whole(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", "content-type: application/json", *headers]
    return "\r\n".join((*lines, f"content-length: {len(body)}", "", "")).encode() + body


def event(data: bytes) -> bytes:
    said = b"event: message\r\ndata: " + data + b"\r\n\r\n"
    return b"%x\r\n%b\r\n" % (len(said), said)


class Calling:
    """Calls a tool, one call after another."""

    def __init__(self, transport: Streamable) -> None:
        self.transport = transport
        self.taken: list[Received] = []
        self.tasks = 0
        """Those that were running when something was taken last."""
        self._last = 0
        self._came = anyio.Event()

    def put(self, filling: str = "") -> bool:
        """Call; say whether that has begun no task."""
        self._last += 1
        params = {"name": "a", "arguments": {"filling": filling}}
        request = JSONRPCRequest(jsonrpc="2.0", id=self._last, method="tools/call", params=params)
        before = len(anyio.get_running_tasks())
        assert self.transport.put(request, HANDSHAKE, self._take)
        return len(anyio.get_running_tasks()) == before

    async def until_answered(self) -> Received:
        while not (self.taken and _is_last(self.taken[-1])):
            self._came = anyio.Event()
            await self._came.wait()
        answer = self.taken[-1]
        await anyio.wait_all_tasks_blocked()
        return answer

    def _take(self, item: Received) -> None:
        self.taken.append(item)
        self.tasks = len(anyio.get_running_tasks())
        self._came.set()


def _is_last(item: Received) -> bool:
    message = item.message if isinstance(item, Related) else item
    return isinstance(message, JSONRPCResponse | JSONRPCError | Undelivered)


def answered(number: int) -> Related:
    message = JSONRPCResponse(jsonrpc="2.0", id=number, result={"content": []})
    return Related(message, number)


@asynccontextmanager
async def calling(url: str, limit: int = MAX_MESSAGE_BYTES) -> AsyncGenerator[Calling, None]:
    address = Address(url, max_message_bytes=limit)
    async with open_endpoint(address) as endpoint, open_streamable(endpoint) as transport:
        assert isinstance(transport, Streamable)
        yield Calling(transport)


def after_one(response: bytes) -> Script:
    """Answer a first call, so that there is a connection, and the second with a response."""

    async def serve(visit: Visit) -> None:
        if visit.number == 0:
            await visit.read()
            await visit.say(whole(ANSWER))
            await visit.read()
            await visit.say(response)
        else:
            await visit.read()
            await visit.say(whole(ANSWER))
        await visit.end()

    return serve


async def twice(calls: Calling) -> Received:
    """Call once for a connection, then again on it, and return what the second is answered."""
    assert not calls.put()
    assert await calls.until_answered() == answered(1)
    calls.taken.clear()
    assert calls.put()
    return await calls.until_answered()


async def test_a_response_answers_the_request_that_it_is_a_response_to() -> None:
    async with bare(after_one(whole(ANSWER))) as server, calling(server.url) as calls:
        assert await twice(calls) == answered(2)


def numbered(number: object, *, is_stream: bool = False) -> bytes:
    """Return an answer that says which request it is for."""
    answer = ANSWER.replace(b'"id":7', f'"id":{json.dumps(number)}'.encode())
    return STREAM + event(answer) + END if is_stream else whole(answer)


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "events"])
async def test_a_second_answer_to_one_call_is_not_the_answer_to_the_next(
    *, is_stream: bool
) -> None:
    async def serve(visit: Visit) -> None:
        if visit.number == 0:
            for number in (1, 2, 3, 3):
                await visit.read()
                await visit.say(numbered(number, is_stream=is_stream))
        else:
            await visit.read()
            await visit.say(numbered(5, is_stream=is_stream))
        await visit.end()

    async with bare(serve) as server, calling(server.url) as calls:
        outcomes: list[Received] = []
        for _ in range(5):
            calls.taken.clear()
            calls.put()
            outcomes.append(await calls.until_answered())

    assert [each for each in outcomes if not isinstance(each, Undelivered)] == [
        answered(number) for number in (1, 2, 3, 5)
    ]
    assert isinstance(outcomes[3], Undelivered)
    assert outcomes[3].may_have_run
    assert "another request" in outcomes[3].reason
    assert [len(visit.pieces) for visit in server.visits] == [4, 1]


@pytest.mark.parametrize("ids", [(1, 1, 1, 1), ("1", "2", "3", "4"), (1, 2, "x", 4), (1, 2, 9, 4)])
async def test_servers_may_make_up_ids(ids: tuple[object, ...]) -> None:
    async def serve(visit: Visit) -> None:
        for number in ids:
            await visit.read()
            await visit.say(numbered(number))
        await visit.end()

    async with bare(serve) as server, calling(server.url) as calls:
        for number, _ in enumerate(ids, 1):
            calls.taken.clear()
            calls.put()
            assert await calls.until_answered() == answered(number)


@pytest.mark.parametrize(
    "response",
    [
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n" + ANSWER,
        whole(ANSWER.replace(b"[]", b"[]" + b" " * UNWEIGHED_BYTES)),
        whole(b"[" + ANSWER + b"]"),
        b"HTTP/1.1 100 Continue\r\n\r\n" + whole(ANSWER),
        whole(ANSWER, "201 Created"),
        whole(ANSWER, "200 OK", "set-cookie: a=b"),
    ],
    ids=["closing", "long", "a batch", "after another", "another status", "with a cookie"],
)
async def test_an_unusual_answer_is_read_by_a_task_from_its_first_byte_on(response: bytes) -> None:
    async def serve(visit: Visit) -> None:
        await visit.read()
        await visit.say(whole(ANSWER))
        await visit.read()
        await visit.say(response)
        if b"connection: close" not in response:
            await visit.end()

    async with bare(serve) as server, calling(server.url) as calls:
        assert await twice(calls) == answered(2)
        assert len(server.visits[0].pieces) == 2
    assert len(server.visits) == 1


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 9", STREAM])
async def test_a_call_whose_connection_ends_is_not_sent_again(said: bytes) -> None:
    async def serve(visit: Visit) -> None:
        await visit.read()
        await visit.say(whole(ANSWER))
        await visit.read()
        if said:
            await visit.say(said)

    async with bare(serve) as server, calling(server.url) as calls:
        outcome = await twice(calls)

    assert isinstance(outcome, Undelivered)
    assert outcome.may_have_run
    assert outcome.request == 2
    assert [len(visit.pieces) for visit in server.visits] == [2]


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "events"])
async def test_an_answer_longer_than_a_message_may_be_is_none(*, is_stream: bool) -> None:
    long = ANSWER.replace(b"[]", b"[]" + b" " * 2000)
    response = STREAM + event(long) + END if is_stream else whole(long)
    async with bare(after_one(response)) as server, calling(server.url, limit=2000) as calls:
        outcome = await twice(calls)

    assert isinstance(outcome, Undelivered)
    assert "2,000 bytes" in outcome.reason


async def test_an_error_of_the_server_is_its_answer() -> None:
    error = b'{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"no"}}'
    async with bare(after_one(whole(error))) as server, calling(server.url) as calls:
        outcome = await twice(calls)

    assert isinstance(outcome, Related)
    assert isinstance(outcome.message, JSONRPCError)
    assert (outcome.message.id, outcome.message.error.code) == (2, -32602)


async def test_a_stream_that_goes_on_after_its_answer_costs_its_connection_and_no_more() -> None:
    gone = anyio.Event()

    async def serve(visit: Visit) -> None:
        await visit.read()
        await visit.say(whole(ANSWER))
        if visit.number == 0:
            await visit.read()
            await visit.say(STREAM + event(ANSWER))
            await visit.end()
            gone.set()
        else:
            await visit.end()

    async with bare(serve) as server, calling(server.url) as calls:
        assert await twice(calls) == answered(2)
        with anyio.fail_after(20 * READING_OUT):
            await gone.wait()
        calls.taken.clear()
        assert not calls.put()
        assert await calls.until_answered() == answered(3)
    assert len(server.visits) == 2


async def test_what_follows_a_response_unasked_is_not_taken_for_the_next() -> None:
    behind = whole(ANSWER) + whole(b'{"jsonrpc":"2.0","id":7,"result":{"forged":true}}')
    async with bare(after_one(behind)) as server, calling(server.url) as calls:
        assert await twice(calls) == answered(2)
        calls.taken.clear()
        assert not calls.put()
        assert await calls.until_answered() == answered(3)
    assert len(server.visits) == 2


async def test_a_call_that_is_taken_back_hangs_up_and_is_answered_no_more() -> None:
    left = anyio.Event()

    async def serve(visit: Visit) -> None:
        request = await visit.read()
        if b"notifications/cancelled" in request:
            await visit.say(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")
            await visit.end()
            return
        await visit.say(whole(ANSWER))
        await visit.read()
        await visit.end()
        left.set()

    async with bare(serve) as server, calling(server.url) as calls:
        assert not calls.put()
        await calls.until_answered()
        assert calls.put()
        await anyio.wait_all_tasks_blocked()
        params = {"requestId": 2}
        await calls.transport.send(
            JSONRPCNotification(jsonrpc="2.0", method="notifications/cancelled", params=params)
        )
        await left.wait()
        await anyio.wait_all_tasks_blocked()
        assert calls.taken == [answered(1)]
        assert not calls.transport.is_lost
    assert len(server.visits) == 2


async def test_a_link_that_is_closed_leaves_no_connection_behind() -> None:
    left = anyio.Event()

    async def serve(visit: Visit) -> None:
        await visit.read()
        await visit.say(whole(ANSWER))
        await visit.read()
        await visit.end()
        left.set()

    async with bare(serve) as server:
        async with calling(server.url) as calls:
            assert not calls.put()
            await calls.until_answered()
            assert calls.put()
            await anyio.wait_all_tasks_blocked()
        await left.wait()
    assert calls.taken == [answered(1)]


async def test_a_connection_that_was_closed_meanwhile_is_not_written_to() -> None:
    async def serve(visit: Visit) -> None:
        await visit.read()
        await visit.say(whole(ANSWER))
        if visit.number:
            await visit.end()

    async with bare(serve) as server, calling(server.url) as calls:
        assert not calls.put()
        await calls.until_answered()
        await server.left.wait()
        await anyio.wait_all_tasks_blocked()
        assert not calls.put()
        calls.taken.clear()
        assert await calls.until_answered() == answered(2)
    assert [len(visit.pieces) for visit in server.visits] == [1, 1]
