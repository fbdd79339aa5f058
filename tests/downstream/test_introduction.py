"""What servers say of themselves, and which era they say it in."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

import anyio
import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from aggregator.basics.tasks import TASKS
from aggregator.catalog import Ready
from aggregator.config import ServerConfig
from aggregator.downstream.era_choice import EraChoice
from aggregator.downstream.eras import NEEDED_FOR, REMEMBERED_FOR, Eras
from aggregator.downstream.exchange import Exchange
from aggregator.downstream.incoming import Incoming
from aggregator.downstream.introduction import (
    PROBE_HEAD_START,
    EraUnclearError,
    Ourselves,
    introduce,
)
from aggregator.downstream.peer import Peer
from aggregator.downstream.transport import Transport, Undelivered, UndeliveredError
from aggregator.memory import NoMemory, Notebook
from aggregator.names import ServerName
from tests.peers import ERAS, Era, aggregating, configured, ready
from tests.raw import Dispatch, Json, RawServer, raw_client
from tests.transports import NoNews, Script

pytestmark = pytest.mark.anyio

ABLE: Json = {"elicitation": {}, "roots": {"listChanged": True}, "x-unknown": {}}


async def nothing(_context: Dispatch, _params: Json) -> Json:
    return {"content": []}


async def test_instructions_are_found_with_the_tools_of_their_server_and_never_in_ours(
    client_era: Era, server_era: Era
) -> None:
    server = RawServer(server_era)
    server.tool("draw", nothing, description="Draws")

    async with aggregating({"artist": server.connect}) as upstream:
        await ready(upstream)
        async with raw_client(upstream, client_era) as client:
            found = await client.request(
                "tools/call", {"name": "ToolSearch", "arguments": {"query": "server:artist"}}
            )

    assert "artist says how it is used:\n| Be raw" in found["content"][0]["text"]
    assert "Be raw" not in client.server["instructions"]


async def test_a_server_that_starts_is_told_what_the_clients_that_are_there_can_be_asked(
    client_era: Era,
) -> None:
    server = RawServer("handshake")
    met = anyio.Event()

    @asynccontextmanager
    async def connect_late() -> AsyncGenerator[Transport, None]:
        await met.wait()
        async with server.connect() as transport:
            yield transport

    async with aggregating({"late": connect_late}) as upstream:
        async with raw_client(upstream, client_era, ABLE):
            met.set()
            await ready(upstream)

    told: Json = {"elicitation": {"form": {}}, "roots": {"listChanged": True}}
    assert server.client["capabilities"] == told


async def test_a_server_that_starts_before_any_client_is_told_that_there_may_be_able_ones() -> None:
    server = RawServer("handshake")

    async with aggregating({"early": server.connect}) as upstream:
        await ready(upstream)

    assert set(server.client["capabilities"]) == {"elicitation", "sampling", "roots"}


async def test_extensions_are_passed_on_but_for_what_an_older_server_cannot_use() -> None:
    ui: Json = {"io.modelcontextprotocol/ui": {"a": 1}}
    extensions: Json = {TASKS: {}, **ui}
    server = RawServer("modern")
    server.tool("look", nothing)
    async with aggregating({"slow": server.connect}) as upstream:
        await ready(upstream)
        for era in ERAS:
            async with raw_client(upstream, era, {"extensions": extensions}) as client:
                await client.request("tools/call", {"name": "slow__look", "arguments": {}})

    declared = [
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"]["extensions"]
        for method, params in server.received
        if method == "tools/call"
    ]
    assert dict(zip(ERAS, declared, strict=True)) == {"modern": extensions, "handshake": ui}


async def test_a_task_of_an_older_server_is_an_error() -> None:
    async def hand_over(_context: Dispatch, _params: Json) -> Json:
        return {"resultType": "task", "taskId": "1"}

    server = RawServer("handshake")
    server.tool("hand_over", hand_over)
    async with aggregating({"slow": server.connect}) as upstream:
        await ready(upstream)
        async with raw_client(upstream, "modern", {"extensions": {TASKS: {}}}) as client:
            with pytest.raises(Exception, match="answered with a task"):
                await client.request("tools/call", {"name": "slow__hand_over", "arguments": {}})


class Silent(RawServer):
    """A server that does not answer what it does not know, as some old ones do not."""

    async def _usual(self, context: Dispatch, method: str, params: Json) -> Json:
        if method == "server/discover":
            await anyio.sleep_forever()
        return await super()._usual(context, method, params)


@pytest.mark.parametrize("anyio_backend", ["trio"])
async def test_a_silent_old_server_is_probed_only_once() -> None:
    memory = Notebook(None)
    first, second = Silent("handshake"), Silent("handshake")

    for server in (first, second):
        async with aggregating({"old": server.connect}, memory=memory) as upstream:
            with anyio.fail_after(PROBE_HEAD_START + 5):
                await ready(upstream)
            assert isinstance(upstream.fleet.now.catalog.servers[ServerName("old")], Ready)

    assert first.methods()[:2] == ["server/discover", "initialize"]
    assert second.methods()[0] == "initialize"


def test_an_era_is_remembered_for_a_while_and_forgotten_when_it_has_changed() -> None:
    now = [1000.0]
    server = configured({"old": {"command": "x"}}).servers[ServerName("old")]
    eras = Eras(Notebook(None), clock=lambda: now[0])

    assert eras.recall(server) is None
    eras.note(server, "handshake")
    assert eras.recall(server) == "handshake"
    now[0] += REMEMBERED_FOR + 1
    assert eras.recall(server) is None
    eras.note(server, "handshake")
    eras.note(server, "modern")
    assert eras.recall(server) is None


def test_an_era_that_a_server_needs_is_remembered_until_it_refuses_that_era() -> None:
    """Asked again, it would answer in the modern one, and its next question would fail."""
    server, now = ServerConfig(ServerName("x"), "x", command="serve"), [1000.0]
    eras = Eras(Notebook(None), clock=lambda: now[0])

    eras.note_need(server)
    now[0] += REMEMBERED_FOR + 1
    eras.note(server, "modern")
    assert eras.recall(server) == "handshake"
    now[0] += NEEDED_FOR
    assert eras.recall(server) is None
    eras.note_need(server)
    eras.forget(server)
    assert eras.recall(server) is None


def test_a_guess_is_not_remembered_because_something_else_went_wrong_between() -> None:
    server = configured({"old": {"command": "x"}}).servers[ServerName("old")]
    eras = Eras(Notebook(None))
    choice = EraChoice(server, eras)

    choice.doubt(EraUnclearError("it ended"))
    choice.doubt(TimeoutError())
    choice.met("handshake")

    assert eras.recall(server) is None
    assert choice.era is None


@pytest.mark.parametrize("memory", [Notebook(None), NoMemory()])
def test_what_ends_at_each_probe_is_probed_twice_in_a_run(memory: Notebook) -> None:
    server = configured({"old": {"command": "x"}}).servers[ServerName("old")]
    choice = EraChoice(server, Eras(memory))

    for expected in (None, "handshake"):
        choice.doubt(EraUnclearError("it ended"))
        choice.met("handshake")
        assert choice.era == expected


@pytest.mark.parametrize("era", ["handshake", "modern"])
def test_a_configured_era_is_stronger_than_what_is_remembered(era: Era) -> None:
    plain = ServerConfig(ServerName("x"), "x", command="serve")
    eras = Eras(Notebook(None))
    eras.note_need(plain)

    assert eras.recall(replace(plain, era=era)) == era


@asynccontextmanager
async def exchanging(script: Script) -> AsyncGenerator[Exchange, None]:
    exchange = Exchange(script)
    with script:
        async with anyio.create_task_group() as group:
            await group.start(exchange.run, Incoming(NoNews(), refuse))
            yield exchange
            group.cancel_scope.cancel()


async def refuse(_call: object, method: str, _params: object) -> Json:
    raise MCPError(types.METHOD_NOT_FOUND, method)


OURS = Ourselves({"name": "tests", "version": "1"}, lambda: {"roots": {}})
OLD: Json = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "old", "version": "3"},
    "instructions": "Be kind",
}


async def test_a_server_that_does_not_know_the_modern_era_is_asked_in_the_older() -> None:
    script = Script()

    async def serve() -> None:
        await script.refuse(types.METHOD_NOT_FOUND, "Method not found")
        asked = await script.answer(OLD)
        assert (asked.method, (asked.params or {})["capabilities"]) == ("initialize", {"roots": {}})

    async with exchanging(script) as exchange, anyio.create_task_group() as group:
        group.start_soon(serve)
        peer = await introduce(exchange, OURS, None)
        initialized = await script.sent()

        assert peer == Peer("2025-06-18", "old", "3", {"tools": {}}, "Be kind", is_told_less=True)
        assert peer.era == "handshake"
        assert isinstance(initialized, types.JSONRPCNotification)
        assert initialized.method == "notifications/initialized"


async def test_a_server_of_a_known_era_is_asked_in_no_other() -> None:
    script = Script()
    async with exchanging(script) as exchange, anyio.create_task_group() as group:
        group.start_soon(script.refuse, types.METHOD_NOT_FOUND, "Method not found")
        with pytest.raises(MCPError, match="not found"):
            await introduce(exchange, OURS, "modern")

    assert len(script.headers) == 1


async def test_a_server_that_hangs_up_on_the_first_question_may_need_the_other() -> None:
    script = Script()
    async with exchanging(script) as exchange:
        script.end()
        with pytest.raises(EraUnclearError, match="all it had to say"):
            await introduce(exchange, OURS, None)


async def test_what_the_transport_says_tells_more_than_that_the_connection_closed() -> None:
    script = Script()

    async def serve() -> None:
        asked = await script.asked()
        script.come(Undelivered("auth required", is_barred=True, request=asked.id))
        script.end()

    async with exchanging(script) as exchange, anyio.create_task_group() as group:
        group.start_soon(serve)
        with pytest.raises(UndeliveredError, match="auth required"):
            await introduce(exchange, OURS, None)


@pytest.mark.parametrize("version", ["1999-01-01", 7, None])
async def test_a_version_that_nobody_knows_is_refused(version: object) -> None:
    script = Script()
    async with exchanging(script) as exchange, anyio.create_task_group() as group:
        group.start_soon(script.answer, {**OLD, "protocolVersion": version})
        with pytest.raises(MCPError, match="unknown protocol"):
            await introduce(exchange, OURS, "handshake")
