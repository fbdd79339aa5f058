"""Calls on a stream that are sent on where they are read, past the SDK."""

import gc
from contextlib import suppress

import anyio
import pytest
from mcp.shared.exceptions import MCPError

from aggregator.config import Settings
from aggregator.downstream.sent import Sent
from aggregator.errors import ERROR_META
from aggregator.records.events import CallBegan, CallEnded, Event
from aggregator.toolsearch import conform
from aggregator.upstream.plain_calls import PlainCalls
from aggregator.upstream.server import Upstream
from tests.patience import patience
from tests.peers import Era, aggregating, ready
from tests.raw import Dispatch, Json, RawServer, on_pipes
from tests.upstream.usual import Usual
from tests.work import counting

pytestmark = pytest.mark.anyio

CALL = "tools/call"


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


def server_of(era: Era) -> RawServer:
    """Return a server with a tool that says what it was given, and one that has no end."""

    async def echo(_context: Dispatch, params: Json) -> Json:
        return {"content": [{"type": "text", "text": repr(params.get("arguments"))}]}

    async def hang(_context: Dispatch, _params: Json) -> Json:
        try:
            await anyio.sleep_forever()
        finally:
            server.cancelled.set()
        raise AssertionError

    server = RawServer(era)
    numbered = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    server.tool("echo", echo, inputSchema=numbered)
    server.tool("hang", hang)
    return server


def is_at_rest(upstream: Upstream, server: str = "one") -> bool:
    """Whether nothing of any call is left behind."""
    requests = upstream.fleet.server(server).requests  # pyright: ignore[reportArgumentType]
    assert requests.link is not None
    is_free = "CallSlots 0 of" in repr(requests) and "0 with a deadline" in repr(requests)
    return is_free and "0 in flight" in repr(requests.link)


def text(result: Json) -> str:
    return result["content"][0]["text"]


async def test_a_plain_call_goes_past_the_sdk_and_is_answered_as_any_other(
    client_era: Era, server_era: Era
) -> None:
    async with aggregating({"one": server_of(server_era).connect}) as upstream:
        usual = Usual(upstream)
        await ready(upstream)
        async with on_pipes(upstream, client_era) as client:
            found = [
                await client.request(CALL, {"name": "one__echo", "arguments": {"n": n}})
                for n in range(3)
            ]
        rests = is_at_rest(upstream)

    assert [text(each) for each in found] == [repr({"n": n}) for n in range(3)]
    assert usual.calls == ([] if client_era == server_era else ["one__echo"] * 3)
    assert all(("resultType" in each) is (client_era == "modern") for each in found)
    assert rests


async def test_a_call_through_a_tool_of_ours_does_as_well(client_era: Era) -> None:
    relayed = {"name": "CallTool", "arguments": {"name": "one__echo", "arguments": {"n": "7"}}}

    async with aggregating({"one": server_of(client_era).connect}) as upstream:
        usual = Usual(upstream)
        await ready(upstream)
        async with on_pipes(upstream, client_era) as client:
            found = await client.request(CALL, relayed)

    assert text(found) == repr({"n": 7})
    assert usual.calls == []


async def test_arguments_that_need_much_conversion_are_left_to_the_usual_way(
    client_era: Era,
) -> None:
    few, many = ([str(number) for number in range(size)] for size in (10, 1_000))
    server = server_of(client_era)
    schema = {"type": "object", "properties": {"ns": {"items": {"type": "integer"}}}}
    server.tool("sum", server.handlers["tools/call echo"], inputSchema=schema)

    async with aggregating({"one": server.connect}) as upstream:
        usual = Usual(upstream)
        await ready(upstream)
        async with on_pipes(upstream, client_era) as client:
            found: list[str] = []
            for numbers in (few, many, few):
                call = {"name": "one__sum", "arguments": {"ns": numbers}}
                found.append(text(await client.request(CALL, call)))

    assert found == [repr({"ns": list(range(size))}) for size in (10, 1_000, 10)]
    assert usual.calls == ["one__sum"]


async def test_arguments_are_converted_once_whichever_way_a_call_goes(
    client_era: Era, server_era: Era
) -> None:
    async with aggregating({"one": server_of(server_era).connect}) as upstream:
        await ready(upstream)
        async with on_pipes(upstream, client_era) as client:
            with counting(conform) as conversions:
                found = await client.request(CALL, {"name": "one__echo", "arguments": {"n": "7"}})

    assert text(found) == repr({"n": 7})
    assert conversions.calls == 1


@pytest.mark.parametrize(
    "params",
    [
        {"name": "ToolSearch", "arguments": {"query": "echo"}},
        {"name": "one__nothing", "arguments": {}},
        {"name": "one__echo", "arguments": {"n": "many"}},
        {"name": "one__echo", "arguments": {}},
        {"name": "one__echo"},
        {"name": "one__echo", "arguments": [1]},
        {"name": 7, "arguments": {"n": 1}},
        {"arguments": {"n": 1}},
        {"name": "CallTool", "arguments": {"name": "one__echo"}},
        {"name": "CallReadOnlyTool", "arguments": {"name": "one__echo", "arguments": {"n": 1}}},
        {"name": "result:nothing", "arguments": {}},
        {"name": "prompt:one__echo", "arguments": {}},
        {"name": "echo", "arguments": {"n": 1}},
        {"name": "one__echo", "arguments": {"n": 1}, "requestState": "somebody else's"},
    ],
)
async def test_what_is_not_plain_goes_the_usual_way(client_era: Era, params: Json) -> None:
    async with aggregating({"one": server_of(client_era).connect}) as upstream:
        usual = Usual(upstream)
        await ready(upstream)
        async with on_pipes(upstream, client_era) as client:
            with suppress(MCPError):
                await client.request(CALL, params)
        rests = is_at_rest(upstream)

    assert usual.calls == [params.get("name")]
    assert rests


async def test_a_call_that_is_taken_back_is_taken_back_from_its_server(client_era: Era) -> None:
    server = server_of(client_era)
    events: list[Event] = []

    async with aggregating({"one": server.connect}) as upstream:
        usual = Usual(upstream)
        await ready(upstream)
        with upstream.fleet.stream.heard_by(events.append):
            async with on_pipes(upstream, client_era) as client:
                with anyio.move_on_after(1):
                    await client.request(CALL, {"name": "one__hang", "arguments": {}})
                with anyio.fail_after(patience()):
                    await server.cancelled.wait()
                # And the next is answered as if there had been none.
                after = await client.request(CALL, {"name": "one__echo", "arguments": {"n": 1}})
        rests = is_at_rest(upstream)

    ended = [each.outcome for each in events if isinstance(each, CallEnded)]
    assert text(after) == repr({"n": 1})
    assert ended == ["cancelled", "ok"]
    assert usual.calls == []
    assert rests


async def test_a_call_whose_time_is_over_is_told_so(client_era: Era) -> None:
    server = server_of(client_era)

    async with aggregating({"one": server.connect}, one={"call_timeout": 5.0}) as upstream:
        usual = Usual(upstream)
        await ready(upstream)
        async with on_pipes(upstream, client_era) as client:
            began = anyio.current_time()
            found = await client.request(CALL, {"name": "one__hang", "arguments": {}})
            took = anyio.current_time() - began
            with anyio.fail_after(patience()):
                await server.cancelled.wait()
        rests = is_at_rest(upstream)

    assert found["isError"]
    assert found["_meta"][ERROR_META]["kind"] == "timeout"
    assert took == pytest.approx(5.0, abs=0.5)
    assert usual.calls == []
    assert rests


async def test_progress_counts_as_a_sign_of_life_and_is_passed_on(client_era: Era) -> None:
    async def slow(context: Dispatch, params: Json) -> Json:
        for step in range(3):
            await anyio.sleep(4)
            token = params["_meta"]["progressToken"]
            await context.notify(
                "notifications/progress", {"progressToken": token, "progress": step}
            )
        return {"content": [{"type": "text", "text": "done"}]}

    server = RawServer(client_era)
    server.tool("slow", slow)
    async with aggregating({"one": server.connect}, one={"call_timeout": 5.0}) as upstream:
        usual = Usual(upstream)
        await ready(upstream)
        async with on_pipes(upstream, client_era) as client:
            found = await client.request(
                CALL, {"name": "one__slow", "arguments": {}}, progressToken="mine"
            )
            told = [each for method, each in client.heard if method == "notifications/progress"]
        rests = is_at_rest(upstream)

    assert text(found) == "done"
    assert [(each["progressToken"], each["progress"]) for each in told] == [
        ("mine", 0),
        ("mine", 1),
        ("mine", 2),
    ]
    assert usual.calls == []
    assert rests


async def test_log_messages_arrive_from_the_level_on_that_was_set_last() -> None:
    async def log(context: Dispatch, _params: Json) -> Json:
        for level in ("debug", "error"):
            await context.notify("notifications/message", {"level": level, "data": level})
        return {"content": [{"type": "text", "text": "done"}]}

    server = RawServer("handshake")
    server.tool("log", log)
    heard: list[list[str]] = []
    async with aggregating({"one": server.connect}) as upstream:
        usual = Usual(upstream)
        await ready(upstream)
        async with on_pipes(upstream, "handshake") as client:
            for wanted in ("debug", "error"):
                client.heard.clear()
                await client.request("logging/setLevel", {"level": wanted})
                await client.request(CALL, {"name": "one__log", "arguments": {}})
                heard.append([each["level"] for _, each in client.heard if "level" in each])

    assert heard == [["debug", "error"], ["error"]]
    # Only for the first had the server to be asked to log more.
    assert usual.calls == ["one__log"]


async def test_a_bug_of_ours_costs_only_the_call_that_met_it(
    client_era: Era, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> bool:
        raise RuntimeError("a bug")

    call: Json = {"name": "one__echo", "arguments": {"n": 1}}
    async with aggregating({"one": server_of(client_era).connect}) as upstream:
        await ready(upstream)
        async with on_pipes(upstream, client_era) as client:
            with monkeypatch.context() as broken:
                broken.setattr(PlainCalls, "shows", fail)
                with pytest.raises(MCPError, match="Its log says why"):
                    await client.request(CALL, call)
            after = await client.request(CALL, call)
        rests = is_at_rest(upstream)

    assert text(after) == repr({"n": 1})
    assert rests


async def test_a_listener_that_fails_costs_no_answer(client_era: Era) -> None:
    def fail(_event: Event) -> None:
        raise RuntimeError("a bug")

    call: Json = {"name": "one__echo", "arguments": {"n": 1}}
    async with aggregating({"one": server_of(client_era).connect}) as upstream:
        await ready(upstream)
        async with on_pipes(upstream, client_era) as client:
            with upstream.fleet.stream.heard_by(fail):
                heard = await client.request(CALL, call)
            after = await client.request(CALL, call)
        rests = is_at_rest(upstream)

    assert text(heard) == text(after) == repr({"n": 1})
    assert rests


async def test_a_call_that_is_over_keeps_nothing_alive(client_era: Era) -> None:
    call: Json = {"name": "one__echo", "arguments": {"n": 1}}
    async with aggregating({"one": server_of(client_era).connect}) as upstream:
        await ready(upstream)
        async with on_pipes(upstream, client_era) as client:
            await client.request(CALL, call)
            gc.collect()
            gc.disable()
            try:
                for _ in range(5):
                    await client.request(CALL, call)
                left = [each for each in gc.get_objects() if isinstance(each, Sent)]
            finally:
                gc.enable()

    assert left == []


async def test_a_call_does_not_overtake_what_its_client_has_told_before() -> None:
    server = server_of("handshake")
    call: Json = {"name": "one__echo", "arguments": {"n": 1}}
    async with aggregating({"one": server.connect}) as upstream:
        usual = Usual(upstream)
        await ready(upstream)
        async with on_pipes(upstream, "handshake", {"roots": {"listChanged": True}}) as client:
            await client.request(CALL, call)
            await client.notify("notifications/roots/list_changed")
            await client.request(CALL, call)
            await client.request(CALL, call)

    assert usual.calls == ["one__echo"]


async def test_a_question_in_the_middle_reaches_the_client_of_the_call() -> None:
    async def order(_context: Dispatch, _params: Json) -> Json:
        answer = await server.ask("elicitation/create", {"message": "Which?", "mode": "form"})
        return {"content": [{"type": "text", "text": answer["content"]["which"]}]}

    server = RawServer("handshake")
    server.tool("order", order)
    async with aggregating({"one": server.connect}) as upstream:
        usual = Usual(upstream)
        await ready(upstream)
        async with on_pipes(upstream, "handshake", {"elicitation": {}}) as client:
            client.answers["elicitation/create"] = lambda _params: {
                "action": "accept",
                "content": {"which": "the blue one"},
            }
            found = await client.request(CALL, {"name": "one__order", "arguments": {}})

    assert text(found) == "the blue one"
    assert "one" in client.questions[0][1]["message"]
    assert usual.calls == []


async def test_a_question_in_the_place_of_a_result_is_sealed_and_answered() -> None:
    async def order(_context: Dispatch, params: Json) -> Json:
        if "requestState" not in params:
            asked = {"which": {"method": "elicitation/create", "params": {"message": "Which?"}}}
            return {
                "resultType": "input_required",
                "inputRequests": asked,
                "requestState": "open",
            }
        return {"content": [{"type": "text", "text": params["requestState"]}]}

    server = RawServer("modern")
    server.tool("order", order)
    order_call: Json = {"name": "one__order", "arguments": {}}
    async with aggregating({"one": server.connect}) as upstream:
        usual = Usual(upstream)
        await ready(upstream)
        async with on_pipes(upstream, "modern", {"elicitation": {}}) as client:
            asked = await client.request(CALL, order_call)
            answers: Json = {"which": {"action": "accept", "content": {}}}
            state = asked["requestState"]
            found = await client.request(
                CALL, {**order_call, "requestState": state, "inputResponses": answers}
            )
        rests = is_at_rest(upstream)

    assert asked["resultType"] == "input_required"
    assert state != "open"
    assert text(found) == "open"
    assert usual.calls == ["one__order"]
    assert rests


async def test_an_error_of_the_server_is_passed_on(client_era: Era) -> None:
    async def refuse(_context: Dispatch, _params: Json) -> Json:
        raise MCPError(-32050, "No more of it", {"left": 0})

    server = RawServer(client_era)
    server.tool("refuse", refuse)
    async with aggregating({"one": server.connect}) as upstream:
        usual = Usual(upstream)
        await ready(upstream)
        async with on_pipes(upstream, client_era) as client:
            with pytest.raises(MCPError) as caught:
                await client.request(CALL, {"name": "one__refuse", "arguments": {}})
        rests = is_at_rest(upstream)

    assert (caught.value.code, caught.value.message) == (-32050, "No more of it")
    assert caught.value.data == {"left": 0}
    assert usual.calls == []
    assert rests


async def test_a_server_that_goes_away_is_told_of(client_era: Era) -> None:
    server = server_of(client_era)

    async with aggregating({"one": server.connect}) as upstream:
        await ready(upstream)
        async with on_pipes(upstream, client_era) as client:

            async def leave() -> None:
                await anyio.sleep(1)
                link = upstream.fleet.server("one").requests.link  # pyright: ignore[reportArgumentType]
                assert link is not None
                link.give_up("it went away")

            found: Json = {}
            async with anyio.create_task_group() as group:
                group.start_soon(leave)
                found = await client.request(CALL, {"name": "one__hang", "arguments": {}})

    assert found["isError"]
    assert "it went away" in text(found)


async def test_whoever_counts_is_told_of_each_call_once(client_era: Era) -> None:
    events: list[Event] = []

    async with aggregating({"one": server_of(client_era).connect}) as upstream:
        await ready(upstream)
        with upstream.fleet.stream.heard_by(events.append):
            async with on_pipes(upstream, client_era) as client:
                await client.request(CALL, {"name": "one__echo", "arguments": {"n": 1}})

    began = [each for each in events if isinstance(each, CallBegan)]
    ended = [each for each in events if isinstance(each, CallEnded)]
    assert [each.tool for each in began] == ["one__echo"]
    assert [(each.tool, each.outcome, each.number) for each in ended] == [
        ("one__echo", "ok", began[0].number)
    ]


async def test_a_result_that_is_too_long_is_shortened(client_era: Era) -> None:
    async def fill(_context: Dispatch, _params: Json) -> Json:
        return {"content": [{"type": "text", "text": "word " * 20_000}]}

    server = RawServer(client_era)
    server.tool("fill", fill)
    async with aggregating({"one": server.connect}, Settings(max_result_tokens=1000)) as upstream:
        usual = Usual(upstream)
        await ready(upstream)
        async with on_pipes(upstream, client_era) as client:
            found = await client.request(CALL, {"name": "one__fill", "arguments": {}})

    assert len(str(found)) < 20_000
    assert usual.calls == []


async def test_calls_beyond_the_places_of_a_server_wait_for_one(client_era: Era) -> None:
    waiting = 0
    all_there = anyio.Event()

    async def meet(_context: Dispatch, _params: Json) -> Json:
        nonlocal waiting
        waiting += 1
        if waiting == 2:
            all_there.set()
        await all_there.wait()
        return {"content": [{"type": "text", "text": "met"}]}

    server = RawServer(client_era)
    server.tool("meet", meet)
    found: list[str] = []
    async with aggregating({"one": server.connect}, one={"max_in_flight": 2}) as upstream:
        usual = Usual(upstream)
        await ready(upstream)
        async with on_pipes(upstream, client_era) as client:

            async def call() -> None:
                result = await client.request(CALL, {"name": "one__meet", "arguments": {}})
                found.append(text(result))

            async with anyio.create_task_group() as group:
                for _ in range(5):
                    group.start_soon(call)
        rests = is_at_rest(upstream)

    assert found == ["met"] * 5
    assert 1 <= len(usual.calls) <= 3
    assert rests


async def test_another_client_on_the_same_stream_is_met_first(client_era: Era) -> None:
    async with aggregating({"one": server_of(client_era).connect}) as upstream:
        usual = Usual(upstream)
        await ready(upstream)
        async with on_pipes(upstream, client_era) as client:
            call: Json = {"name": "one__echo", "arguments": {"n": 1}}
            await client.request(CALL, call)
            client.name = "somebody else"
            await client.open()
            await client.request(CALL, call)
            await client.request(CALL, call)

    assert usual.calls == ["one__echo"]


async def test_what_is_under_way_when_a_stream_ends_is_given_up(client_era: Era) -> None:
    server = server_of(client_era)

    async with aggregating({"one": server.connect}) as upstream:
        await ready(upstream)
        async with on_pipes(upstream, client_era) as client, anyio.create_task_group() as group:

            async def call() -> None:
                await client.request(CALL, {"name": "one__hang", "arguments": {}})

            group.start_soon(call)
            await anyio.sleep(1)
            group.cancel_scope.cancel()
        with anyio.fail_after(patience()):
            await server.cancelled.wait()
        rests = is_at_rest(upstream)

    assert rests
