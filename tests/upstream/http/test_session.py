"""How long a session lasts that nobody uses, and who is told that it is over."""

import anyio
import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from aggregator.upstream.http.exchange import Listening
from aggregator.upstream.http.reply import Reply
from aggregator.upstream.http.session import IDLE_TIME, Introduction, Session
from aggregator.upstream.http.sessions import Owner
from tests.peers import Peer
from tests.upstream.http.test_keepalive import Wire

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


def opened() -> Session:
    """Open a session from what a client said of itself: nothing else is needed."""
    client = types.InitializeRequestParams(
        protocol_version="2025-11-25",
        capabilities=types.ClientCapabilities(),
        client_info=types.Implementation(name="somebody", version="1"),
    )
    return Session("one", Introduction(client, "2025-11-25"), Owner(), Peer())


async def test_a_session_ends_when_nobody_has_used_it_for_long() -> None:
    session = opened()
    async with anyio.create_task_group() as group:
        await group.start(session.run)
        await anyio.sleep(IDLE_TIME - 1)
        session.use()
        await anyio.sleep(3 * IDLE_TIME)
        session.use()
        session.let_go()
        assert not session.is_idle
        session.let_go()
        await anyio.sleep(IDLE_TIME - 1)
        assert not session.has_ended
        await anyio.sleep(1.5)
        assert session.has_ended


async def test_a_question_outside_of_a_call_waits_for_a_stream_and_ends_with_the_session() -> None:
    session, wire = opened(), Wire()
    refusals: list[str] = []

    async def ask() -> None:
        try:
            await session.send_raw_request("ping", None)
        except MCPError as error:
            refusals.append(error.error.message)

    async with anyio.create_task_group() as group:
        await group.start(session.run)
        group.start_soon(ask)
        await anyio.sleep(10)
        with session.heard_on(Reply(wire.send), Listening()):
            await anyio.sleep(10)
        group.start_soon(ask)
        await anyio.sleep(10)
        session.end()

    assert [body.count(b'"method":"ping"') for body in wire.bodies] == [1]
    assert len(refusals) == 2
