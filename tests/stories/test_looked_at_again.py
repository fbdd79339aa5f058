"""What was known is looked at again: when it is old, allowed, denied or another program's."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import anyio
import pytest
from mcp.shared.exceptions import MCPError

from aggregator.catalog import Idle
from aggregator.config import IDLE_TIMEOUT
from aggregator.downstream.transport import Transport
from aggregator.fleet.last_known import STALE
from aggregator.names import ServerName
from tests.peers import (
    Era,
    Peer,
    aggregating,
    configured,
    connect_to,
    failing,
    never,
    ready,
    text_of,
    until,
    visiting,
)
from tests.raw import RawServer
from tests.stories.test_cold_start import Way, echo, learned

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


async def test_what_is_offered_otherwise_than_it_is_known_is_taught(
    tmp_path: Path, client_era: Era, server_era: Era
) -> None:
    server = RawServer(server_era)
    server.tool("send", echo, description="Sends mail.")
    last_known = await learned(tmp_path, {"mail": server.connect})
    server.tools[0]["inputSchema"] = {
        "type": "object",
        "properties": {"to": {"type": "string"}},
        "required": ["to"],
    }

    async with (
        aggregating({"mail": server.connect}, last_known=last_known) as upstream,
        visiting(upstream, client_era) as client,
    ):
        found = await client.call_tool("ToolSearch", {"query": "send mail"})
        assert "mail__send" in text_of(found)
        result = await client.call_tool("mail__send", {})
        again = await client.call_tool("mail__send", {"to": "you"})

    assert result.is_error
    assert "to" in text_of(result)
    assert "tools/call" not in [method for method, params in server.received[:-1] if not params]
    assert text_of(again) == "{'to': 'you'}"


async def test_what_is_known_and_no_longer_there_is_said_to_be_unknown(
    tmp_path: Path, client_era: Era
) -> None:
    last_known = await learned(tmp_path, {"db": connect_to(Peer("query", "drop"))})

    async with (
        aggregating({"db": connect_to(Peer("query"))}, last_known=last_known) as upstream,
        visiting(upstream, client_era) as client,
    ):
        with pytest.raises(MCPError, match="drop"):
            await client.call_tool("db__drop", {})
        assert text_of(await client.call_tool("db__query", {})) == "query: {}"


async def test_what_is_denied_now_is_not_brought_back(tmp_path: Path, client_era: Era) -> None:
    last_known = await learned(tmp_path, {"db": connect_to(Peer("query", "drop"))})

    async with (
        aggregating({"db": never()}, last_known=last_known, db={"deny": ("drop",)}) as upstream,
        visiting(upstream, client_era) as client,
    ):
        found = text_of(await client.call_tool("ToolSearch", {"query": "drop query"}))

    assert "db__query" in found
    assert "drop" not in found.replace("drop query", "")


async def test_a_server_of_which_more_is_allowed_now_is_asked_again(tmp_path: Path) -> None:
    peer = connect_to(Peer("query", "drop"))
    last_known = await learned(tmp_path, {"db": peer}, db={"deny": ("drop",)})

    async with aggregating({"db": peer}, last_known=last_known) as upstream:
        await ready(upstream)

        assert set(upstream.fleet.now.catalog.entries) == {"db__query", "db__drop"}


async def test_another_program_under_the_same_name_is_asked(tmp_path: Path) -> None:
    last_known = await learned(tmp_path, {"db": connect_to(Peer("query"))}, db={"command": "old"})
    way = Way(connect_to(Peer("query")))

    async with aggregating({"db": way}, last_known=last_known, db={"command": "new"}) as upstream:
        assert upstream.fleet.now.catalog.known == {}
        await ready(upstream)

    assert way.taken == 1


async def test_what_was_listed_long_ago_is_looked_at_again_and_left_alone(tmp_path: Path) -> None:
    peers = {"a": Peer("one"), "b": Peer("two")}
    last_known = await learned(tmp_path, {name: connect_to(peer) for name, peer in peers.items()})
    ways = {"a": Way(connect_to(Peer("one", "more"))), "b": Way(connect_to(peers["b"]))}
    most = 0

    async with (
        aggregating(ways, last_known=last_known) as upstream,
        anyio.create_task_group() as group,
    ):
        fleet = upstream.fleet
        group.start_soon(fleet.refresh)
        await anyio.sleep(STALE - 60)
        assert [way.taken for way in ways.values()] == [0, 0]
        with anyio.move_on_after(120):
            while True:
                await fleet.changed.wait()
                most = max(most, sum(way.now for way in ways.values()))
        assert [way.taken for way in ways.values()] == [1, 1]
        assert [way.now for way in ways.values()] == [0, 0]
        assert set(fleet.now.catalog.entries) == {"a__one", "a__more", "b__two"}
        assert all(isinstance(each, Idle) for each in fleet.now.catalog.servers.values())
        group.cancel_scope.cancel()

    assert most == 1


async def test_one_that_leaves_while_it_is_looked_at_keeps_no_other_waiting(
    tmp_path: Path,
) -> None:
    peers = {"a": connect_to(Peer("one")), "b": connect_to(Peer("two"))}
    last_known = await learned(tmp_path, peers)
    way = Way(peers["b"])
    hung, taken = never(), anyio.Event()

    def hang() -> AbstractAsyncContextManager[Transport]:
        taken.set()
        return hung()

    async with aggregating({"a": hang, "b": way}, last_known=last_known) as upstream:
        async with anyio.create_task_group() as group:
            group.start_soon(upstream.fleet.refresh)
            await taken.wait()
            upstream.fleet.reconfigure(configured({"b": {}}))
            await anyio.sleep(STALE + 60)
            assert way.taken >= 1
            group.cancel_scope.cancel()


async def test_one_that_is_looked_at_and_then_listened_to_stays(tmp_path: Path) -> None:
    server = RawServer("modern")
    server.tool("one", echo)
    server.resources = [{"uri": "log://today", "name": "log"}]
    last_known = await learned(tmp_path, {"a": server.connect})
    name, taken = ServerName("a"), anyio.Event()

    def connect() -> AbstractAsyncContextManager[Transport]:
        taken.set()
        return server.connect()

    way = Way(connect)
    async with (
        aggregating({"a": way}, last_known=last_known) as upstream,
        anyio.create_task_group() as group,
    ):
        fleet = upstream.fleet
        group.start_soon(fleet.refresh)
        await taken.wait()
        await fleet.watch(name, {"log://today"})
        await anyio.sleep(IDLE_TIMEOUT)
        assert way.now == 1
        group.cancel_scope.cancel()


async def test_what_is_allowed_while_it_rests_is_asked_for(tmp_path: Path) -> None:
    peer, denied = connect_to(Peer("query", "drop")), {"deny": ("drop",)}
    last_known = await learned(tmp_path, {"db": peer}, db=denied)

    async with (
        aggregating({"db": peer}, last_known=last_known, db=denied) as upstream,
        anyio.create_task_group() as group,
    ):
        fleet = upstream.fleet
        group.start_soon(fleet.refresh)
        await anyio.sleep(1)
        assert set(fleet.now.catalog.entries) == {"db__query"}
        fleet.reconfigure(configured({"db": {}}))
        await until(lambda: len(fleet.now.catalog.entries) == 2, lambda: fleet.changed)
        group.cancel_scope.cancel()


async def test_one_that_cannot_be_looked_at_keeps_what_is_known(tmp_path: Path) -> None:
    last_known = await learned(tmp_path, {"a": connect_to(Peer("one"))})

    async with (
        aggregating({"a": failing(OSError("no network"))}, last_known=last_known) as upstream,
        anyio.create_task_group() as group,
    ):
        group.start_soon(upstream.fleet.refresh)
        await anyio.sleep(STALE + 600)
        assert set(upstream.fleet.now.catalog.entries) == {"a__one"}
        group.cancel_scope.cancel()
