"""A server that goes away costs only itself, and comes back by itself."""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import pairwise

import anyio
import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from aggregator.catalog import Failed, Pending
from aggregator.downstream.outage import AWAY, REST
from aggregator.downstream.transport import Connect, Transport
from aggregator.fleet.awaiting import HOPE
from aggregator.names import ServerName
from tests.peers import (
    ERAS,
    Era,
    Mortal,
    Peer,
    aggregating,
    connect_to,
    error_of,
    failing,
    keep_listening,
    late,
    never,
    ready,
    text_of,
    visiting,
)
from tests.transports import StreamTransport

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


def in_turn(*ways: Connect) -> Connect:
    """Connect in one way after the other, and in the last for good."""
    left = list(ways)

    def connect() -> AbstractAsyncContextManager[Transport]:
        return left.pop(0)() if len(left) > 1 else left[0]()

    return connect


@pytest.mark.parametrize("era", ERAS)
async def test_a_call_in_flight_gets_one_error_that_says_it_may_have_taken_effect(era: Era) -> None:
    peer = Peer("block")
    mortal = Mortal(connect_to(peer))
    results: list[types.CallToolResult] = []

    async with aggregating({"db": mortal}) as upstream, visiting(upstream, era) as client:
        await ready(upstream)

        async def call() -> None:
            results.append(await client.call_tool("db__block", {}))

        async with anyio.create_task_group() as group:
            group.start_soon(call)
            await peer.blocked.wait()
            mortal.cut()

    (result,) = results
    assert result.is_error
    assert error_of(result) == {"kind": "server-lost", "server": "db"}
    assert text_of(result) == (
        "The server `db` went away during the call: it was cut off. "
        "The tool may or may not have taken effect: check before calling it again"
    )


@pytest.mark.parametrize("era", ERAS)
async def test_a_server_that_had_been_ready_is_restarted_at_once(era: Era) -> None:
    mortal = Mortal(connect_to(Peer("query")))
    other = Peer("send")

    async with aggregating({"db": mortal, "mail": connect_to(other)}) as upstream:
        async with visiting(upstream, era) as client:
            await ready(upstream)
            await anyio.sleep(100)
            mortal.cut()
            answer = await client.call_tool("mail__send", {})
            again = await client.call_tool("db__query", {})

    assert text_of(answer) == "send: {}"
    assert text_of(again) == "query: {}"
    assert [round(when) for when in mortal.opened] == [0, 100]


@pytest.mark.parametrize("era", ERAS)
async def test_always_load_tools_leave_the_list_with_a_server_that_does_not_come_back(
    era: Era,
) -> None:
    mortal = Mortal(connect_to(Peer("query")))
    options = {"always_load": True}
    async with aggregating({"db": in_turn(mortal, never())}, db=options) as upstream:
        async with visiting(upstream, era) as client:
            await ready(upstream)
            there = [tool.name for tool in (await client.list_tools()).tools]
            mortal.cut()
            await anyio.sleep(AWAY + 0.5)
            gone = [tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools]
            search = await client.call_tool("ToolSearch", {"query": "query"})

    assert there == ["db__query"]
    assert gone == ["ToolSearch", "CallTool", "CallReadOnlyTool"]
    assert "it was cut off" in text_of(search)


async def test_failing_to_become_ready_backs_off_and_then_cools_down() -> None:
    attempts: list[float] = []

    @asynccontextmanager
    async def refuse() -> AsyncGenerator[Transport, None]:
        attempts.append(anyio.current_time())
        raise ConnectionRefusedError("connection refused")
        yield StreamTransport(())

    async with aggregating({"db": refuse}) as upstream:
        await anyio.sleep(200)
        state = upstream.fleet.now.catalog.servers[ServerName("db")]

    pauses = [round(after - before, 1) for before, after in pairwise(attempts)]
    assert pauses[:7] == [0.5, 1, 2, 4, 8, 60, 60]
    assert isinstance(state, Pending)
    assert state.phase == "cooling down"
    assert state.reason == "connection refused"


async def test_a_command_that_is_not_there_is_not_tried_again_until_somebody_asks() -> None:
    missing = FileNotFoundError("there is no command `nope`")

    async with aggregating({"db": failing(missing)}) as upstream:
        await anyio.sleep(1000)
        state = upstream.fleet.now.catalog.servers[ServerName("db")]
        async with visiting(upstream, "handshake") as client:
            answer = await client.call_tool("CallTool", {"name": "db__query"})

    assert isinstance(state, Failed)
    assert state.since < 1
    assert answer.is_error
    assert "there is no command `nope`" in text_of(answer)


async def test_a_server_that_does_not_answer_in_time_is_said_to_and_then_recycled() -> None:
    mortal = Mortal(connect_to(Peer("block", "query")))

    async with aggregating({"db": mortal}, db={"call_timeout": 5.0}) as upstream:
        async with visiting(upstream, "handshake") as client:
            began = anyio.current_time()
            first = await client.call_tool("db__block", {})
            took = anyio.current_time() - began
            for _ in range(2):
                await client.call_tool("db__block", {})
            await anyio.sleep(1)
            again = await client.call_tool("db__query", {})

    assert took == 5
    assert error_of(first) == {"kind": "timeout", "server": "db"}
    assert "did not answer within 5 s" in text_of(first)
    assert text_of(again) == "query: {}"
    assert len(mortal.opened) == 2


async def test_a_tool_that_nobody_offers_is_a_protocol_error_with_the_nearest_names() -> None:
    async with aggregating({"mail": connect_to(Peer("send_mail"))}) as upstream:
        async with visiting(upstream, "handshake") as client:
            await ready(upstream)
            with pytest.raises(MCPError) as caught:
                await client.call_tool("mail__send_male", {})

    assert caught.value.code == types.INVALID_PARAMS
    assert "`mail__send_mail`" in str(caught.value)


@pytest.mark.parametrize("comes_back", ["the same", "with more", "never"])
async def test_a_crash_is_told_to_clients_only_if_it_changes_what_they_know(
    client_era: Era, server_era: Era, comes_back: str
) -> None:
    peer = Peer("query")
    mortal = Mortal(connect_to(peer, server_era))
    db = in_turn(mortal, never() if comes_back == "never" else late(mortal, 4))
    told: list[float] = []

    async def hear(message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            told.append(anyio.current_time())

    async with (
        aggregating({"db": db}, db={"always_load": True}) as upstream,
        visiting(upstream, client_era, message_handler=hear) as client,
        anyio.create_task_group() as group,
    ):
        await ready(upstream)
        if client_era == "modern":
            group.start_soon(keep_listening, client)
        before = (await client.list_tools()).tools
        await anyio.sleep(100)
        told.clear()
        began = anyio.current_time()
        mortal.cut()
        if comes_back == "with more":
            peer.tools["drop"] = {"description": "Drops it"}
        await anyio.sleep(1)
        assert (await client.list_tools(cache_mode="refresh")).tools == before
        await anyio.sleep(100)
        times = {"the same": [], "with more": [4], "never": [AWAY]}
        assert [round(when - began) for when in told] == times[comes_back]
        group.cancel_scope.cancel()


async def test_a_call_of_a_tool_waits_for_its_server_to_come_back(client_era: Era) -> None:
    mortal = Mortal(connect_to(Peer("query")))

    async with aggregating({"db": in_turn(mortal, late(mortal, 4))}) as upstream:
        async with visiting(upstream, client_era) as client:
            await ready(upstream)
            await anyio.sleep(100)
            mortal.cut()
            await anyio.sleep(1)
            answer = await client.call_tool("db__query", {})

    assert text_of(answer) == "query: {}"


def refusing() -> Connect:
    return failing(ConnectionRefusedError("connection refused"))


@pytest.mark.parametrize("attempts", [1, 2])
async def test_a_call_waits_for_a_server_that_fails_once_or_twice_while_it_comes_back(
    client_era: Era, attempts: int
) -> None:
    mortal = Mortal(connect_to(Peer("query")))
    db = in_turn(mortal, *[refusing()] * attempts, mortal)
    async with aggregating({"db": db}) as upstream:
        async with visiting(upstream, client_era) as client:
            await ready(upstream)
            await anyio.sleep(100)
            mortal.cut()
            await anyio.sleep(0.1)
            answer = await client.call_tool("db__query", {})

    assert text_of(answer) == "query: {}"


@pytest.mark.parametrize("seconds", [0.0, 1.0, 4.0])
@pytest.mark.parametrize("start", ["eager", "lazy"])
async def test_a_call_of_a_server_that_keeps_failing_is_told_why_soon(
    client_era: Era, start: str, seconds: float
) -> None:
    mortal = Mortal(connect_to(Peer("query")))
    options = {"connect_timeout": 60.0, "start": start}
    db = in_turn(mortal, late(refusing(), seconds))
    waits: list[float] = []
    async with aggregating({"db": db}, db=options) as upstream:
        async with visiting(upstream, client_era) as client:
            await client.call_tool("db__query", {})
            await anyio.sleep(100)
            mortal.cut()
            await anyio.sleep(0.1)
            for _ in range(8):
                began = anyio.current_time()
                answer = await client.call_tool("CallTool", {"name": "db__query"})
                waits.append(anyio.current_time() - began)
                assert error_of(answer) == {"kind": "server-unavailable", "server": "db"}
                assert "connection refused" in text_of(answer)
                await anyio.sleep(2)

    assert max(waits) <= max(HOPE, 2 * seconds + 1)
    # Each of those who come later has one attempt made for it, and no more.
    assert waits[-1] <= REST + seconds


async def test_a_call_of_a_server_that_kept_failing_does_not_wait_for_one_that_hangs() -> None:
    db = in_turn(*[refusing()] * 5, never())
    async with aggregating({"db": db}, db={"connect_timeout": 60.0}) as upstream:
        async with visiting(upstream, "handshake") as client:
            await anyio.sleep(20)
            began = anyio.current_time()
            answer = await client.call_tool("CallTool", {"name": "db__query"})
            took = anyio.current_time() - began

    assert took == HOPE
    assert "connection refused" in text_of(answer)


async def test_a_call_has_a_server_that_kept_failing_back_once_it_can_be_reached() -> None:
    db = in_turn(*[refusing()] * 5, late(connect_to(Peer("query")), 3))
    async with aggregating({"db": db}) as upstream:
        async with visiting(upstream, "handshake") as client:
            await anyio.sleep(20)
            answer = await client.call_tool("CallTool", {"name": "db__query"})

    assert text_of(answer) == "query: {}"
