"""A link wraps what is asked in the way of its server's era, and hears what the server says."""

from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp_types import JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from aggregator.downstream.envelope import Mirrored
from aggregator.downstream.introduction import LinkLostError, Ourselves
from aggregator.downstream.link import Link, open_link
from aggregator.downstream.transport import ConnectionClosedError, Related
from tests.downstream.linking import MODERN, US, Client, Json, News, answer, call_of, linked
from tests.transports import Script

pytestmark = pytest.mark.anyio

NOTHING: Json = {}
PARAMS: Json = {"name": "draw", "arguments": {"where": "here"}, "_meta": {"own": 1}}


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


def tells(method: str, **params: Any) -> JSONRPCNotification:
    return JSONRPCNotification(jsonrpc="2.0", method=method, params=params)


async def test_a_server_of_the_handshake_era_is_asked_in_the_words_of_the_caller() -> None:
    script = Script()
    async with linked(script) as link, anyio.create_task_group() as group:
        group.start_soon(script.answer, {"tools": 1})
        assert await link.request("tools/list", {"cursor": "a"}) == {"tools": 1}
        group.start_soon(link_request, link, Client())
        asked = await script.answer({})
        assert asked.params == {**PARAMS, "_meta": {"own": 1, "progressToken": asked.id}}

    assert script.headers == [{"mcp-protocol-version": "2025-11-25"}] * 2


async def test_a_modern_server_is_told_with_each_request_who_asks() -> None:
    script, client = Script(), Client(elicitation={})
    async with linked(script, MODERN) as link, anyio.create_task_group() as group:
        group.start_soon(link_request, link, client)
        asked = await script.answer({})

        assert (asked.params or {})["_meta"] == {
            "own": 1,
            "progressToken": asked.id,
            types.PROTOCOL_VERSION_META_KEY: "2026-07-28",
            types.CLIENT_INFO_META_KEY: US,
            types.CLIENT_CAPABILITIES_META_KEY: {"elicitation": {}},
            types.LOG_LEVEL_META_KEY: "info",
        }

    assert PARAMS["_meta"] == {"own": 1}
    assert script.headers == [
        {
            "mcp-protocol-version": "2026-07-28",
            "mcp-method": "tools/call",
            "mcp-name": "draw",
            "Mcp-Param-Place": "here",
        }
    ]


async def test_what_is_asked_about_a_task_is_named_by_its_id() -> None:
    script = Script()
    async with linked(script, MODERN) as link, anyio.create_task_group() as group:
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            group.start_soon(link.request, method, {"taskId": "é"})
            await script.answer({})

    assert {each["mcp-name"] for each in script.headers} == {"=?base64?w6k=?="}


async def link_request(link: Link, client: Client) -> None:
    mirrored: Mirrored = {"draw": {("where",): "Place"}}
    await link.request("tools/call", PARAMS, call=call_of(client), mirrored=mirrored)


async def test_what_is_said_of_a_call_reaches_its_client_before_the_call_ends() -> None:
    script, client, news = Script(), Client(), News()
    async with linked(script, news=news) as link, anyio.create_task_group() as group:
        group.start_soon(link_request, link, client)
        number = (await script.asked()).id
        assert repr(link) == "<Link old handshake 1 in flight>"
        script.come(
            tells("notifications/progress", progressToken=number, progress=1),
            Related(tells("notifications/message", data="at work"), number),
            JSONRPCResponse(jsonrpc="2.0", id=number, result={}),
        )

    assert [method for method, _ in client.told] == [
        "notifications/progress",
        "notifications/message",
    ]
    assert news.came == []


async def test_what_belongs_to_no_call_is_news() -> None:
    script, news = Script(), News()
    async with linked(script, news=news):
        script.come(
            tells("notifications/message", data="tidying up"),
            tells("notifications/resources/updated", uri="x://y"),
            tells("notifications/tools/list_changed"),
            tells("notifications/elicitation/complete", elicitationId="1"),
            tells("notifications/progress", progressToken=99, progress=1),
        )
        await anyio.sleep(1)

    assert news.came == [
        ("logged", {"data": "tidying up"}),
        ("updated", "x://y"),
        ("changed", ("tools",)),
        ("completed", {"elicitationId": "1"}),
    ]


async def test_a_question_belongs_to_the_one_call_that_is_under_way() -> None:
    script = Script()
    question = JSONRPCRequest(jsonrpc="2.0", id="q", method="elicitation/create")
    async with linked(script) as link, anyio.create_task_group() as group:
        script.come(question)
        alone = await script.sent()
        group.start_soon(link_request, link, Client())
        number = (await script.asked()).id
        script.come(question)
        within = await script.sent()
        script.come(JSONRPCResponse(jsonrpc="2.0", id=number, result={}))

        assert isinstance(alone, JSONRPCResponse)
        assert isinstance(within, JSONRPCResponse)
        assert (alone.result["has_call"], within.result["has_call"]) == (False, True)


async def test_a_link_that_is_given_up_ends_what_is_under_way_on_it() -> None:
    script = Script()
    async with linked(script) as link:
        with anyio.fail_after(5):
            async with anyio.create_task_group() as group:

                async def ask() -> None:
                    with pytest.raises(ConnectionClosedError):
                        await link.request("tools/list")

                group.start_soon(ask)
                await script.asked()
                link.give_up("it stopped reading what it is sent")

        assert link.ended.is_set()
        assert repr(link) == "<Link old handshake ended>"


async def test_a_level_is_only_ever_lowered_and_only_where_there_are_levels() -> None:
    script = Script()
    async with linked(script) as link, anyio.create_task_group() as group:
        for level in ("warning", "error", "debug"):
            group.start_soon(script.answer, NOTHING)
            await link.lower_level(level)
        group.cancel_scope.cancel()
    modern = Script()
    async with linked(modern, MODERN) as link:
        await link.lower_level("debug")

    assert len(script.headers) == 2
    assert modern.headers == []


async def test_a_modern_server_that_tells_of_changes_is_listened_to_from_the_beginning() -> None:
    script, news = Script(), News()
    ours = Ourselves(US, dict[str, Any])

    async def serve() -> None:
        able = {"tools": {"listChanged": True}}
        await script.answer({"supportedVersions": ["2026-07-28"], "capabilities": able})
        listen = await script.asked()
        assert listen.method == "subscriptions/listen"
        assert (listen.params or {})["notifications"] == {"toolsListChanged": True}
        script.come(tells("notifications/subscriptions/acknowledged"))

    with script:
        async with anyio.create_task_group() as group:
            group.start_soon(serve)
            async with open_link(script, ours=ours, era=None, events=news, answer=answer) as link:
                assert link.peer.era == "modern"
                assert anyio.current_time() < 1


async def test_what_is_lost_while_it_is_of_use_says_how_it_ended() -> None:
    script = Script()
    ours = Ourselves(US, dict[str, Any])

    async def serve() -> None:
        await script.answer({"protocolVersion": "2025-11-25", "capabilities": {}})
        await script.sent()
        await script.asked()
        script.end()

    async def use() -> None:
        async with open_link(
            script, ours=ours, era="handshake", events=News(), answer=answer
        ) as link:
            await link.request("tools/list")

    with script:
        async with anyio.create_task_group() as group:
            group.start_soon(serve)
            with pytest.RaisesGroup(pytest.RaisesExc(LinkLostError, match="all it had to say")):
                await use()
