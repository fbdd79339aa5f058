"""What else passes in each pair of eras: definitions, structured results, and late news."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from aggregator.app.life import IDENTITY
from aggregator.config import Settings
from aggregator.upstream.connected_clients import LOGGED_AT_ONCE
from aggregator.upstream.server import Upstream
from tests.peers import Era, aggregating, ready
from tests.raw import Dispatch, Json, RawClient, RawServer, raw_client

pytestmark = pytest.mark.anyio

ABLE: Json = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
CALL: Json = {"name": "peer__work", "arguments": {}}
URL: Json = {
    "mode": "url",
    "message": "Sign in",
    "url": "https://example.com/sign-in",
    "elicitationId": "e-1",
}
COMPLETE = "notifications/elicitation/complete"
MESSAGE = "notifications/message"

DEFINITION: Json = {
    "title": "Work",
    "description": "Works",
    "annotations": {"readOnlyHint": True, "title": "Works", "x-hint": 1},
    "icons": [{"src": "data:image/png;base64,AA==", "mimeType": "image/png", "sizes": ["1x1"]}],
    "outputSchema": {"type": "object", "properties": {"sum": {"type": "number"}}},
    "_meta": {"vendor/key": [None, 1]},
}
RESULT: Json = {
    "content": [{"type": "text", "text": "3", "annotations": {"audience": ["user"]}}],
    "structuredContent": {"sum": 3, "huge": 2**70, "nothing": None},
    "_meta": {"vendor/result": {"deep": [None]}},
}


@asynccontextmanager
async def pair(
    server: RawServer, client_era: Era, capabilities: Json | None = None
) -> AsyncGenerator[tuple[Upstream, RawClient], None]:
    """Put a client that sees everything in front of a server."""
    async with aggregating({"peer": server.connect}, Settings(surface="full")) as upstream:
        await ready(upstream)
        async with raw_client(upstream, client_era, capabilities) as client:
            yield upstream, client


def working(era: Era, handler: Any = None, **definition: Any) -> RawServer:
    async def work(_context: Dispatch, _params: Json) -> Json:
        return dict(RESULT)

    server = RawServer(era)
    server.tool("work", handler or work, **definition)
    return server


async def test_a_definition_keeps_its_titles_icons_annotations_schemas_and_meta(
    client_era: Era, server_era: Era
) -> None:
    async with pair(working(server_era, **DEFINITION), client_era) as (_, client):
        listed = (await client.request("tools/list"))["tools"][0]

    meta = listed.pop("_meta")
    expected = {key: value for key, value in DEFINITION.items() if key != "_meta"}
    assert {key: listed[key] for key in expected} == expected
    assert meta["vendor/key"] == [None, 1]


async def test_a_structured_result_and_its_meta_arrive_as_they_were_sent(
    client_era: Era, server_era: Era
) -> None:
    async with pair(working(server_era, **DEFINITION), client_era) as (_, client):
        result = await client.request("tools/call", CALL)

    assert result["structuredContent"] == RESULT["structuredContent"]
    assert result["content"] == RESULT["content"]
    assert result["_meta"]["vendor/result"] == {"deep": [None]}


async def test_the_meta_of_a_request_arrives_but_for_what_belongs_to_one_hop(
    client_era: Era, server_era: Era
) -> None:
    server = working(server_era)

    async with pair(server, client_era) as (_, client):
        await client.request("tools/call", CALL, **{"vendor/trace": {"a": None}})

    sent = next(params for method, params in server.received if method == "tools/call")["_meta"]
    assert sent["vendor/trace"] == {"a": None}
    client_info = sent.get(types.CLIENT_INFO_META_KEY, {}).get("name")
    assert client_info == (IDENTITY["name"] if server_era == "modern" else None)


async def test_instructions_stay_with_their_server(client_era: Era, server_era: Era) -> None:
    async with pair(working(server_era), client_era) as (_, client):
        described = await client.request("resources/read", {"uri": "catalog://servers"})

    assert "Be raw" in described["contents"][0]["text"]
    assert "Be raw" not in str(client.server)


async def test_a_call_that_is_cancelled_in_the_queue_never_reaches_its_server(
    client_era: Era, server_era: Era
) -> None:
    done = anyio.Event()

    async def wait(_context: Dispatch, _params: Json) -> Json:
        await done.wait()
        return {"content": []}

    server = working(server_era, wait)
    bounds = {"max_in_flight": 1}
    async with aggregating({"peer": server.connect}, peer=bounds) as upstream:
        await ready(upstream)
        async with raw_client(upstream, client_era) as client, anyio.create_task_group() as group:
            group.start_soon(client.request, "tools/call", CALL)
            while "tools/call" not in server.methods():
                server.asked = anyio.Event()
                await server.asked.wait()
            with anyio.CancelScope() as queued:
                async with anyio.create_task_group() as waiting:
                    waiting.start_soon(client.request, "tools/call", CALL)
                    await anyio.wait_all_tasks_blocked()
                    queued.cancel()
            # What comes after the cancellation is read after it.
            await client.request("tools/list")
            done.set()
        async with raw_client(upstream, client_era) as client:
            await client.request("tools/call", CALL)

    assert server.methods().count("tools/call") == 2
    assert "notifications/cancelled" not in server.methods()


def going_elsewhere(era: Era) -> RawServer:
    """Be a server that asks its user to open a page."""

    async def ask(_context: Dispatch, params: Json) -> Json:
        if era == "handshake":
            return {"content": [], "structuredContent": await server.ask("elicitation/create", URL)}
        if "inputResponses" in params:
            return {"content": [], "structuredContent": params["inputResponses"]["a"]}
        questions = {"a": {"method": "elicitation/create", "params": URL}}
        return {"resultType": "input_required", "inputRequests": questions, "requestState": "s"}

    server = working(era, ask)
    return server


async def test_a_page_to_open_is_asked_for_in_the_name_of_its_server(
    client_era: Era, server_era: Era
) -> None:
    async with pair(going_elsewhere(server_era), client_era, ABLE) as (_, client):
        client.answers["elicitation/create"] = lambda _params: {"action": "accept"}
        result = await client.request("tools/call", CALL)
        asked = [params for _, params in client.questions]
        if client_era == "modern":
            (key, question), *_ = result["inputRequests"].items()
            asked = [question["params"]]
            again = {"inputResponses": {key: {"action": "accept"}}}
            state = {"requestState": result["requestState"]}
            result = await client.request("tools/call", {**CALL, **again, **state})

    assert asked == [{**URL, "message": "[peer] Sign in"}]
    assert result["structuredContent"] == {"action": "accept"}


async def test_the_end_of_what_was_done_elsewhere_is_told_to_who_was_asked() -> None:
    server = going_elsewhere("handshake")

    async with pair(server, "handshake", ABLE) as (upstream, client):
        client.answers["elicitation/create"] = lambda _params: {"action": "accept"}
        async with raw_client(upstream, "handshake", ABLE) as other:
            await client.request("tools/call", CALL)
            for number in ("unknown", "e-1", "e-1"):
                await server.say(COMPLETE, {"elicitationId": number})
            assert await client.until_heard(COMPLETE) == {"elicitationId": "e-1"}
            await other.request("ping")
            await client.request("ping")

    assert [method for method, _ in client.heard].count(COMPLETE) == 1
    assert COMPLETE not in [method for method, _ in other.heard]


async def test_a_refusal_until_a_page_was_opened_is_labelled_and_its_end_is_told() -> None:
    async def refuse(_context: Dispatch, _params: Json) -> Json:
        raise MCPError(types.URL_ELICITATION_REQUIRED, "First", {"elicitations": [URL], "x": 1})

    server = working("handshake", refuse)

    async with pair(server, "handshake", ABLE) as (_, client):
        with pytest.raises(MCPError) as caught:
            await client.request("tools/call", CALL)
        await server.say(COMPLETE, {"elicitationId": "e-1"})
        await client.until_heard(COMPLETE)

    assert caught.value.data == {"elicitations": [{**URL, "message": "[peer] Sign in"}], "x": 1}


async def test_what_is_logged_outside_of_calls_reaches_the_sessions_that_asked_for_it() -> None:
    server = working("handshake")

    async with pair(server, "handshake") as (upstream, all_ears):
        async with (
            raw_client(upstream, "handshake") as choosy,
            raw_client(upstream, "handshake") as silent,
            raw_client(upstream, "modern") as modern,
        ):
            await all_ears.request("logging/setLevel", {"level": "debug"})
            await choosy.request("logging/setLevel", {"level": "error"})
            await server.say(MESSAGE, {"level": "info", "data": [None], "logger": "db"})
            await server.say(MESSAGE, {"level": "error", "data": "late", "x": None})
            await choosy.until_heard(MESSAGE)
            for client in (all_ears, choosy, silent, modern):
                await client.request("tools/list")

    info: Json = {"level": "info", "data": [None], "logger": "peer/db"}
    error: Json = {"level": "error", "data": "late", "x": None, "logger": "peer"}
    told = [
        [params for method, params in client.heard if method == MESSAGE]
        for client in (all_ears, choosy, silent, modern)
    ]
    assert told == [[info, error], [error], [], []]


async def test_a_flood_of_logs_outside_of_calls_is_cut_short() -> None:
    server = working("handshake")

    async with pair(server, "handshake") as (_, client):
        await client.request("logging/setLevel", {"level": "debug"})
        for number in range(3 * LOGGED_AT_ONCE):
            await server.say(MESSAGE, {"level": "info", "data": number})
        server.prompts = [{"name": "last"}]
        await server.change("notifications/prompts/list_changed")
        await client.until_heard("notifications/prompts/list_changed")

    assert [method for method, _ in client.heard].count(MESSAGE) == LOGGED_AT_ONCE
