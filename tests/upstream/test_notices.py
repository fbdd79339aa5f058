"""Progress and log messages reach the request they belong to, and nobody else."""

from typing import Any

import anyio
import pytest

from tests.patience import PATIENCE
from tests.peers import Era, aggregating, ready
from tests.raw import Dispatch, Json, RawServer, raw_client

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("each_way")]

LEVEL = "io.modelcontextprotocol/logLevel"
LOGGED = ("debug", "info", "error")


def talking(era: Era) -> RawServer:
    """Be a server whose tool `talk` logs at three levels and tells how far it is."""

    async def talk(_context: Dispatch, params: Json) -> Json:
        token = params["_meta"]["progressToken"]
        for number, level in enumerate(LOGGED):
            data = {"said": [level, None]}
            await server.say("notifications/message", {"level": level, "data": data, "x": None})
            progress: Json = {"progressToken": token, "progress": number, "total": 2**60}
            await server.say("notifications/progress", {**progress, "message": "…", "x": [None]})
        return {"content": []}

    server = RawServer(era)
    server.tool("talk", talk)
    return server


WAIT: Json = {"name": "waiter__wait", "arguments": {}}
TALK: Json = {"name": "talker__talk", "arguments": {}}


async def test_progress_arrives_in_order_under_the_client_s_own_token(
    client_era: Era, server_era: Era
) -> None:
    async with aggregating({"talker": talking(server_era).connect}) as upstream:
        await ready(upstream)
        async with raw_client(upstream, client_era) as client:
            await client.request("tools/call", TALK, progressToken="mine")
            await client.request("tools/call", TALK)

    told = [params for method, params in client.heard if method == "notifications/progress"]
    assert told == [
        {"progressToken": "mine", "progress": n, "total": 2**60, "message": "…", "x": [None]}
        for n in range(3)
    ]


@pytest.mark.parametrize(("wanted", "expected"), [("debug", 3), ("info", 2), ("error", 1)])
async def test_log_messages_arrive_from_the_level_on_that_was_asked_for(
    client_era: Era, server_era: Era, wanted: str, expected: int
) -> None:
    server = talking(server_era)

    async with aggregating({"talker": server.connect}) as upstream:
        await ready(upstream)
        async with raw_client(upstream, client_era) as client:
            if client_era == "modern":
                await client.request("tools/call", TALK, **{LEVEL: wanted})
            else:
                await client.request("logging/setLevel", {"level": wanted})
                await client.request("tools/call", TALK)

    told = [params for method, params in client.heard if method == "notifications/message"]
    assert [params["level"] for params in told] == list(LOGGED[-expected:])
    assert told[-1] == {"level": "error", "data": {"said": ["error", None]}, "x": None}
    asked = [params for method, params in server.received if method == "tools/call"][-1]
    if server_era == "modern":
        assert asked["_meta"][LEVEL] == wanted
    else:
        assert ("logging/setLevel", {"level": wanted}) in server.received


async def test_a_modern_client_that_asks_for_no_log_gets_none(server_era: Era) -> None:
    async with aggregating({"talker": talking(server_era).connect}) as upstream:
        await ready(upstream)
        async with raw_client(upstream, "modern") as client:
            await client.request("tools/call", TALK)

    assert "notifications/message" not in [method for method, _ in client.heard]


async def test_what_cannot_be_attributed_to_one_client_reaches_nobody(server_era: Era) -> None:
    started: list[Any] = []
    both, done = anyio.Event(), anyio.Event()

    async def wait(_context: Dispatch, params: Json) -> Json:
        started.append(params)
        if len(started) == 2:
            both.set()
        await done.wait()
        return {"content": []}

    server = RawServer(server_era)
    server.tool("wait", wait)
    refused: list[Exception] = []

    async with aggregating({"waiter": server.connect}) as upstream:
        await ready(upstream)
        able: Json = {"elicitation": {}}
        async with (
            raw_client(upstream, "handshake", able) as one,
            raw_client(upstream, "handshake", able) as other,
            anyio.create_task_group() as group,
        ):
            for client in (one, other):
                group.start_soon(client.request, "tools/call", WAIT)
            with anyio.fail_after(PATIENCE):
                await both.wait()
            await server.say("notifications/message", {"level": "error", "data": "whose?"})
            try:
                await server.ask("elicitation/create", {"message": "whose?"})
            except Exception as error:  # noqa: BLE001 - what it is, is asserted
                refused.append(error)
            done.set()

    assert "cannot be attributed to one client" in str(refused[0])
    assert one.questions == other.questions == []
    assert "notifications/message" not in [method for method, _ in (*one.heard, *other.heard)]


async def test_what_a_server_says_of_a_call_that_was_given_up_reaches_no_other_client(
    server_era: Era,
) -> None:
    given_up, done = anyio.Event(), anyio.Event()

    async def wait(_context: Dispatch, params: Json) -> Json:
        if params["arguments"].get("whose") == "one":
            try:
                await anyio.sleep_forever()
            finally:
                given_up.set()
        await done.wait()
        return {"content": []}

    server = RawServer(server_era)
    server.tool("wait", wait)

    async with aggregating({"waiter": server.connect}) as upstream:
        await ready(upstream)
        async with (
            raw_client(upstream, "handshake") as one,
            raw_client(upstream, "handshake") as other,
            anyio.create_task_group() as group,
        ):
            for client in (one, other):
                await client.request("logging/setLevel", {"level": "debug"})
            with anyio.CancelScope() as first:
                group.start_soon(give_up, first, server)
                await one.request("tools/call", {**WAIT, "arguments": {"whose": "one"}})
            with anyio.fail_after(PATIENCE):
                await given_up.wait()
            server.asked = anyio.Event()
            group.start_soon(other.request, "tools/call", WAIT)
            await server.asked.wait()
            await server.say("notifications/message", {"level": "error", "data": "one's"})
            done.set()

    assert "notifications/message" not in [method for method, _ in (*one.heard, *other.heard)]


async def give_up(scope: anyio.CancelScope, server: RawServer) -> None:
    """Cancel a call as soon as it has reached its server."""
    while "tools/call" not in server.methods():
        server.asked = anyio.Event()
        await server.asked.wait()
    scope.cancel()
