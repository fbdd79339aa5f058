"""Connections on which nothing is said for long: each is kept, and none holds up another."""

import anyio
import pytest
from starlette.types import Message

from aggregator.upstream.http.keepalive import SILENCE, TICK, Keepalive
from aggregator.upstream.http.reply import PING, Reply

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


class Wire:
    """Takes what a reply sends, at once or never."""

    def __init__(self, *, is_stuck: bool = False) -> None:
        self.sent: list[tuple[float, Message]] = []
        self.is_stuck = is_stuck

    async def send(self, message: Message) -> None:
        if self.is_stuck:
            await anyio.sleep_forever()
        self.sent.append((anyio.current_time(), message))

    @property
    def bodies(self) -> list[bytes]:
        return [message["body"] for _, message in self.sent if "body" in message]


async def test_who_waits_long_is_sent_something_now_and_then() -> None:
    keepalive, wire, stuck = Keepalive(), Wire(), Wire(is_stuck=True)
    reply = Reply(wire.send)
    began = anyio.current_time() + 1000
    async with anyio.create_task_group() as group:
        group.start_soon(keepalive.run)
        await anyio.sleep_until(began)
        with keepalive.keeping(Reply(stuck.send)), keepalive.keeping(reply):
            await anyio.sleep(3 * SILENCE * TICK + 1)
        await anyio.sleep(1000)
        await reply.end(b"{}")
        group.cancel_scope.cancel()

    assert wire.sent[0][1]["type"] == "http.response.start"
    assert wire.bodies == [PING] * 3 + [b"event: message\r\ndata: {}\r\n\r\n", b""]
    assert SILENCE * TICK <= wire.sent[0][0] - began <= (SILENCE + 1) * TICK


async def test_an_answer_that_comes_soon_is_all_that_is_sent() -> None:
    keepalive, wire = Keepalive(), Wire()
    reply = Reply(wire.send)
    async with anyio.create_task_group() as group:
        group.start_soon(keepalive.run)
        with keepalive.keeping(reply):
            await anyio.sleep((SILENCE - 1) * TICK)
            await reply.end(b"{}")
        await anyio.sleep(1000)
        group.cancel_scope.cancel()

    assert wire.bodies == [b"{}"]
    assert not await reply.tell(b"too late")


async def test_what_could_not_be_begun_is_answered_all_the_same() -> None:
    """Whoever is cancelled while a client takes nothing has sent nothing."""
    wire = Wire(is_stuck=True)
    reply = Reply(wire.send)
    with anyio.move_on_after(1):
        await reply.tell(b"{}")
    wire.is_stuck = False
    await reply.end(b"[]")

    assert [message["type"] for _, message in wire.sent] == [
        "http.response.start",
        "http.response.body",
    ]
    assert wire.bodies == [b"[]"]
