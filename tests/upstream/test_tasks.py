"""Tasks pass: a client follows what a server goes on working on, and nobody else can."""

from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from aggregator.basics.tasks import TASKS
from aggregator.config import Settings
from aggregator.records.events import CallEnded, Event
from aggregator.upstream.results.telling import RESULT_META
from aggregator.upstream.visitor import Visitor
from tests.peers import ERAS, Era, aggregating, ready
from tests.raw import Dispatch, Json, RawServer, raw_client
from tests.upstream.digger import CALL, CAN, QUESTION, TIMES, Digger, asked

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("each_way")]


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


async def test_a_task_is_followed_to_its_result() -> None:
    digger = Digger()
    events: list[Event] = []
    async with aggregating({"peer": digger.connect}) as upstream:
        await ready(upstream)
        async with raw_client(upstream, "modern", CAN) as client:
            with upstream.fleet.stream.heard_by(events.append):
                handle = await client.request("tools/call", CALL)
            about: Json = {"taskId": handle["taskId"]}
            working = await client.request("tasks/get", about)
            digger.tasks["dig-0"] |= {"status": "input_required", "inputRequests": {"q": QUESTION}}
            asking = await client.request("tasks/get", about)
            answered = await client.request(
                "tasks/update", {**about, "inputResponses": {"q": {"action": "accept"}}}
            )
            result: Json = {"content": [{"type": "text", "text": "gold"}], "_meta": {"own": 1}}
            del digger.tasks["dig-0"]["inputRequests"]
            digger.tasks["dig-0"] |= {"status": "completed", "result": result}
            over = await client.request("tasks/get", about)
            ended = await client.request("tasks/cancel", about)

    (event,) = [each for each in events if isinstance(each, CallEnded)]
    assert (event.outcome, event.is_error) == ("task", False)
    assert handle["resultType"] == "task"
    assert handle["taskId"] != "dig-0"
    assert {"status", "ttlMs", *TIMES} <= handle.keys()
    assert working["taskId"] == over["taskId"] == handle["taskId"]
    assert (working["status"], working["pollIntervalMs"]) == ("working", 50)
    assert asking["inputRequests"]["q"]["params"]["message"] == "[peer] Deeper?"
    assert digger.tasks["dig-0"]["answers"] == {"q": {"action": "accept"}}
    assert over["result"] == result
    kinds = [each["resultType"] for each in (working, asking, answered, over, ended)]
    assert kinds == ["complete"] * 5
    assert not {"taskId", "status"} & {*answered, *ended}
    assert {task for _, task in digger.asked_about()} == {"dig-0"}


async def test_a_task_is_made_through_a_tool_of_ours_and_counts_as_that_call() -> None:
    digger = Digger()
    many = {"content": [{"type": "text", "text": "gold " * 5000}]}
    settings = Settings(max_result_tokens=500)
    async with aggregating({"peer": digger.connect}, settings) as upstream:
        await ready(upstream)
        async with raw_client(upstream, "modern", CAN) as client:
            through: Json = {
                "name": "CallTool",
                "arguments": {"name": "peer__dig", "arguments": {}},
            }
            handle = await client.request("tools/call", through)
            digger.tasks["dig-0"] |= {"status": "completed", "result": many}
            about = {"taskId": handle["taskId"]}
            first, again = [await client.request("tasks/get", about) for _ in range(2)]
            (uri,) = {each["result"]["_meta"][RESULT_META]["uri"] for each in (first, again)}
            whole = await client.request("resources/read", {"uri": uri})

    text = first["result"]["content"][0]["text"]
    assert len(text) < 5000
    assert "result:" in str(first["result"])
    assert whole["contents"][0]["text"] == "gold " * 5000


@pytest.mark.parametrize("era", ERAS)
async def test_who_cannot_follow_a_task_is_given_the_result(era: Era) -> None:
    digger = Digger()
    # In the older era this says nothing that its servers could go by.
    can: Json = CAN if era == "handshake" else {}
    async with aggregating({"peer": digger.connect}) as upstream:
        await ready(upstream)
        async with raw_client(upstream, era, can) as client:
            result = await client.request("tools/call", CALL)
            with pytest.raises(MCPError) as refused:
                await client.request("tasks/get", {"taskId": "dig-0"})

    assert result["content"][0]["text"] == "dug at once"
    expected = types.METHOD_NOT_FOUND if era == "handshake" else -32021
    assert refused.value.error.code == expected
    assert TASKS in client.server["capabilities"].get("extensions", {}) or era == "handshake"
    if era == "modern":
        assert refused.value.error.data == {"requiredCapabilities": CAN}


async def test_tasks_are_offered_only_where_a_server_has_them() -> None:
    digger, other, old = Digger(), RawServer("modern"), Digger()
    old.era = "handshake"
    offered: list[bool] = []
    codes: list[int] = []
    for servers in ([digger], [other], [old], [other, digger]):
        named = {f"s{number}": each.connect for number, each in enumerate(servers)}
        async with aggregating(named) as upstream:
            await ready(upstream)
            async with raw_client(upstream, "modern", CAN) as client:
                offered.append(TASKS in client.server["capabilities"].get("extensions", {}))
                with pytest.raises(MCPError) as refused:
                    await client.request("tasks/get", {"taskId": "dig-0"})
                codes.append(refused.value.error.code)

    assert offered == [True, False, False, True]
    known, unknown = types.INVALID_PARAMS, types.METHOD_NOT_FOUND
    assert codes == [known, unknown, unknown, known]


async def test_a_task_belongs_to_the_client_that_made_it() -> None:
    digger = Digger()
    async with aggregating({"peer": digger.connect}, is_shared=True) as upstream:
        await ready(upstream)
        async with (
            raw_client(upstream, "modern", CAN, Visitor.of_process()) as one,
            raw_client(upstream, "modern", CAN, Visitor("another", "/", 1)) as other,
        ):
            handle = await one.request("tools/call", CALL)
            for method in ("tasks/get", "tasks/update", "tasks/cancel"):
                for task in (handle["taskId"], "dig-0", "", "é", 7, None, "x" * 100_000):
                    with pytest.raises(MCPError) as refused:
                        await other.request(method, {"taskId": task, "inputResponses": {}})
                    assert refused.value.error.code == types.INVALID_PARAMS

    assert digger.asked_about() == []


@pytest.mark.parametrize("own_id", [7, None, {"a": 1}, "x" * 2049, "é" * 400])
async def test_a_task_without_a_usable_id_is_an_error_of_its_server(own_id: object) -> None:
    digger = Digger(own_id=own_id)
    if own_id is None:
        digger.handlers["tools/call dig"] = _task_without_id
    async with aggregating({"peer": digger.connect}) as upstream:
        await ready(upstream)
        async with raw_client(upstream, "modern", CAN) as client:
            with pytest.raises(MCPError, match="`taskId` is of no use"):
                await client.request("tools/call", CALL)


async def _task_without_id(_context: Dispatch, _params: Json) -> Json:
    return {"resultType": "task", "status": "working"}


@pytest.mark.parametrize("era", ERAS)
async def test_what_nobody_could_follow_is_not_passed_on(era: Era) -> None:
    digger = Digger()
    digger.prompts.append({"name": "dig"})
    digger.handlers["tools/call dig"] = digger.handlers["prompts/get"] = _unasked
    async with aggregating({"peer": digger.connect}) as upstream:
        await ready(upstream)
        async with raw_client(upstream, era) as client:
            for method, params in (("tools/call", CALL), ("prompts/get", {"name": "peer__dig"})):
                with pytest.raises(MCPError, match="task"):
                    await client.request(method, params)


async def _unasked(_context: Dispatch, _params: Json) -> Json:
    return {"resultType": "task", "taskId": "t", "status": "working"}


NOTHING: list[Any] = [[], {}, 7, "x", None]
ODD: list[Json] = [
    *({key: each} for key in ("status", "ttlMs", "result", "error", "_meta") for each in NOTHING),
    {"ttlMs": -1},
    {"ttlMs": 1e308},
    {"inputRequests": {"q": []}},
    {"inputRequests": {"q": {"params": []}}},
    {"result": {"content": [1, None]}},
    {"error": {"code": []}},
    {"error": {"code": -32042, "data": []}},
    {"taskId": []},
    {"resultType": []},
]


async def test_what_has_no_form_is_passed_on_and_breaks_nothing() -> None:
    digger = Digger()
    about: Json = {}

    async def tell(_context: Dispatch, _params: Json) -> Json:
        return {"status": "working", **about}

    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        digger.handlers[method] = tell
    async with aggregating({"peer": digger.connect}) as upstream:
        await ready(upstream)
        async with raw_client(upstream, "modern", CAN) as client:
            task = (await client.request("tools/call", CALL))["taskId"]
            for each in ODD:
                about = each
                told = await asked(client, task)
                assert [isinstance(answer, dict) for answer in told] == [True] * 3, (each, told)


async def test_the_end_of_a_task_asks_nothing_in_the_name_of_somebody_else() -> None:
    digger = Digger()
    asking: Json = {"elicitations": [{"mode": "url", "message": "Log in", "url": "https://x.y"}]}
    state: Json = {"requestState": "own", "inputRequests": {"q": QUESTION}}
    inner: Json = {**state, "resultType": "input_required", "content": []}
    async with aggregating({"peer": digger.connect}) as upstream:
        await ready(upstream)
        async with raw_client(upstream, "modern", CAN) as client:
            about = {"taskId": (await client.request("tools/call", CALL))["taskId"]}
            error = {"code": types.URL_ELICITATION_REQUIRED, "message": "No", "data": asking}
            digger.tasks["dig-0"] |= {"status": "failed", "error": error, "requestState": "own"}
            failed = await client.request("tasks/get", about)
            digger.tasks["dig-0"] |= {"status": "completed", "result": inner}
            over = await client.request("tasks/get", about)
            digger.handlers["tasks/update"] = digger.handlers["tasks/get"]
            updated = await client.request("tasks/update", {**about, "inputResponses": {}})

    assert failed["error"]["data"]["elicitations"][0]["message"] == "[peer] Log in"
    assert failed["error"]["message"] == "No"
    assert "requestState" not in failed
    assert over["result"] == {"content": []}
    assert set(updated) == {"resultType", "_meta"}


async def test_a_task_that_calls_itself_a_question_asks_once_and_hands_over_no_state() -> None:
    digger = Digger()
    asking: Json = {"resultType": "input_required", "inputRequests": {"q": QUESTION}}
    async with aggregating({"peer": digger.connect}) as upstream:
        await ready(upstream)
        async with raw_client(upstream, "modern", CAN) as client:
            about = {"taskId": (await client.request("tools/call", CALL))["taskId"]}
            digger.tasks["dig-0"] |= {**asking, "requestState": "x" * (2 << 20)}
            told = await client.request("tasks/get", about)

    assert told["resultType"] == "complete"
    assert told["inputRequests"]["q"]["params"]["message"] == "[peer] Deeper?"
    assert "requestState" not in told


async def test_what_a_task_ends_with_is_bounded_whatever_it_calls_itself() -> None:
    digger = Digger()
    result = {"resultType": "input_required", "content": [{"type": "text", "text": "x" * 20_000}]}
    settings = Settings(max_result_tokens=500)
    async with aggregating({"peer": digger.connect}, settings) as upstream:
        await ready(upstream)
        async with raw_client(upstream, "modern", CAN) as client:
            about = {"taskId": (await client.request("tools/call", CALL))["taskId"]}
            digger.tasks["dig-0"] |= {"status": "completed", "result": result}
            over = await client.request("tasks/get", about)

    assert len(str(over)) < 5000


async def test_only_who_knows_tasks_can_ask_to_be_told_of_some() -> None:
    digger = Digger()
    wanted: Json = {"notifications": {"taskIds": ["t"], "toolsListChanged": True}}
    async with aggregating({"peer": digger.connect}) as upstream:
        await ready(upstream)
        async with raw_client(upstream, "modern") as client:
            with pytest.raises(MCPError) as refused:
                await client.request("subscriptions/listen", wanted)
        async with (
            raw_client(upstream, "modern", CAN) as client,
            anyio.create_task_group() as group,
        ):
            group.start_soon(client.request, "subscriptions/listen", wanted)
            told = await client.until_heard("notifications/subscriptions/acknowledged")
            assert "taskIds" not in told["notifications"]
            assert told["notifications"]["toolsListChanged"]
            group.cancel_scope.cancel()

    assert refused.value.error.code == types.MISSING_REQUIRED_CLIENT_CAPABILITY
