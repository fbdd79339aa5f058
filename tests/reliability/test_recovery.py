"""What a server does to us costs that server alone, and is told in words."""

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import anyio
import pytest
from mcp.server.context import CallNext, HandlerResult
from mcp.shared.exceptions import MCPError

from aggregator.catalog import Failed, Pending, Ready
from aggregator.downstream.transport import Connect, Line, Transport
from aggregator.names import ServerName
from aggregator.records.inspection import servers_document
from tests.peers import (
    Context,
    Mortal,
    Peer,
    aggregating,
    connect_to,
    failing,
    never,
    ready,
    text_of,
    visiting,
)
from tests.raw import Dispatch, Json, RawServer, raw_client
from tests.transports import StreamTransport

pytestmark = pytest.mark.anyio

DB = ServerName("db")


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


def slow_to_close(connect: Connect, seconds: float) -> Connect:
    """Take a while to leave a connection, as a process does that has to be ended."""

    @asynccontextmanager
    async def connect_and_linger() -> AsyncGenerator[Transport, None]:
        try:
            async with connect() as transport:
                yield transport
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(seconds)

    return connect_and_linger


def speaking(*lines: str) -> Connect:
    """End at once, with words on standard error."""

    @asynccontextmanager
    async def speak() -> AsyncGenerator[Transport, None]:
        send, receive = anyio.create_memory_object_stream[object](1)
        send.close()
        with receive:
            yield StreamTransport((receive, send), "it exited with status 1", [*map(Line, lines)])

    return speak


async def test_a_call_that_comes_while_the_old_connection_is_closed_waits_for_the_new() -> None:
    mortal = Mortal(connect_to(Peer("query")))

    async with aggregating({"db": slow_to_close(mortal, 3)}) as upstream:
        async with visiting(upstream, "handshake") as client:
            await ready(upstream)
            mortal.cut()
            await anyio.sleep(1)
            answer = await client.call_tool("db__query", {})

    assert text_of(answer) == "query: {}"


async def test_a_server_that_we_cannot_handle_costs_only_itself(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bug = KeyError("something nobody thought of")

    with caplog.at_level(logging.ERROR):
        async with aggregating({"db": failing(bug), "mail": connect_to(Peer("send"))}) as upstream:
            async with visiting(upstream, "handshake") as client:
                await anyio.sleep(0.1)
                answer = await client.call_tool("mail__send", {})
                state = upstream.fleet.now.catalog.servers[DB]

    assert text_of(answer) == "send: {}"
    assert isinstance(state, Pending)
    assert state.reason is not None
    number = state.reason.partition("(error ")[2][:12]
    assert f"internal error {number}" in caplog.text
    assert "nobody thought of" in caplog.text
    assert "nobody thought of" not in state.reason


class Odd(Peer):
    """Introduces itself with nonsense."""

    def __init__(self, versions: object) -> None:
        super().__init__("query")
        self._versions = versions
        self.middleware.append(self._introduce)

    async def _introduce(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        if ctx.method != "server/discover":
            return await call_next(ctx)
        result: dict[str, Any] = {"supportedVersions": self._versions, "capabilities": 7}
        return {"resultType": "complete", **result}


@pytest.mark.parametrize("versions", [7, "2026-07-28", [[]], {"a": 1}, None])
async def test_nonsense_in_an_introduction_costs_only_that_server(versions: object) -> None:
    odd, mail = connect_to(Odd(versions)), connect_to(Peer("send"))

    async with aggregating({"db": odd, "mail": mail}) as upstream:
        async with visiting(upstream, "handshake") as client:
            answer = await client.call_tool("mail__send", {})
            await anyio.sleep(10)
            states = upstream.fleet.now.catalog.servers

    assert text_of(answer) == "send: {}"
    assert isinstance(states[ServerName("mail")], Ready)


async def test_the_last_words_of_a_server_say_why_it_is_not_there() -> None:
    words = ("Traceback (most recent call last):", "KeyError: 'DATABASE_URL'")

    async with aggregating({"db": speaking(*words)}) as upstream:
        await anyio.sleep(100)
        state = upstream.fleet.now.catalog.servers[DB]
        document = servers_document(upstream.fleet.now.catalog, {}, anyio.current_time())

    assert isinstance(state, Pending)
    assert state.phase == "cooling down"
    assert state.reason == "it exited with status 1; its last words: KeyError: 'DATABASE_URL'"
    assert document["servers"][0]["stderr"] == list(words)


async def test_a_program_that_echoes_is_told_from_a_server() -> None:
    @asynccontextmanager
    async def echo() -> AsyncGenerator[Transport, None]:
        send, receive = anyio.create_memory_object_stream[object](8)
        with send, receive:
            yield StreamTransport((receive, send))

    async with aggregating({"db": echo}) as upstream:
        await anyio.sleep(1)
        state = upstream.fleet.now.catalog.servers[DB]

    assert isinstance(state, Pending)
    assert state.reason == "it sends back what it is sent, so it is no MCP server"


async def test_those_who_call_a_crash_loop_do_not_make_it_hammer() -> None:
    attempts: list[float] = []

    @asynccontextmanager
    async def refuse() -> AsyncGenerator[Transport, None]:
        attempts.append(anyio.current_time())
        raise ConnectionRefusedError("connection refused")
        yield StreamTransport(())

    async with aggregating({"db": refuse}) as upstream:
        async with visiting(upstream, "handshake") as client:
            await anyio.sleep(100)
            began = anyio.current_time()
            answers = [await client.call_tool("CallTool", {"name": "db__query"}) for _ in range(20)]
            took = anyio.current_time() - began

    (said,) = {text_of(answer) for answer in answers}
    assert said.startswith("The server `db` is not connected: connection refused.")
    assert min(after - before for before, after in pairwise(attempts)) >= 0.5
    assert took <= 20


async def test_a_call_is_told_that_its_server_is_still_starting() -> None:
    servers = {"db": slow_to_close(never(), 3)}

    async with aggregating(servers, db={"connect_timeout": 5.0}) as upstream:
        async with visiting(upstream, "handshake") as client:
            answer = await client.call_tool("CallTool", {"name": "db__query"})

    assert text_of(answer) == (
        "The server `db` is not connected: it is still starting. "
        "The tool was not run; use another tool, or try again shortly"
    )


async def test_a_call_is_not_told_to_try_again_soon_what_a_person_must_put_right() -> None:
    servers = {"db": failing(FileNotFoundError("`db-mcp` was not found on PATH"))}

    async with aggregating(servers) as upstream, visiting(upstream, "handshake") as client:
        await anyio.sleep(1)
        answer = await client.call_tool("CallTool", {"name": "db__query"})

    assert text_of(answer) == (
        "The server `db` is not connected: `db-mcp` was not found on PATH. "
        "The tool was not run; use another tool, or try again when the server is back"
    )


async def test_watching_what_a_server_says_nothing_about_ends_in_time() -> None:
    async def hang(_context: Dispatch, _params: Json) -> Json:
        await anyio.sleep_forever()
        return {}

    server = RawServer("handshake", resources__subscribe=hang)
    server.resources = [{"uri": "x://y", "name": "y"}]

    async with aggregating({"db": server.connect}, db={"call_timeout": 5.0}) as upstream:
        await ready(upstream)
        await anyio.sleep(1)
        async with raw_client(upstream, "handshake") as client:
            began = anyio.current_time()
            with pytest.raises(MCPError, match="in time"):
                await client.request("resources/subscribe", {"uri": "x://y"})
            assert anyio.current_time() - began == 5


async def test_a_server_that_is_wrongly_configured_is_not_tried_again_by_itself() -> None:
    attempts: list[float] = []
    refused = failing(PermissionError("`db` is not executable"))

    @asynccontextmanager
    async def counted() -> AsyncGenerator[Transport, None]:
        attempts.append(anyio.current_time())
        async with refused() as transport:
            yield transport

    async with aggregating({"db": counted}) as upstream:
        await anyio.sleep(3600)
        state = upstream.fleet.now.catalog.servers[DB]

    assert attempts == [0]
    assert isinstance(state, Failed)
