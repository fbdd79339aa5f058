"""Servers that refuse, repeat, interrupt and insist."""

import anyio
import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from aggregator.catalog import Ready
from aggregator.downstream.listening import LISTEN_PATIENCE
from aggregator.downstream.questions import QUESTIONS_AT_ONCE
from aggregator.names import ServerName
from aggregator.upstream.server import Upstream
from tests.peers import Era, aggregating, ready, until
from tests.raw import Dispatch, Json, RawServer, raw_client

pytestmark = pytest.mark.anyio

ABLE: Json = {"elicitation": {}, "sampling": {}}
CALL: Json = {"name": "peer__work", "arguments": {}}


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


def state_of(upstream: Upstream) -> Ready:
    state = upstream.fleet.now.catalog.servers[ServerName("peer")]
    assert isinstance(state, Ready)
    return state


async def test_a_server_that_does_not_stop_asking_is_stopped() -> None:
    async def insist(_context: Dispatch, _params: Json) -> Json:
        return {"resultType": "input_required", "requestState": "again"}

    server = RawServer("modern")
    server.tool("work", insist)

    async with aggregating({"peer": server.connect}) as upstream:
        await ready(upstream)
        async with raw_client(upstream, "handshake", ABLE) as client:
            with pytest.raises(MCPError, match="does not stop asking"):
                await client.request("tools/call", CALL)

    assert server.methods().count("tools/call") == 11


async def test_a_server_that_asks_without_end_is_refused_after_a_while() -> None:
    async def flood(_context: Dispatch, _params: Json) -> Json:
        for _ in range(QUESTIONS_AT_ONCE + 1):
            await server.ask("elicitation/create", {"message": "More?"})
        return {"content": []}

    server = RawServer("handshake")
    server.tool("work", flood)

    async with aggregating({"peer": server.connect}) as upstream:
        await ready(upstream)
        async with raw_client(upstream, "handshake", ABLE) as client:
            client.answers["elicitation/create"] = lambda _params: {"action": "accept"}
            with pytest.raises(MCPError, match="Too many questions"):
                await client.request("tools/call", CALL)

    assert len(client.questions) == QUESTIONS_AT_ONCE


async def test_a_server_may_ping_but_not_ask_what_nobody_knows() -> None:
    answers: list[object] = []

    async def work(_context: Dispatch, _params: Json) -> Json:
        answers.append(await server.ask("ping", {}))
        for method in ("tools/list", "nobody/knows"):
            with pytest.raises(MCPError) as caught:
                await server.ask(method, {})
            answers.append(caught.value.code)
        return {"content": []}

    server = RawServer("handshake")
    server.tool("work", work)

    async with aggregating({"peer": server.connect}) as upstream:
        await ready(upstream)
        async with raw_client(upstream, "handshake", ABLE) as client:
            await client.request("tools/call", CALL)

    assert answers == [{}, types.METHOD_NOT_FOUND, types.METHOD_NOT_FOUND]


async def test_an_answer_that_the_protocol_does_not_know_is_not_passed_on() -> None:
    async def work(_context: Dispatch, _params: Json) -> Json:
        return {"content": [], "structuredContent": await server.ask("elicitation/create", FORM)}

    server = RawServer("handshake")
    server.tool("work", work)

    async with aggregating({"peer": server.connect}) as upstream:
        await ready(upstream)
        async with raw_client(upstream, "handshake", ABLE) as client:
            client.answers["elicitation/create"] = lambda _params: {"action": "explode"}
            with pytest.raises(MCPError, match="malformed"):
                await client.request("tools/call", CALL)


FORM: Json = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}


async def test_a_subscription_that_is_refused_is_an_error_and_watches_nothing() -> None:
    async def refuse(_context: Dispatch, _params: Json) -> Json:
        raise MCPError(types.INVALID_PARAMS, "Not that one")

    server = RawServer("handshake", resources__subscribe=refuse)
    server.resources = [{"uri": "x://y", "name": "y"}]

    async with aggregating({"peer": server.connect}) as upstream:
        await ready(upstream)
        async with raw_client(upstream, "handshake") as client:
            await until(
                lambda: bool(state_of(upstream).offers.resources), lambda: upstream.fleet.changed
            )
            with pytest.raises(MCPError, match="Not that one"):
                await client.request("resources/subscribe", {"uri": "x://y"})
            await client.request("resources/unsubscribe", {"uri": "x://y"})

    assert "resources/unsubscribe" not in server.methods()


async def test_what_a_client_watched_is_left_when_it_leaves(server_era: Era) -> None:
    server = RawServer(server_era)
    server.resources = [{"uri": "x://y", "name": "y"}]

    async with aggregating({"peer": server.connect}) as upstream:
        await ready(upstream)
        async with raw_client(upstream, "handshake") as client:
            await until(
                lambda: bool(state_of(upstream).offers.resources), lambda: upstream.fleet.changed
            )
            await client.request("resources/subscribe", {"uri": "x://y"})
        await anyio.sleep(LISTEN_PATIENCE * 2)

    if server_era == "handshake":
        assert server.methods()[-1] == "resources/unsubscribe"
    else:
        wanted = [
            params["notifications"].get("resourceSubscriptions")
            for method, params in server.received
            if method == "subscriptions/listen"
        ]
        assert wanted == [None, ["x://y"], None]


async def test_a_server_that_wants_another_modern_version_is_asked_again() -> None:
    asked: list[str] = []

    async def discover(_context: Dispatch, params: Json) -> Json:
        asked.append(params["_meta"]["io.modelcontextprotocol/protocolVersion"])
        if len(asked) == 1:
            data = {"supported": ["2026-07-28"], "requested": asked[0]}
            raise MCPError(types.UNSUPPORTED_PROTOCOL_VERSION, "Not that one", data)
        return {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}

    server = RawServer("modern", server__discover=discover)

    async with aggregating({"peer": server.connect}) as upstream:
        await ready(upstream)
        era = state_of(upstream).protocol_version

    assert asked == ["2026-07-28", "2026-07-28"]
    assert era == "2026-07-28"
    assert "initialize" not in server.methods()


async def test_a_tool_whose_header_annotations_are_invalid_is_left_out_in_the_modern_era() -> None:
    async def work(_context: Dispatch, _params: Json) -> Json:
        return {"content": []}

    schema = {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": "no good"}}}
    server = RawServer("modern")
    server.tool("bad", work, inputSchema=schema)
    server.tool("good", work)

    async with aggregating({"peer": server.connect}) as upstream:
        await ready(upstream)
        state = state_of(upstream)

    assert [entry.own_name for entry in state.entries] == ["good"]
    assert "`bad` has an invalid `x-mcp-header`" in state.refused


async def test_lists_of_several_pages_are_one_and_pages_that_repeat_end_them() -> None:
    async def prompts(_context: Dispatch, params: Json) -> Json:
        page = {"prompts": [{"name": f"after_{params.get('cursor')}"}]}
        return {**page, "nextCursor": "same"}

    async def templates(_context: Dispatch, _params: Json) -> Json:
        raise MCPError(types.METHOD_NOT_FOUND, "No templates")

    server = RawServer("handshake", prompts__list=prompts, resources__templates__list=templates)
    server.resources = [{"uri": "x://y", "name": "y"}]
    server.tool("work", prompts)

    async with aggregating({"peer": server.connect}) as upstream:
        await ready(upstream)
        await until(
            lambda: bool(state_of(upstream).offers.resources), lambda: upstream.fleet.changed
        )
        async with raw_client(upstream, "modern") as client:
            listed = (await client.request("prompts/list"))["prompts"]
            completed = await client.request(
                "completion/complete",
                {
                    "ref": {"type": "ref/resource", "uri": "catalog://tools/{name}"},
                    "argument": {"name": "name", "value": ""},
                },
            )

    assert [prompt["name"] for prompt in listed] == ["peer__after_None", "peer__after_same"]
    assert completed["completion"]["values"] == ["peer__work"]
