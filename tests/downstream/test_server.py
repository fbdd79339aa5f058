"""One server: what it tells, and whatever it does while it is called."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import groupby
from typing import Any

import anyio
import pytest
import trio
from mcp.shared.memory import create_client_server_memory_streams
from mcp_types import JSONRPCRequest
from trio.testing import MockClock

from aggregator.basics.json import JsonObject
from aggregator.catalog import Failed, Pending, Ready, ServerState
from aggregator.config import ServerConfig
from aggregator.downstream.deadlines import OVERDUE
from aggregator.downstream.eras import Eras
from aggregator.downstream.introduction import Ourselves
from aggregator.downstream.link import Link
from aggregator.downstream.questions import refuse
from aggregator.downstream.requests import TIMEOUTS_TOLERATED
from aggregator.downstream.server import Downstream
from aggregator.downstream.transport import Connect, Transport
from aggregator.errors import (
    CallError,
    CallTimeoutError,
    ServerLostError,
    ServerUnavailableError,
)
from aggregator.memory import NoMemory, Notebook
from aggregator.names import ServerName
from tests.downstream.linking import US, Client
from tests.peers import Mortal, aggregating, failing, ready
from tests.raw import Dispatch, Json, RawServer, raw_client
from tests.transports import StreamTransport

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


DB = ServerConfig(ServerName("db"), "db", call_timeout=5.0)


class Fleet:
    """Remembers what it is told of servers."""

    def __init__(self) -> None:
        self.states: list[ServerState] = []
        self.told: list[object] = []

    def reported(self, server: ServerName, state: ServerState) -> None:
        assert server == DB.name
        self.states.append(state)

    def updated(self, server: ServerName, uri: str) -> None:
        self.told.append((server, uri))

    def logged(self, server: ServerName, params: JsonObject) -> None:
        self.told.append((server, params))

    asked = staticmethod(refuse)


@asynccontextmanager
async def keeping(connect: Connect, fleet: Fleet) -> AsyncGenerator[Downstream, None]:
    """Keep a server connected, and wait until it is ready or not."""
    downstream = Downstream(
        DB,
        connect,
        fleet,
        ours=Ourselves(US, dict[str, Any]),
        eras=Eras(NoMemory()),
        jitter=lambda: 1.0,
    )
    async with anyio.create_task_group() as group:
        group.start_soon(downstream.run)
        await anyio.sleep(0.1)
        yield downstream
        group.cancel_scope.cancel()


async def test_what_a_server_tells_is_passed_on_under_its_name() -> None:
    fleet, server = Fleet(), RawServer("handshake")
    async with keeping(server.connect, fleet) as downstream:
        await server.say("notifications/resources/updated", {"uri": "x://1"})
        await server.say("notifications/message", {"level": "info", "data": "hello"})
        await anyio.sleep(1)
        shown = repr(downstream)

    assert fleet.told == [("db", "x://1"), ("db", {"level": "info", "data": "hello"})]
    # Its prompts and its resources come after its tools.
    assert [type(state) for state in fleet.states] == [Pending, Ready, Ready, Ready]
    assert shown == "<Downstream db <Link raw handshake 0 in flight> 0 requested>"


async def test_a_server_that_is_lost_is_pending_and_then_ready_again() -> None:
    fleet, mortal = Fleet(), Mortal(RawServer("handshake").connect)
    async with keeping(mortal, fleet):
        mortal.cut()
        await anyio.sleep(1)

    assert [kind for kind, _ in groupby(map(type, fleet.states))] == [Pending, Ready] * 2
    back = [state.known for state in fleet.states if isinstance(state, Pending)]
    assert back[0] is None
    assert all(isinstance(state, Ready) for state in back[1:])


async def test_a_server_that_cannot_be_started_says_why_to_who_calls() -> None:
    fleet = Fleet()
    async with keeping(failing(FileNotFoundError("no `db` on PATH")), fleet) as downstream:
        with pytest.raises(ServerUnavailableError, match="no `db` on PATH"):
            await downstream.request("tools/call", {"name": "x"}, Client())

    assert isinstance(fleet.states[-1], Failed)
    assert repr(downstream) == "<Downstream db no `db` on PATH 0 requested>"


class Touchy(RawServer):
    """A server that ends when it is asked what it does not know."""

    def __init__(self, endings: int) -> None:
        super().__init__("handshake")
        self.mortal = Mortal(self.connect)
        self._endings = endings

    async def _usual(self, context: Dispatch, method: str, params: Json) -> Json:
        if method == "server/discover" and self._endings:
            self._endings -= 1
            self.mortal.cut()
            await anyio.sleep_forever()
        return await super()._usual(context, method, params)


@pytest.mark.parametrize(
    ("endings", "asked"),
    [
        # It was only killed once: asked again, it refuses as others do, which is remembered.
        (1, ["server/discover", "initialize", "server/discover", "initialize", "initialize"]),
        # It always ends so: that it did twice is remembered.
        (9, ["server/discover", "initialize"] * 2 + ["initialize"]),
    ],
)
async def test_that_a_server_ended_once_says_nothing_of_its_era(
    endings: int, asked: list[str]
) -> None:
    memory, server = Notebook(None), Touchy(endings)

    for _ in range(3):
        async with aggregating({"old": server.mortal}, memory=memory) as upstream:
            await ready(upstream)

    introductions = [each for each in server.methods() if each in asked]
    assert introductions == asked


async def hang(_context: Dispatch, _params: Json) -> Json:
    await anyio.sleep_forever()
    raise AssertionError


@asynccontextmanager
async def lossy(
    fleet: Fleet, server: RawServer, places: int = 8
) -> AsyncGenerator[tuple[Downstream, Link], None]:
    """Have a server that hangs when it is called, and its link."""
    server.tool("hang", hang)
    async with keeping(server.connect, fleet) as downstream:
        downstream.reconfigure(replace(DB, max_in_flight=places))
        link = downstream.requests.link
        assert link is not None
        yield downstream, link


async def test_a_call_that_meets_a_link_which_has_just_ended_was_not_run() -> None:
    fleet, server = Fleet(), RawServer("handshake")
    async with lossy(fleet, server) as (downstream, link):
        link.give_up("it fell over")
        with pytest.raises(ServerUnavailableError, match=r"it fell over\. The tool was not run"):
            await downstream.request("tools/call", {"name": "hang"}, Client())

    assert "tools/call" not in server.methods()


async def test_so_was_one_that_waited_for_its_turn_meanwhile() -> None:
    fleet, server, found = Fleet(), RawServer("handshake"), list[object]()
    async with lossy(fleet, server, places=1) as (downstream, link):

        async def call() -> None:
            try:
                await downstream.request("tools/call", {"name": "hang"}, Client())
            except CallError as error:
                found.append(type(error))

        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(call)
            await anyio.wait_all_tasks_blocked()
            link.give_up("it fell over")

    assert found.count(ServerLostError) == 1
    assert found.count(ServerUnavailableError) == 2
    assert server.methods().count("tools/call") == 1


async def test_so_was_one_that_first_had_its_server_log_more() -> None:
    fleet, server, client = Fleet(), RawServer("handshake"), Client()
    client.log_level = "debug"
    server.handlers["logging/setLevel"] = hang
    async with lossy(fleet, server) as (downstream, link), anyio.create_task_group() as group:

        async def call() -> None:
            with pytest.raises(ServerUnavailableError, match="The tool was not run"):
                await downstream.request("tools/call", {"name": "hang"}, client)

        group.start_soon(call)
        await anyio.wait_all_tasks_blocked()
        link.give_up("it fell over")

    assert "logging/setLevel" in server.methods()
    assert "tools/call" not in server.methods()


async def test_a_server_that_leaves_too_much_unanswered_is_given_up() -> None:
    async def hang(_context: Dispatch, _params: Json) -> Json:
        await anyio.sleep_forever()
        return {}

    fleet, server = Fleet(), RawServer("handshake")
    server.tool("hang", hang)
    async with keeping(server.connect, fleet) as downstream:
        for _ in range(TIMEOUTS_TOLERATED):
            with pytest.raises(CallTimeoutError):
                await downstream.request("tools/call", {"name": "hang"}, Client())
        await anyio.sleep(1)
        reasons = [state.reason for state in fleet.states if isinstance(state, Pending)]

    assert "it did not answer 3 calls in a row" in reasons


@pytest.mark.parametrize("reports", [False, True])
async def test_an_answer_that_came_while_we_were_stopped_is_no_timeout(*, reports: bool) -> None:
    """SIGSTOP, a closed lid: the time is over, and the answer is there."""
    go_on = anyio.Event()

    async def work(_context: Dispatch, params: Json) -> Json:
        if reports:
            progress = {"progressToken": params["_meta"]["progressToken"], "progress": 1}
            await server.say("notifications/progress", progress)
        called.set()
        await go_on.wait()
        return {"content": [{"type": "text", "text": "done"}]}

    fleet, server, client = Fleet(), RawServer("handshake"), Client()
    called, found = anyio.Event(), list[dict[str, Any]]()
    server.tool("work", work)

    async def call(downstream: Downstream) -> None:
        found.append(await downstream.request("tools/call", {"name": "work"}, client))

    async with keeping(server.connect, fleet) as downstream, anyio.create_task_group() as group:
        group.start_soon(call, downstream)
        await called.wait()
        clock = trio.lowlevel.current_clock()
        assert isinstance(clock, MockClock)
        go_on.set()
        clock.jump(DB.call_timeout + OVERDUE + 1)

    assert found[0]["content"][0]["text"] == "done"
    assert len(client.told) == reports


async def test_a_server_that_was_starting_while_we_were_stopped_has_its_time_back() -> None:
    fleet, server, go_on = Fleet(), RawServer("handshake"), anyio.Event()

    @asynccontextmanager
    async def connect() -> AsyncGenerator[Transport, None]:
        await go_on.wait()
        async with server.connect() as transport:
            yield transport

    async with keeping(connect, fleet):
        clock = trio.lowlevel.current_clock()
        assert isinstance(clock, MockClock)
        clock.jump(10 * DB.connect_timeout)
        await anyio.sleep(DB.connect_timeout / 2)
        go_on.set()
        await anyio.sleep(1)

    # It was not given up, nor is it given up for having taken so long.
    assert [type(state) for state in fleet.states] == [Pending, Ready, Ready, Ready]


async def test_a_server_that_asks_twice_under_one_number_stays_connected() -> None:
    async def ask_twice(_context: Dispatch, _params: Json) -> Json:
        for text in ("One?", "Two?"):
            params: Json = {
                "message": text,
                "requestedSchema": {"type": "object", "properties": {}},
            }
            await server.write(
                JSONRPCRequest(jsonrpc="2.0", id=7, method="elicitation/create", params=params)
            )
        return {"content": [{"type": "text", "text": "done"}]}

    server = RawServer("handshake")
    server.tool("work", ask_twice)
    async with aggregating({"peer": server.connect}) as upstream:
        await ready(upstream)
        async with raw_client(upstream, "handshake", {"elicitation": {}}) as client:
            client.answers["elicitation/create"] = lambda _params: {"action": "decline"}
            call: Json = {"name": "peer__work", "arguments": {}}
            results = [await client.request("tools/call", call) for _ in range(2)]

    assert [each["content"][0]["text"] for each in results] == ["done", "done"]
    assert server.methods().count("server/discover") == 1


class Barred(StreamTransport):
    """A transport that ends before anything is said, and for which another would do no better."""

    def is_barred(self) -> bool:
        return True


async def test_a_server_that_would_only_do_the_same_again_is_left_until_it_is_called() -> None:
    attempts: list[float] = []

    @asynccontextmanager
    async def connect() -> AsyncGenerator[Transport, None]:
        attempts.append(anyio.current_time())
        async with create_client_server_memory_streams() as (ours, theirs):
            await theirs[1].aclose()
            yield Barred(ours)

    fleet = Fleet()
    async with keeping(connect, fleet) as downstream:
        await anyio.sleep(3600)
        before = len(attempts)
        downstream.wake()
        await anyio.sleep(1)

    assert (before, len(attempts)) == (1, 2)
    assert isinstance(fleet.states[-1], Failed)
