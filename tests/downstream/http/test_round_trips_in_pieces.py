"""Calls on kept connections that come back in pieces, or break: all at once, between two turns."""

import gc
import json
import resource
import socket
import struct
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager

import anyio
import anyio.abc
import anyio.to_thread
import pytest
from mcp_types import JSONRPCNotification, JSONRPCResponse

from aggregator.downstream.http.connection import SMALL_BYTES, raw
from aggregator.downstream.http.round_trip import MOST_PIECES, RoundTrip
from aggregator.downstream.http.socket_watch import CHUNK_BYTES, LARGE_CHUNK_BYTES
from aggregator.downstream.transport import Received, Related, Undelivered
from tests.downstream.http.test_round_trips import (
    ANSWER,
    END,
    LOOPS,
    PROGRESS,
    STREAM,
    Calling,
    answered,
    calling,
    event,
    whole,
)
from tests.downstream.stdio.test_child import limit_leaving
from tests.loopback.web import listening
from tests.patience import PATIENCE

pytestmark = pytest.mark.anyio

MOST = 1 << 20
"""Bytes that are read of a request at once."""
LEAST = 1
"""Bytes that a socket is to hold: it holds as few as the system has it hold."""


@pytest.fixture(params=LOOPS)
def anyio_backend(request: pytest.FixtureRequest) -> object:
    return request.param


@pytest.fixture
def near(monkeypatch: pytest.MonkeyPatch) -> Generator[list[socket.socket], None, None]:
    """The ends of connections on our side, as they are made."""
    ends: list[socket.socket] = []
    connect = anyio.connect_tcp

    async def connect_tcp(host: str, port: int) -> anyio.abc.SocketStream:
        stream = await connect(host, port)
        ends.append(raw(stream).dup())
        return stream

    monkeypatch.setattr(anyio, "connect_tcp", connect_tcp)
    yield ends
    for each in ends:
        each.close()


class Far:
    """The other end of a connection, which waits for nobody's turn."""

    def __init__(self, here: socket.socket, there: socket.socket) -> None:
        self._here = here
        self.there = there

    async def read(self) -> bytes:
        """Read a request, however it comes."""
        return await anyio.to_thread.run_sync(_request, self._here)

    def say(self, piece: bytes) -> None:
        self._here.sendall(piece)

    async def tell(self, piece: bytes) -> None:
        """Say something, and wait until it has been heard: we are woken in the turn after that."""
        self.say(piece)
        await self.heard()

    async def heard(self) -> None:
        await anyio.wait_readable(self.there)

    def reset(self) -> None:
        self._here.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._here.close()


def _request(here: socket.socket) -> bytes:
    data = b""
    while not data.endswith(b"}"):
        if not (piece := here.recv(MOST)):
            break
        data += piece
    return data


async def ask_again(calls: Calling, far: Far) -> None:
    """See that the connection goes on with the next call."""
    calls.taken.clear()
    assert calls.put()
    await far.read()
    far.say(whole(ANSWER))
    assert await calls.until_answered() == answered(3)


@asynccontextmanager
async def kept(near: list[socket.socket]) -> AsyncGenerator[tuple[Calling, Far], None]:
    """Give a connection that has carried one call, and is there for the next."""
    with listening() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, LEAST)
        host, port = listener.getsockname()
        with anyio.fail_after(PATIENCE):
            async with calling(f"http://{host}:{port}/mcp") as calls:
                assert not calls.put()
                here, _ = await anyio.to_thread.run_sync(listener.accept)
                with here:
                    await anyio.to_thread.run_sync(_request, here)
                    far = Far(here, near[0])
                    far.say(whole(ANSWER))
                    assert await calls.until_answered() == answered(1)
                    calls.taken.clear()
                    yield calls, far
    assert len(near) == 1


def broken(outcome: Received) -> bool:
    return isinstance(outcome, Undelivered) and outcome.may_have_run and outcome.request == 2


@pytest.mark.parametrize(
    "pieces",
    [
        [whole(ANSWER)],
        [whole(ANSWER)[:-20], whole(ANSWER)[-20:]],
        [STREAM + event(ANSWER) + END],
        [STREAM, event(ANSWER), END],
        [STREAM + b"9\r\nid: 1\r\n\r\n\r\n", event(ANSWER)[:30], event(ANSWER)[30:] + END],
        [STREAM + event(ANSWER), END[:1], END[1:]],
    ],
    ids=["whole", "body later", "events", "one by one", "a place before", "end later"],
)
async def test_an_answer_comes_without_a_task_and_its_connection_is_kept(
    near: list[socket.socket], pieces: list[bytes]
) -> None:
    async with kept(near) as (calls, far):
        assert calls.put()
        await far.read()
        for piece in pieces:
            await far.tell(piece)
        assert await calls.until_answered() == answered(2)
        await ask_again(calls, far)


LONG_BYTES = 1_000_000
"""Bytes of text in an answer that is taken apart at once all the same."""
TEXT = "".join(chr(ord("a") + number % 26) for number in range(LONG_BYTES))
LONG_RESULT = {"content": [{"type": "text", "text": TEXT}]}
LONG_ANSWER = b'{"jsonrpc":"2.0","id":7,"result":%b}' % json.dumps(LONG_RESULT).encode()


def is_long_answer(item: Received) -> bool:
    message = item.message if isinstance(item, Related) else item
    return isinstance(message, JSONRPCResponse) and message.result == LONG_RESULT


@pytest.mark.parametrize(
    "response",
    [whole(LONG_ANSWER), STREAM + event(LONG_ANSWER) + END],
    ids=["whole", "events"],
)
async def test_a_long_answer_comes_without_a_task_and_its_connection_is_kept(
    near: list[socket.socket], response: bytes
) -> None:
    async with kept(near) as (calls, far):
        before = len(anyio.get_running_tasks())
        assert calls.put()
        await far.read()
        await anyio.to_thread.run_sync(far.say, response)
        assert is_long_answer(await calls.until_answered())
        assert calls.tasks == before
        await ask_again(calls, far)


@pytest.mark.parametrize(
    "response",
    [
        whole(LONG_ANSWER)[:-20],
        STREAM + event(LONG_ANSWER)[:-20],
        STREAM + event(LONG_ANSWER)[:-LONG_BYTES],
    ],
    ids=["whole", "events", "beginning"],
)
async def test_a_call_whose_long_answer_breaks_off_is_not_sent_again(
    near: list[socket.socket], response: bytes
) -> None:
    async with kept(near) as (calls, far):
        assert calls.put()
        await far.read()
        await anyio.to_thread.run_sync(far.say, response)
        far.reset()
        assert broken(await calls.until_answered())


async def test_what_breaks_behind_more_than_is_read_at_once_is_found(
    near: list[socket.socket],
) -> None:
    async with kept(near) as (calls, far):
        near[0].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, MOST)
        assert calls.put()
        await far.read()
        # All of it is there, and its end, before any of it is read.
        far.say(whole(LONG_ANSWER)[: CHUNK_BYTES + LARGE_CHUNK_BYTES // 4])
        far.reset()
        assert broken(await calls.until_answered())


async def test_a_long_answer_in_very_many_pieces_is_left_to_a_task_that_has_others_go_on(
    near: list[socket.socket],
) -> None:
    async with kept(near) as (calls, far):
        before = len(anyio.get_running_tasks())
        assert calls.put()
        await far.read()
        said = b"data: " + LONG_ANSWER + b"\n\n"
        parts = [said[at : at + 20] for at in range(0, len(said), 20)]
        chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)
        await anyio.to_thread.run_sync(far.say, STREAM + chunks + END)
        assert is_long_answer(await calls.until_answered())
        assert calls.tasks == before + 1
        await ask_again(calls, far)


async def test_what_comes_of_an_answer_is_not_kept_in_ever_more_pieces(
    near: list[socket.socket],
) -> None:
    blanks = b" " * (MOST_PIECES + 1)
    async with kept(near) as (calls, far):
        before = len(anyio.get_running_tasks())
        assert calls.put()
        await far.read()
        await far.tell(whole(blanks + ANSWER)[: -len(blanks + ANSWER)])
        for _ in blanks:
            await far.tell(b" ")
        assert len(anyio.get_running_tasks()) == before + 1
        far.say(ANSWER)
        assert await calls.until_answered() == answered(2)
        await ask_again(calls, far)


async def test_what_is_said_before_the_answer_is_passed_on_once_and_in_order(
    near: list[socket.socket],
) -> None:
    async with kept(near) as (calls, far):
        assert calls.put()
        await far.read()
        for piece in (STREAM + event(PROGRESS), event(PROGRESS), event(ANSWER) + END):
            await far.tell(piece)
        assert await calls.until_answered() == answered(2)

    kinds = [type(each.message) for each in calls.taken if isinstance(each, Related)]
    assert kinds == [JSONRPCNotification, JSONRPCNotification, JSONRPCResponse]


@pytest.mark.parametrize(
    "said",
    [
        b"",
        whole(ANSWER)[:20],
        whole(ANSWER)[:-20],
        STREAM,
        STREAM + event(ANSWER)[:-20],
        STREAM + event(PROGRESS),
    ],
    ids=["nothing", "head", "body", "stream", "event", "notice"],
)
@pytest.mark.parametrize("is_heard", [True, False], ids=["heard", "unheard"])
async def test_a_call_whose_connection_is_reset_is_not_sent_again(
    near: list[socket.socket], said: bytes, *, is_heard: bool
) -> None:
    async with kept(near) as (calls, far):
        assert calls.put()
        await far.read()
        if said and is_heard:
            await far.tell(said)
        else:
            far.say(said)
        far.reset()
        assert broken(await calls.until_answered())


async def test_a_call_whose_connection_was_reset_keeps_nothing_alive(
    near: list[socket.socket],
) -> None:
    async with kept(near) as (calls, far):
        gc.collect()
        gc.disable()
        try:
            assert calls.put()
            await far.read()
            far.reset()
            assert broken(await calls.until_answered())
            left = [each for each in gc.get_objects() if isinstance(each, RoundTrip)]
        finally:
            gc.enable()
    assert left == []


async def test_an_answer_before_a_reset_is_one_and_no_failure_follows_it(
    near: list[socket.socket],
) -> None:
    async with kept(near) as (calls, far):
        assert calls.put()
        await far.read()
        # What is told before the answer has a task read the response.
        await far.tell(STREAM + event(PROGRESS))
        await far.tell(event(ANSWER))
        assert await calls.until_answered() == answered(2)
        far.reset()
        await far.heard()
        await anyio.wait_all_tasks_blocked()
        assert calls.taken[1:] == [answered(2)]


@contextmanager
def few_descriptors(spare: int) -> Generator[None, None, None]:
    """Let no more than so many descriptors be opened."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit_leaving(spare), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# The other loop takes some for itself while it connects.
@pytest.mark.parametrize("anyio_backend", LOOPS[:1], indirect=True)
async def test_a_connection_takes_one_descriptor_where_there_are_no_more() -> None:
    with listening() as listener, anyio.fail_after(PATIENCE):
        host, port = listener.getsockname()
        async with calling(f"http://{host}:{port}/mcp") as calls:
            with few_descriptors(1):
                assert not calls.put()
                await anyio.wait_readable(listener)
                await anyio.wait_all_tasks_blocked()
            here, _ = listener.accept()
            with here:
                for number, is_watched in enumerate((False, True), start=2):
                    here.sendall(whole(ANSWER))
                    assert await calls.until_answered() == answered(number - 1)
                    calls.taken.clear()
                    with few_descriptors(is_watched):
                        assert calls.put() == is_watched
                    await anyio.to_thread.run_sync(_request, here)
                here.sendall(whole(ANSWER))
                assert await calls.until_answered() == answered(3)


async def test_a_request_that_is_not_taken_at_once_is_written_to_its_end_and_answered(
    near: list[socket.socket],
) -> None:
    filling = "x" * (SMALL_BYTES - 1000)
    async with kept(near) as (calls, far):
        far.there.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LEAST)
        assert not calls.put(filling)
        request = await far.read()
        assert request.count(b"POST ") == 1
        assert request.endswith(f'"{filling}"}}}}}}'.encode())
        far.say(whole(ANSWER))
        assert await calls.until_answered() == answered(2)
        await ask_again(calls, far)


async def test_a_request_that_is_not_taken_at_all_is_not_sent_again(
    near: list[socket.socket],
) -> None:
    async with kept(near) as (calls, far):
        far.there.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LEAST)
        assert not calls.put("x" * (SMALL_BYTES - 1000))
        far.reset()
        assert broken(await calls.until_answered())
