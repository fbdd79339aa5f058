"""What happens is told to whoever listens: once, in order, and without what was said."""

import json
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from aggregator.basics.eras import Era
from aggregator.catalog import Catalog, Failed, Pending, Ready
from aggregator.names import ServerName
from aggregator.records.events import (
    CallBegan,
    CallEnded,
    Event,
    ListServed,
    LoginNeeded,
    Searched,
    StateChanged,
    Stream,
    state_changes,
    state_word,
)
from tests.patience import patience
from tests.peers import Mortal, Peer, aggregating, connect_to, ready, until, visiting
from tests.stories.test_offers import Library

pytestmark = pytest.mark.anyio

CANARY = "canary-4711"
NOTES = ServerName("notes")


def told(events: list[Event], kind: type[Any]) -> list[Any]:
    return [each for each in events if isinstance(each, kind)]


async def test_a_call_is_told_when_it_begins_and_when_it_ends(
    client_era: Era, server_era: Era
) -> None:
    peer = Peer("add")
    events: list[Event] = []
    async with aggregating({"notes": connect_to(peer, server_era)}) as upstream:
        await ready(upstream)
        with upstream.fleet.stream.heard_by(events.append):
            async with visiting(upstream, client_era) as client:
                await client.call_tool("notes__add", {"text": CANARY})

    (began,), (ended,) = told(events, CallBegan), told(events, CallEnded)
    assert (began.server, began.tool) == ("notes", "notes__add")
    assert (ended.number, ended.origin) == (began.number, began.origin)
    assert (ended.server, ended.tool, ended.through) == ("notes", "notes__add", "")
    assert ended.outcome == "ok"
    assert not ended.is_error
    assert CANARY not in repr([began, ended])


async def test_how_calls_end_is_told_by_their_kind(client_era: Era) -> None:
    peer = Peer("add", "block")
    events: list[Event] = []
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    async with aggregating({"notes": connect_to(peer)}) as upstream:
        await ready(upstream)
        with upstream.fleet.stream.heard_by(events.append):
            async with visiting(upstream, client_era) as client:
                nothing: dict[str, Any] = {}
                relayed = {"name": "notes__add", "arguments": nothing}
                await client.call_tool("CallTool", relayed, meta={"traceparent": trace})
                await client.call_tool("CallTool", {"name": "notes__ad"})
                with pytest.raises(MCPError):
                    await client.call_tool("notes__nothing_like_it", {})
                with anyio.fail_after(patience()):
                    async with anyio.create_task_group() as group:
                        group.start_soon(client.call_tool, "notes__block", nothing)
                        await peer.blocked.wait()
                        group.cancel_scope.cancel()
                    await peer.cancelled.wait()

    ends = [(each.through, each.tool, each.outcome) for each in told(events, CallEnded)]
    assert ends == [
        ("CallTool", "notes__add", "ok"),
        ("CallTool", "notes__ad", "unknown-tool"),
        ("", "notes__nothing_like_it", "unknown-tool"),
        ("", "notes__block", "cancelled"),
    ]
    assert [each.trace for each in told(events, CallEnded)] == [trace, "", "", ""]
    assert [each.is_error for each in told(events, CallEnded)] == [False, True, True, False]
    assert len(told(events, CallBegan)) == 2


async def test_whose_a_prompt_a_skill_or_a_resource_is_is_told(client_era: Era) -> None:
    library = Library()
    library.publish("refunds", "Refund a customer")
    names = ("prompt:shop__review_code", "skill:shop/refunds", "resource:docs://guide")
    events: list[Event] = []
    async with aggregating({"shop": connect_to(library)}) as upstream:
        await ready(upstream)
        with upstream.fleet.stream.heard_by(events.append):
            async with visiting(upstream, client_era) as client:
                for name in (*names, "skill:none"):
                    call = {"name": name, "arguments": {"number": "5"}}
                    await client.call_tool("CallTool", call)

    began = [(each.server, each.tool) for each in told(events, CallBegan)]
    ended = [(each.server, each.tool) for each in told(events, CallEnded)]
    assert began == [("shop", name) for name in names]
    assert ended == [*began, ("", "skill:none")]
    labels = [each.label for each in told(events, CallEnded)]
    assert labels == [*names[:2], "resource", "skill:none"]


async def test_what_the_tool_says_of_itself_is_no_error_of_ours(client_era: Era) -> None:
    peer = Peer("add")
    failing = types.CallToolResult(content=[], is_error=True)

    async def fail(_ctx: Any, _params: Any) -> types.CallToolResult:
        return failing

    peer.add_request_handler("tools/call", types.CallToolRequestParams, fail)
    events: list[Event] = []
    async with aggregating({"notes": connect_to(peer)}) as upstream:
        await ready(upstream)
        with upstream.fleet.stream.heard_by(events.append):
            async with visiting(upstream, client_era) as client:
                await client.call_tool("notes__add", {})

    assert [each.outcome for each in told(events, CallEnded)] == ["tool-error"]


async def test_arguments_and_results_are_told_only_to_who_wants_them(client_era: Era) -> None:
    peer = Peer("add")
    events: list[Event] = []
    async with aggregating({"notes": connect_to(peer)}) as upstream:
        await ready(upstream)
        stream = upstream.fleet.stream
        with stream.heard_by(events.append, content=True):
            async with visiting(upstream, client_era) as client:
                await client.call_tool("notes__add", {"text": CANARY})

    (ended,) = told(events, CallEnded)
    assert ended.content is not None
    assert ended.content.arguments == {"text": CANARY}
    assert CANARY in json.dumps(ended.content.result)
    assert not stream.wants_content
    assert not stream.is_heard


async def test_a_search_is_told_with_what_it_found_and_a_list_with_what_there_is(
    client_era: Era,
) -> None:
    peer = Peer("add_note", "remove_note", "send_fax")
    events: list[Event] = []
    async with aggregating({"notes": connect_to(peer)}) as upstream:
        await ready(upstream)
        with upstream.fleet.stream.heard_by(events.append):
            async with visiting(upstream, client_era) as client:
                await client.list_tools()
                result = await client.call_tool("ToolSearch", {"query": "send fax"})
                await client.call_tool("ToolSearch", {"query": "zzzzqqqq"})

    first, second = told(events, Searched)
    assert [(each.query, each.found[:1]) for each in first.answers] == [
        ("send fax", ("notes__send_fax",))
    ]
    block = result.content[0]
    assert isinstance(block, types.TextContent)
    assert first.characters == len(block.text)
    assert [(each.query, each.found) for each in second.answers] == [("zzzzqqqq", ())]
    assert first.origin == second.origin
    served = told(events, ListServed)[0]
    assert "ToolSearch" in [tool["name"] for tool in served.tools]
    assert len(served.catalog.entries) == 3
    assert told(events, CallEnded) == []


async def test_a_secret_is_not_cut_before_it_is_recognised(client_era: Era) -> None:
    events: list[Event] = []
    secret = f"ghp_{'0123456789' * 4}"
    text = f"{'a ' * 90} {secret}"
    async with aggregating({"notes": connect_to(Peer("add"))}) as upstream:
        await ready(upstream)
        with upstream.fleet.stream.heard_by(events.append):
            async with visiting(upstream, client_era) as client:
                await client.call_tool("ToolSearch", {"query": text})
                await client.call_tool("CallTool", {"name": text})

    (searched,), (ended,) = told(events, Searched), told(events, CallEnded)
    assert "ghp_" not in searched.answers[0].query
    assert "ghp_" not in ended.tool


async def test_clients_are_told_apart_by_what_opens_nothing(client_era: Era) -> None:
    peer = Peer("add")
    events: list[Event] = []
    async with aggregating({"notes": connect_to(peer)}, is_shared=True) as upstream:
        await ready(upstream)
        with upstream.fleet.stream.heard_by(events.append):
            async with visiting(upstream, client_era) as client:
                await client.call_tool("notes__add", {})
                await client.call_tool("notes__add", {})

    first, second = told(events, CallEnded)
    assert first.origin == second.origin
    assert first.origin.session.startswith(upstream.fleet.stream.name)


async def test_a_server_that_is_lost_and_comes_back_is_told(client_era: Era) -> None:
    way = Mortal(connect_to(Peer("add")))
    events: list[Event] = []
    async with aggregating({"notes": way}) as upstream:
        await ready(upstream)
        with upstream.fleet.stream.heard_by(events.append):
            way.cut()
            await until(lambda: bool(told(events, StateChanged)), lambda: upstream.fleet.changed)
            await ready(upstream)

    changes = told(events, StateChanged)
    assert {each.server for each in changes} == {"notes"}
    assert isinstance(changes[0].before, Ready)
    assert isinstance(changes[-1].after, Ready)


def test_a_login_that_is_needed_is_told_once() -> None:
    before = Catalog({NOTES: Pending()})
    after = Catalog({NOTES: Failed("it wants a login", login="aggregator login notes")})

    first = list(state_changes(before, after, 1.0))

    assert first == [
        StateChanged(1.0, NOTES, before.servers[NOTES], after.servers[NOTES]),
        LoginNeeded(1.0, NOTES, "aggregator login notes"),
    ]
    assert list(state_changes(after, Catalog(dict(after.servers)), 2.0)) == []
    assert state_word(after.servers[NOTES]) == "needs login"


def test_a_server_that_comes_into_the_file_or_leaves_it_is_told() -> None:
    empty, one = Catalog(), Catalog({NOTES: Pending()})

    assert [each.server for each in state_changes(empty, one, 0.0)] == [NOTES]
    assert [each.after for each in told(list(state_changes(one, empty, 0.0)), StateChanged)] == [
        None
    ]


def test_who_has_left_is_told_nothing_more() -> None:
    stream, first, second = Stream(), list[Event](), list[Event]()
    event = LoginNeeded(0.0, NOTES, "aggregator login notes")

    with stream.heard_by(first.append):
        with stream.heard_by(second.append):
            stream.tell(event)
        stream.tell(event)
    stream.tell(event)

    assert (len(first), len(second)) == (2, 1)
    assert not stream.is_heard
