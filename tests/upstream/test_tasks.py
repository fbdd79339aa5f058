"""Tasks pass: a client follows what a server goes on working on, and nobody else can."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from aggregator.catalog import Idle
from aggregator.config import Settings
from aggregator.downstream.tasks import LONGEST, TASKS
from aggregator.downstream.transport import Transport
from aggregator.names import ServerName
from aggregator.records.events import CallEnded, Event
from aggregator.upstream.results.telling import RESULT_META
from aggregator.upstream.server import Upstream
from aggregator.upstream.visitor import Visitor
from tests.peers import ERAS, Era, Mortal, aggregating, configured, ready, until
from tests.raw import FULL_CAPABILITIES, Dispatch, Json, RawServer, raw_client

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("each_way")]

CAN: Json = {"extensions": {TASKS: {}}}
CALL: Json = {"name": "peer__dig", "arguments": {"deep": 1}}
QUESTION: Json = {"method": "elicitation/create", "params": {"message": "Deeper?"}}
TIMES: Json = {"createdAt": "2026-11-19T00:00:00Z", "lastUpdatedAt": "2026-11-19T00:00:00Z"}


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


class Digger(RawServer):
    """A modern server that makes a task of each call whose client can follow it."""

    def __init__(self, **options: Any) -> None:
        super().__init__("modern")
        self.capabilities = {**FULL_CAPABILITIES, **CAN}
        self.tasks: dict[str, Json] = {}
        self.ttl: object = options.get("ttl", 60_000)
        self.own_id: object = options.get("own_id", "")
        self.tool("dig", self._dig)
        self.handlers["prompts/get"] = self._dig
        self.handlers["tasks/get"] = self._get
        self.handlers["tasks/update"] = self._update
        self.handlers["tasks/cancel"] = self._cancel

    def asked_about(self) -> list[tuple[str, str]]:
        """Return what was asked about tasks, and by which id."""
        return [(each, params["taskId"]) for each, params in self.received if "tasks/" in each]

    async def _dig(self, _context: Dispatch, params: Json) -> Json:
        can = params["_meta"]["io.modelcontextprotocol/clientCapabilities"]
        if TASKS not in can.get("extensions", {}):
            return {"content": [{"type": "text", "text": "dug at once"}]}
        task = self.own_id or f"dig-{len(self.tasks)}"
        self.tasks[str(task)] = {"status": "working", "ttlMs": self.ttl, **TIMES}
        return {"resultType": "task", "taskId": task, **self.tasks[str(task)]}

    async def _get(self, _context: Dispatch, params: Json) -> Json:
        task = self._task(params)
        return {"taskId": params["taskId"], **task, "pollIntervalMs": 50}

    async def _update(self, _context: Dispatch, params: Json) -> Json:
        self._task(params)["answers"] = params["inputResponses"]
        return {}

    async def _cancel(self, _context: Dispatch, params: Json) -> Json:
        self._task(params)["status"] = "cancelled"
        return {}

    def _task(self, params: Json) -> Json:
        if params["taskId"] not in self.tasks:
            raise MCPError(types.INVALID_PARAMS, "Task not found")
        return self.tasks[params["taskId"]]


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


@pytest.mark.parametrize("own_id", [7, None, {"a": 1}, "x" * 2000])
async def test_a_task_without_a_usable_id_is_an_error_of_its_server(own_id: object) -> None:
    digger = Digger(own_id=own_id)
    if own_id is None:
        digger.handlers["tools/call dig"] = _task_without_id
    async with aggregating({"peer": digger.connect}) as upstream:
        await ready(upstream)
        async with raw_client(upstream, "modern", CAN) as client:
            with pytest.raises(MCPError, match="`taskId` is none"):
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


async def test_a_task_that_went_with_its_server_is_said_to_be_gone() -> None:
    digger = Digger()
    way = Mortal(digger.connect)
    async with aggregating({"peer": way}) as upstream:
        await ready(upstream)
        async with raw_client(upstream, "modern", CAN) as client:
            handle = await client.request("tools/call", CALL)
            about = {"taskId": handle["taskId"]}
            await client.request("tasks/get", about)
            digger.tasks.clear()
            way.cut()
            await anyio.sleep(5)
            with pytest.raises(MCPError) as gone:
                await client.request("tasks/get", about)
            new = await client.request("tools/call", CALL)
            await client.request("tasks/get", {"taskId": new["taskId"]})
            digger.tasks.clear()
            with pytest.raises(MCPError) as unknown:
                await client.request("tasks/get", {"taskId": new["taskId"]})

    assert gone.value.error.code == unknown.value.error.code == types.INVALID_PARAMS
    assert "`peer` was started or connected anew" in gone.value.error.message
    assert unknown.value.error.message == "Task not found"


async def test_what_cannot_be_found_out_about_a_task_is_said() -> None:
    digger, is_dead = Digger(), False

    @asynccontextmanager
    async def connect() -> AsyncGenerator[Transport, None]:
        if is_dead:
            raise OSError("no such program")
        async with digger.connect() as transport:
            yield transport

    way = Mortal(connect)
    async with aggregating({"peer": way}) as upstream:
        await ready(upstream)
        async with raw_client(upstream, "modern", CAN) as client:
            handle = await client.request("tools/call", CALL)
            is_dead = True
            way.cut()
            await anyio.sleep(60)
            with pytest.raises(MCPError) as unclear:
                await client.request("tasks/get", {"taskId": handle["taskId"]})

    assert unclear.value.error.code == types.INTERNAL_ERROR
    assert "about the task now, ask again later: the server `peer`" in unclear.value.error.message
    assert "tool was not run" not in unclear.value.error.message


async def test_a_task_of_a_server_that_was_taken_out_is_gone() -> None:
    digger = Digger()
    servers = {"peer": digger.connect, "other": RawServer("modern").connect}
    async with aggregating(servers) as upstream:
        await ready(upstream)
        async with raw_client(upstream, "modern", CAN) as client:
            handle = await client.request("tools/call", CALL)
            upstream.fleet.reconfigure(configured({"other": {}}))
            with pytest.raises(MCPError, match="gone with its server `peer`"):
                await client.request("tasks/get", {"taskId": handle["taskId"]})


def _completed(digger: Digger) -> None:
    digger.tasks["dig-0"] |= {"status": "completed", "result": {"content": []}}


def _forgotten(digger: Digger) -> None:
    digger.tasks.clear()


@pytest.mark.parametrize("end", [_completed, _forgotten])
async def test_a_server_rests_only_when_its_tasks_are_over(end: Callable[[Digger], None]) -> None:
    digger = Digger(ttl=None)
    way = Mortal(digger.connect)
    options = {"start": "lazy", "idle_timeout": 30.0}
    async with aggregating({"peer": way}, peer=options) as upstream:
        await ready(upstream)
        async with raw_client(upstream, "modern", CAN) as client:
            handle = await client.request("tools/call", CALL)
            await anyio.sleep(3600)
            about = {"taskId": handle["taskId"]}
            assert (await client.request("tasks/get", about))["status"] == "working"
            end(digger)
            try:
                await client.request("tasks/get", about)
            except MCPError:
                assert end is _forgotten
            await anyio.sleep(29)
            assert not _rests(upstream)
            await anyio.sleep(2)
            assert _rests(upstream)

    assert len(way.opened) == 1


@pytest.mark.parametrize(("ttl", "seconds"), [(60_000, 60), (None, LONGEST), ("soon", LONGEST)])
async def test_a_server_is_kept_for_a_task_as_long_as_it_lives(ttl: object, seconds: float) -> None:
    digger = Digger(ttl=ttl)
    options = {"start": "lazy", "idle_timeout": 30.0}
    async with aggregating({"peer": digger.connect}, peer=options) as upstream:
        await ready(upstream)
        async with raw_client(upstream, "modern", CAN) as client:
            await client.request("tools/call", CALL)
            await anyio.sleep(seconds + 29)
            assert not _rests(upstream)
            await anyio.sleep(2)
            await until(lambda: _rests(upstream), lambda: upstream.fleet.changed)


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


def _rests(upstream: Upstream) -> bool:
    return isinstance(upstream.fleet.now.catalog.servers[ServerName("peer")], Idle)
