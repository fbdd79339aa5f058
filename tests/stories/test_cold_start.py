"""What servers offered in another run is there at once, and they start when they are needed."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest

from aggregator.catalog import Idle, Ready
from aggregator.config import IDLE_TIMEOUT
from aggregator.downstream.transport import Connect, Transport
from aggregator.fleet.last_known import STALE, LastKnown
from aggregator.names import ServerName
from tests.peers import (
    Era,
    Mortal,
    Peer,
    aggregating,
    configured,
    connect_to,
    failing,
    keep_listening,
    never,
    ready,
    text_of,
    until,
    visiting,
)
from tests.raw import Dispatch, Json, RawServer

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


class Way:
    """A way to a server that tells how often it was taken, and how many are on it now."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self.taken = 0
        self.now = 0

    @asynccontextmanager
    async def __call__(self) -> AsyncGenerator[Transport, None]:
        self.taken += 1
        async with self._connect() as transport:
            self.now += 1
            try:
                yield transport
            finally:
                self.now -= 1


async def learned(directory: Path, servers: Mapping[str, Connect], **options: Any) -> LastKnown:
    """Have what servers offer known from another run."""
    last_known = LastKnown(directory)
    async with aggregating(servers, last_known=last_known, **options) as upstream:
        await ready(upstream)
    last_known.save()
    return LastKnown(directory)


async def echo(_context: Dispatch, params: Json) -> Json:
    return {"content": [{"type": "text", "text": str(params["arguments"])}]}


async def test_nothing_runs_before_it_is_called_nor_long_after(
    tmp_path: Path, client_era: Era, server_era: Era
) -> None:
    names = [f"s{number}" for number in range(12)]
    peers: dict[str, Connect] = {
        name: connect_to(Peer(f"read_{name}", f"write_{name}"), server_era) for name in names
    }
    last_known = await learned(tmp_path, peers)
    ways = {name: Way(connect) for name, connect in peers.items()}

    async with (
        aggregating(ways, last_known=last_known) as upstream,
        visiting(upstream, client_era) as client,
    ):
        await client.list_tools()
        for number in range(5):
            found = await client.call_tool("ToolSearch", {"query": f"read s{number}"})
            assert f"s{number}__read_s{number}" in text_of(found)
            assert "starts when called" in text_of(found)
        assert anyio.current_time() < 1
        assert [way.taken for way in ways.values()] == [0] * 12
        assert all(isinstance(each, Idle) for each in upstream.fleet.now.catalog.servers.values())

        result = await client.call_tool("s7__read_s7", {})

        assert text_of(result) == "read_s7: {}"
        assert {name for name, way in ways.items() if way.taken} == {"s7"}
        await anyio.sleep(IDLE_TIMEOUT - 1)
        assert ways["s7"].now == 1
        await anyio.sleep(2)
        assert ways["s7"].now == 0
        result = await client.call_tool("s7__write_s7", {})
        assert text_of(result) == "write_s7: {}"
        assert [ways["s7"].taken, ways["s7"].now] == [2, 1]


async def test_of_servers_that_hang_the_tools_are_found_in_the_first_answer(
    tmp_path: Path, client_era: Era
) -> None:
    peers: dict[str, Connect] = {
        f"s{number}": connect_to(Peer(f"paint_{number}", "common")) for number in range(40)
    }
    options: dict[str, Any] = {name: {"start": "eager"} for name in peers}
    last_known = await learned(tmp_path, peers, **options)
    ways = {name: never() if at < 30 else way for at, (name, way) in enumerate(peers.items())}

    async with (
        aggregating(ways, last_known=last_known, **options) as upstream,
        visiting(upstream, client_era) as client,
    ):
        began = anyio.current_time()
        found = text_of(await client.call_tool("ToolSearch", {"query": "paint 17"}))

        assert "s17__paint_17" in found
        assert "starting: a call waits for it" in found
        assert anyio.current_time() - began < 3


async def test_tools_that_are_always_loaded_are_in_the_very_first_list(
    tmp_path: Path, client_era: Era
) -> None:
    options: dict[str, Any] = {"db": {"always_load": ("query",)}}
    last_known = await learned(tmp_path, {"db": connect_to(Peer("query", "drop"))}, **options)

    async with (
        aggregating({"db": never()}, last_known=last_known, **options) as upstream,
        visiting(upstream, client_era) as client,
    ):
        first = [tool.name for tool in (await client.list_tools()).tools]

    assert "db__query" in first
    assert "db__drop" not in first


async def test_who_ends_before_everything_is_listed_has_the_tools_the_next_time(
    tmp_path: Path, client_era: Era, server_era: Era
) -> None:
    asked = anyio.Event()

    async def hang(_context: Dispatch, _params: Json) -> Json:
        asked.set()
        await anyio.sleep_forever()
        raise AssertionError

    server = RawServer(server_era, prompts__list=hang)
    server.tool("query", echo)
    server.prompts = [{"name": "ask"}]
    last_known = LastKnown(tmp_path)
    async with aggregating({"db": server.connect}, last_known=last_known) as upstream:
        await asked.wait()
        fleet = upstream.fleet
        await until(lambda: bool(fleet.now.catalog.known), lambda: fleet.changed)
    last_known.save()

    async with (
        aggregating({"db": never()}, last_known=LastKnown(tmp_path)) as upstream,
        visiting(upstream, client_era) as client,
    ):
        found = await client.call_tool("ToolSearch", {"query": "query"})
        assert "db__query (server db, starting: a call waits for it)" in text_of(found)

    way = Way(connect_to(Peer("query")))
    async with aggregating({"db": way}, last_known=LastKnown(tmp_path)) as upstream:
        await ready(upstream)
        assert way.taken == 1


async def test_a_hundred_crashes_change_no_list_and_no_answer(client_era: Era) -> None:
    mortal = Mortal(connect_to(Peer("query")))
    heard: list[object] = []

    async def hear(message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            heard.append(message)

    async with (
        aggregating({"db": mortal}, db={"always_load": True}) as upstream,
        visiting(upstream, client_era, message_handler=hear) as client,
        anyio.create_task_group() as group,
    ):
        if client_era == "modern":
            group.start_soon(keep_listening, client)
        await ready(upstream)
        before = await client.list_tools()
        await anyio.sleep(60)
        heard.clear()
        for _ in range(100):
            mortal.cut()
            await anyio.wait_all_tasks_blocked()
            result = await client.call_tool("db__query", {"q": "1"})
            assert text_of(result) == "query: {'q': '1'}"
            await anyio.sleep(60)
        assert (await client.list_tools()).tools == before.tools
        group.cancel_scope.cancel()

    assert heard == []
    assert len(mortal.opened) == 101


async def test_one_that_fails_when_it_is_called_says_why_and_rests(
    tmp_path: Path, client_era: Era
) -> None:
    last_known = await learned(tmp_path, {"a": connect_to(Peer("one"))})
    way = Way(failing(OSError("no network")))

    async with aggregating({"a": way}, last_known=last_known) as upstream:
        fleet = upstream.fleet
        async with visiting(upstream, client_era) as client:
            result = await client.call_tool("a__one", {})
            assert result.is_error
            assert "no network" in text_of(result)
            await anyio.sleep(60)
            tried = way.taken
            found = await client.call_tool("ToolSearch", {"query": "one"})
        assert "starts when called, did not start the last time" in text_of(found)
        await anyio.sleep(STALE / 2)
        assert way.taken == tried
        assert set(fleet.now.catalog.entries) == {"a__one"}
        state = fleet.now.catalog.servers[ServerName("a")]
        assert isinstance(state, Idle)
        assert "no network" in (state.reason or "")


async def test_one_that_is_lost_and_does_not_come_back_rests_and_is_in_all_lists(
    tmp_path: Path, client_era: Era
) -> None:
    pinned, name = {"always_load": ("*",)}, ServerName("a")
    last_known = await learned(tmp_path, {"a": connect_to(Peer("one"))}, a=pinned)
    mortal = Mortal(connect_to(Peer("one")))
    ways: list[Connect] = [mortal]

    def latest() -> AbstractAsyncContextManager[Transport]:
        return ways[-1]()

    way = Way(latest)

    async with aggregating({"a": way}, last_known=last_known, a=pinned) as upstream:
        fleet = upstream.fleet
        async with visiting(upstream, client_era) as client:
            listed = await client.list_tools()
            assert not (await client.call_tool("a__one", {})).is_error
            ways.append(failing(OSError("no network")))
            mortal.cut()
            await until(
                lambda: isinstance(fleet.now.catalog.servers[name], Idle), lambda: fleet.changed
            )
            tried = way.taken
            await anyio.sleep(3600)
            assert way.taken == tried
            assert await client.list_tools() == listed
            ways.pop()
            assert not (await client.call_tool("a__one", {})).is_error


async def test_a_server_that_somebody_listens_to_is_not_stopped(
    tmp_path: Path, server_era: Era
) -> None:
    server = RawServer(server_era)
    server.tool("one", echo)
    server.resources = [{"uri": "log://today", "name": "log"}]
    last_known = await learned(tmp_path, {"a": server.connect})
    way = Way(server.connect)
    name = ServerName("a")

    async with aggregating({"a": way}, last_known=last_known) as upstream:
        fleet = upstream.fleet
        await fleet.watch(name, {"log://today"})
        await until(
            lambda: isinstance(fleet.now.catalog.servers[name], Ready), lambda: fleet.changed
        )
        await anyio.sleep(2 * IDLE_TIMEOUT)
        assert way.now == 1
        await fleet.watch(name, set())
        await anyio.sleep(IDLE_TIMEOUT + 1)
        assert way.now == 0


async def test_a_server_with_a_time_of_its_own_is_stopped_then(tmp_path: Path) -> None:
    del tmp_path
    way = Way(connect_to(Peer("one")))

    async with aggregating({"a": way}, a={"start": "eager", "idle_timeout": 30.0}) as upstream:
        await ready(upstream)
        await anyio.sleep(29)
        assert way.now == 1
        await anyio.sleep(2)
        assert way.now == 0
        assert isinstance(upstream.fleet.now.catalog.servers[ServerName("a")], Idle)


async def test_another_configuration_of_one_that_rests_does_not_start_it(tmp_path: Path) -> None:
    peer = connect_to(Peer("query", "drop"))
    last_known = await learned(tmp_path, {"db": peer})
    way = Way(peer)

    async with aggregating({"db": way}, last_known=last_known) as upstream:
        config = configured({"db": {"deny": ("drop",), "description": "A database."}})
        upstream.fleet.reconfigure(replace(config, path=upstream.fleet.now.config.path))
        await anyio.sleep(1)
        assert way.taken == 0
        assert set(upstream.fleet.now.catalog.entries) == {"db__query"}
        upstream.fleet.reconfigure(configured({"db": {"start": "eager"}}))
        await ready(upstream)
        assert way.taken == 1


async def test_prompts_and_resources_of_one_that_rests_are_listed_and_read(
    tmp_path: Path, client_era: Era, server_era: Era
) -> None:
    async def read(_context: Dispatch, params: Json) -> Json:
        return {"contents": [{"uri": params["uri"], "text": "nothing new"}]}

    server = RawServer(server_era, resources__read=read)
    server.tool("one", echo)
    server.resources = [{"uri": "log://today", "name": "log"}]
    server.prompts = [{"name": "greet"}]
    last_known = await learned(tmp_path, {"a": server.connect})
    way = Way(server.connect)

    async with (
        aggregating({"a": way}, last_known=last_known) as upstream,
        visiting(upstream, client_era) as client,
    ):
        assert "log://today" in [
            str(each.uri) for each in (await client.list_resources()).resources
        ]
        assert [each.name for each in (await client.list_prompts()).prompts] == ["a__greet"]
        assert way.taken == 0
        contents = (await client.read_resource("log://today")).contents

    assert [each.text for each in contents if isinstance(each, types.TextResourceContents)] == [
        "nothing new"
    ]
    assert way.taken == 1
