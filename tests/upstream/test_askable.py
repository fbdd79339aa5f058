"""What servers ask outside of any call is answered by the only client, if there is only one."""

from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from aggregator.downstream.questions import EVERYTHING, MAX_OUTSIDE, Questions
from aggregator.names import ServerName
from aggregator.upstream.askable import ANSWER_PATIENCE, ARRIVAL_PATIENCE
from aggregator.upstream.stream_client import SETTLING
from tests.peers import Era, aggregating, configured, late, ready, visiting
from tests.raw import Dispatch, Json, RawServer, raw_client
from tests.upstream.test_questions import ABLE, ANSWERS, QUESTIONS

pytestmark = pytest.mark.anyio

ROOTS: Json = {"roots": [{"uri": "file:///work"}]}
OTHER_ROOTS: Json = {"roots": [{"uri": "file:///play"}]}
CHANGED = "notifications/roots/list_changed"
CALL: Json = {"name": "fs__where", "arguments": {}}


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


class Files(RawServer):
    """A server of the handshake era that asks for roots when it is ready, and when they change.

    It gives up after a minute, as servers made with the TypeScript SDK do.
    """

    def __init__(self) -> None:
        super().__init__("handshake")
        self.roots: list[Any] = []
        self.tool("where", self._where)

    async def _where(self, _context: Dispatch, _params: Json) -> Json:
        return {"content": [], "structuredContent": {"roots": self.roots[-1:]}}

    async def _on_notify(self, context: Dispatch, method: str, params: Any) -> None:
        await super()._on_notify(context, method, params)
        if method in ("notifications/initialized", CHANGED):
            with anyio.move_on_after(60):
                try:
                    self.roots.append(await self.ask("roots/list", {}))
                except MCPError as error:
                    self.roots.append(error.message)


async def test_the_roots_of_the_only_client_are_there_and_change() -> None:
    files, roots = Files(), [ROOTS]

    async with (
        aggregating({"fs": files.connect}) as upstream,
        raw_client(upstream, "handshake", {"roots": {"listChanged": True}}) as client,
    ):
        client.answers["roots/list"] = lambda _params: roots[-1]
        await anyio.sleep(1)
        before = await client.request("tools/call", CALL)
        roots.append(OTHER_ROOTS)
        await client.notify(CHANGED)
        await anyio.sleep(1)
        after = await client.request("tools/call", CALL)

    assert before["structuredContent"] == {"roots": [ROOTS]}
    assert after["structuredContent"] == {"roots": [OTHER_ROOTS]}


async def test_roots_asked_for_during_a_call_outlive_it(client_era: Era) -> None:
    server, wanted, asked = RawServer("handshake"), anyio.Event(), anyio.Event()
    answers: list[Json] = []

    async def where(_context: Dispatch, _params: Json) -> Json:
        wanted.set()
        await asked.wait()
        return {"content": []}

    async def tell(_context: object) -> types.ListRootsResult:
        asked.set()
        await anyio.sleep(1)
        return types.ListRootsResult.model_validate(ROOTS)

    async def ask() -> None:
        await wanted.wait()
        answers.append(await server.ask("roots/list", {}))

    server.tool("where", where)
    async with aggregating({"fs": server.connect}) as upstream:
        await ready(upstream)
        async with (
            visiting(upstream, client_era, list_roots_callback=tell) as client,
            anyio.create_task_group() as group,
        ):
            group.start_soon(ask)
            await client.call_tool("fs__where", {})
            await anyio.sleep(2)
            await client.call_tool("fs__where", {})

    assert [answer["roots"][0]["uri"] for answer in answers] == ["file:///work"]


@pytest.mark.parametrize("method", QUESTIONS)
async def test_a_client_with_a_session_is_asked_anything(method: str) -> None:
    server = RawServer("handshake")

    async with aggregating({"asker": server.connect}) as upstream:
        await ready(upstream)
        async with raw_client(upstream, "handshake", ABLE) as client:
            client.answers[method] = lambda _params: ANSWERS[method]
            answer = await server.ask(method, QUESTIONS[method])

    assert answer == ANSWERS[method]
    assert client.questions[0][1].get("message") in (None, "[asker] Your name?")


async def test_a_server_that_asks_first_waits_for_the_client() -> None:
    files = Files()

    async with aggregating({"fs": files.connect}) as upstream:
        await anyio.sleep(ARRIVAL_PATIENCE - 1)
        async with raw_client(upstream, "handshake", {"roots": {}}) as client:
            client.answers["roots/list"] = lambda _params: ROOTS
            await anyio.sleep(1)

    assert files.roots == [ROOTS]


async def test_a_server_does_not_wait_for_ever_for_a_client_that_does_not_come() -> None:
    files = Files()

    async with aggregating({"fs": files.connect}) as upstream:
        await ready(upstream)
        await anyio.sleep(ARRIVAL_PATIENCE + 1)

    assert "cannot be attributed" in files.roots[0]


async def test_a_client_that_does_not_answer_is_given_up() -> None:
    server = RawServer("handshake")

    async with aggregating({"asker": server.connect}) as upstream:
        await ready(upstream)

        async def think(_context: object) -> types.ListRootsResult:
            await anyio.sleep_forever()
            raise AssertionError

        async with visiting(upstream, "handshake", list_roots_callback=think):
            began = anyio.current_time()
            with pytest.raises(MCPError, match="did not answer"):
                await server.ask("roots/list", {})

    assert anyio.current_time() - began == pytest.approx(ANSWER_PATIENCE, abs=1)


async def test_a_client_without_roots_is_not_asked(client_era: Era) -> None:
    files = Files()

    async with (
        aggregating({"fs": files.connect}) as upstream,
        raw_client(upstream, client_era, {"sampling": {}}) as client,
    ):
        await anyio.sleep(1)
        result = await client.request("tools/call", CALL)

    assert client.questions == []
    assert "does not support `roots/list`" in result["structuredContent"]["roots"][0]


async def test_where_clients_share_a_server_nobody_is_asked() -> None:
    files = Files()

    async with aggregating({"fs": files.connect}, is_shared=True):
        await anyio.sleep(0.1)

    assert "give it its directories in `args`" in files.roots[0]
    assert files.client["capabilities"]["roots"] == {}


async def test_two_clients_are_too_many() -> None:
    server = RawServer("handshake")

    async with aggregating({"asker": server.connect}) as upstream:
        await ready(upstream)
        async with (
            raw_client(upstream, "handshake", ABLE) as one,
            raw_client(upstream, "handshake", ABLE) as other,
        ):
            await anyio.sleep(1)
            with pytest.raises(MCPError, match="cannot be attributed"):
                await server.ask("roots/list", {})

    assert one.questions == other.questions == []


async def test_a_modern_client_is_asked_by_the_answer_to_its_next_request() -> None:
    files = Files()

    async with (
        aggregating({"fs": files.connect}) as upstream,
        raw_client(upstream, "modern", {"roots": {}}) as client,
    ):
        await anyio.sleep(1)
        search: Json = {"name": "ToolSearch", "arguments": {"query": "where"}}
        asked = await client.request("tools/call", search)
        again = {"inputResponses": {"roots": ROOTS}, "requestState": asked["requestState"]}
        found = await client.request("tools/call", {**search, **again})
        called = await client.request("tools/call", CALL)

    assert asked["inputRequests"] == {"roots": {"method": "roots/list"}}
    assert "fs__where" in found["content"][0]["text"]
    assert called["structuredContent"] == {"roots": [ROOTS]}


async def test_a_server_that_gave_up_is_told_when_the_roots_are_known() -> None:
    files = Files()

    async with aggregating({"fs": files.connect, "other": RawServer("modern").connect}) as upstream:
        await ready(upstream)

        async def roots(_context: object) -> types.ListRootsResult:
            return types.ListRootsResult.model_validate(ROOTS)

        async with visiting(upstream, "modern", list_roots_callback=roots) as client:
            await anyio.sleep(3600)
            assert files.roots == []
            began = anyio.current_time()
            result = await client.call_tool("fs__where", {})
            assert anyio.current_time() - began == pytest.approx(SETTLING, abs=0.1)

    assert result.structured_content == {"roots": [ROOTS]}
    assert files.methods().count(CHANGED) == 1


@pytest.mark.parametrize(
    ("era", "roots", "told"),
    [
        ("handshake", {}, {}),
        ("handshake", {"listChanged": True}, {"listChanged": True}),
        ("modern", {}, {"listChanged": True}),
    ],
)
async def test_servers_are_told_of_changed_roots_where_they_can_ask_for_them(
    era: Era, roots: Json, told: Json
) -> None:
    files = Files()

    async with (
        aggregating({"fs": files.connect}, without=["fs"]) as upstream,
        raw_client(upstream, era, {"roots": roots}),
    ):
        upstream.fleet.reconfigure(configured({"fs": {}}))
        await ready(upstream)

    assert files.client["capabilities"] == {"roots": told}


async def test_questions_outside_of_calls_are_bounded() -> None:
    never = anyio.Event()

    async def ask(*_question: object) -> dict[str, Any]:
        await never.wait()
        raise AssertionError

    questions = Questions(ServerName("db"), ask)
    async with anyio.create_task_group() as group:
        for _ in range(MAX_OUTSIDE):
            group.start_soon(questions.answer, None, "roots/list", None)
        await anyio.sleep(60)
        with pytest.raises(MCPError, match="open already"):
            await questions.answer(None, "roots/list", None)
        group.cancel_scope.cancel()


@pytest.mark.parametrize("first", [{}, ABLE], ids=["can nothing", "can all"])
async def test_a_server_that_several_share_is_told_the_same_whoever_comes_first(
    client_era: Era, first: Json
) -> None:
    """What it offers may depend on it, and is for all of them."""
    server = RawServer("handshake")

    async with aggregating({"peer": late(server.connect, 5)}, is_shared=True) as upstream:
        async with raw_client(upstream, client_era, first) as client:
            await client.request("tools/list")
            await anyio.sleep(10)
            await ready(upstream)

    assert server.client["capabilities"] == EVERYTHING
