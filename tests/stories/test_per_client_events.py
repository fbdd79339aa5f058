"""What a client's own process says outside of a call reaches that client, and nobody else."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from aggregator.basics.tasks import TASKS
from aggregator.catalog import Idle
from aggregator.downstream.transport import Transport
from aggregator.fleet import client_processes
from aggregator.names import ServerName
from aggregator.upstream.connected_clients import ConnectedClients
from aggregator.upstream.conversation import Conversation
from aggregator.upstream.resident import ClientResident
from aggregator.upstream.server import Upstream
from tests.peers import ERAS, Era, aggregating
from tests.raw import Dispatch, Json, RawClient, RawServer, raw_client

pytestmark = pytest.mark.anyio

PAD = ServerName("pad")
UPDATED = "notifications/resources/updated"
LOGGED = "notifications/message"
CHANGED = "notifications/roots/list_changed"
ABLE: Json = {"roots": {"listChanged": True}, "elicitation": {"form": {}}}
QUESTION: Json = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


class Pad(RawServer):
    """A process of the handshake era that asks for roots when it is ready, and when they change."""

    def __init__(self, number: int) -> None:
        super().__init__(
            "handshake", prompts__get=self._told_prompt, resources__read=self._told_resource
        )
        self.resources = [{"uri": f"pad://{each}", "name": str(each)} for each in (1, 2)]
        self.prompts = [{"name": "greet"}]
        self.number = number
        self.roots: list[Any] = []
        self.tool("which", self._which)
        self.tool("ask", self._ask)

    async def _which(self, _context: Dispatch, _params: Json) -> Json:
        return {"content": [{"type": "text", "text": str(self.number)}]}

    async def _ask(self, _context: Dispatch, _params: Json) -> Json:
        answer = await self.ask("elicitation/create", QUESTION)
        return {"content": [{"type": "text", "text": str(answer["content"]["name"])}]}

    async def _told_prompt(self, _context: Dispatch, _params: Json) -> Json:
        text = {"type": "text", "text": str(self.number)}
        return {"messages": [{"role": "user", "content": text}]}

    async def _told_resource(self, _context: Dispatch, params: Json) -> Json:
        return {"contents": [{"uri": params["uri"], "text": str(self.number)}]}

    async def _on_notify(
        self, context: Dispatch, method: str, params: Mapping[str, Any] | None
    ) -> None:
        await super()._on_notify(context, method, params)
        if method in ("notifications/initialized", CHANGED):
            with anyio.move_on_after(100):
                self.roots.append(await self.ask("roots/list", {}))


class Pads:
    """Starts another process at every connection."""

    def __init__(self) -> None:
        self.made: list[Pad] = []

    @asynccontextmanager
    async def __call__(self) -> AsyncGenerator[Transport, None]:
        self.made.append(Pad(len(self.made)))
        async with self.made[-1].connect() as transport:
            yield transport


@asynccontextmanager
async def shared(pads: Pads) -> AsyncGenerator[Upstream, None]:
    options = {"per_client": True, "trust_annotations": True}
    async with aggregating({PAD: pads}, is_shared=True, pad=options) as upstream:
        with anyio.fail_after(1000):
            while not isinstance(upstream.fleet.now.catalog.servers[PAD], Idle):
                await upstream.fleet.changed.wait()
        yield upstream


async def which(client: RawClient) -> int:
    answer = await client.request("tools/call", {"name": "pad__which", "arguments": {}})
    return int(answer["content"][0]["text"])


def heard(client: RawClient, method: str) -> list[Json]:
    return [params for each, params in client.heard if each == method]


async def test_each_process_is_given_the_roots_of_its_own_client() -> None:
    pads = Pads()
    async with (
        shared(pads) as upstream,
        raw_client(upstream, "handshake", ABLE) as one,
        raw_client(upstream, "handshake", ABLE) as other,
    ):
        homes = {id(one): "file:///one", id(other): "file:///other"}
        for client in (one, other):
            client.answers["roots/list"] = lambda _params, client=client: {
                "roots": [{"uri": homes[id(client)]}]
            }
        mine, theirs = pads.made[await which(one)], pads.made[await which(other)]
        await anyio.sleep(1)
        assert mine.roots == [{"roots": [{"uri": "file:///one"}]}]
        assert theirs.roots == [{"roots": [{"uri": "file:///other"}]}]

        homes[id(one)] = "file:///new"
        await one.notify(CHANGED)
        await anyio.sleep(1)
        assert mine.roots[1:] == [{"roots": [{"uri": "file:///new"}]}]
        assert theirs.roots[1:] == []


async def test_each_is_told_of_what_its_own_process_says_has_changed() -> None:
    pads = Pads()
    async with (
        shared(pads) as upstream,
        raw_client(upstream, "handshake") as one,
        raw_client(upstream, "handshake") as other,
    ):
        # To watch something is to use it.
        await one.request("resources/subscribe", {"uri": "pad://1"})
        await other.request("resources/subscribe", {"uri": "pad://1"})
        mine, theirs = pads.made[await which(one)], pads.made[await which(other)]
        assert mine is not theirs
        await mine.change(UPDATED, {"uri": "pad://1"})
        await one.until_heard(UPDATED)
        await anyio.sleep(1)
        assert heard(other, UPDATED) == []

        await one.request("resources/unsubscribe", {"uri": "pad://1"})
        await anyio.sleep(1)
        assert "resources/unsubscribe" in mine.methods()
        assert "resources/unsubscribe" not in theirs.methods()


async def test_the_next_process_knows_what_its_client_watches() -> None:
    pads = Pads()
    async with shared(pads) as upstream, raw_client(upstream, "handshake") as client:
        await client.request("resources/subscribe", {"uri": "pad://1"})
        await client.request("resources/subscribe", {"uri": "pad://2"})
        upstream.fleet.client_processes.reconfigure({})
        await anyio.sleep(1)
        assert list(upstream.fleet.client_processes) == []
        await client.request("resources/unsubscribe", {"uri": "pad://2"})
        await anyio.sleep(1)

        again = pads.made[await which(client)]
        await anyio.sleep(1)
        assert "resources/subscribe" in again.methods()
        await again.change(UPDATED, {"uri": "pad://1"})
        await client.until_heard(UPDATED)


async def test_who_has_no_session_cannot_be_told() -> None:
    async with shared(Pads()) as upstream, raw_client(upstream, "modern") as client:
        async with anyio.create_task_group() as group:
            wanted: Json = {"notifications": {"resourceSubscriptions": ["pad://1"]}}
            group.start_soon(client.request, "subscriptions/listen", wanted)
            told = await client.until_heard("notifications/subscriptions/acknowledged")
            assert not told["notifications"].get("resourceSubscriptions")
            group.cancel_scope.cancel()


async def test_each_is_told_what_its_own_process_logs() -> None:
    pads = Pads()
    async with (
        shared(pads) as upstream,
        raw_client(upstream, "handshake") as one,
        raw_client(upstream, "handshake") as other,
    ):
        for client in (one, other):
            await client.request("logging/setLevel", {"level": "info"})
        mine = pads.made[await which(one)]
        await which(other)
        await mine.say(LOGGED, {"level": "warning", "data": "mine"})
        assert (await one.until_heard(LOGGED))["data"] == "mine"
        await anyio.sleep(1)
        assert heard(other, LOGGED) == []


@pytest.mark.parametrize("era", ERAS)
async def test_questions_go_to_whoever_called(era: Era) -> None:
    async with (
        shared(Pads()) as upstream,
        raw_client(upstream, "handshake", ABLE) as one,
        raw_client(upstream, era, ABLE) as other,
    ):
        answers: dict[str, str] = {}

        async def call(client: RawClient, name: str) -> None:
            reply = {"action": "accept", "content": {"name": name}}
            client.answers["elicitation/create"] = lambda _params: reply
            params: Json = {"name": "pad__ask", "arguments": {}}
            answer = await client.request("tools/call", params)
            if answer.get("resultType") == "input_required":
                key = next(iter(answer["inputRequests"]))
                state = {"requestState": answer["requestState"], "inputResponses": {key: reply}}
                answer = await client.request("tools/call", {**params, **state})
            answers[name] = answer["content"][0]["text"]

        async with anyio.create_task_group() as group:
            group.start_soon(call, one, "one")
            group.start_soon(call, other, "other")
        assert answers == {"one": "one", "other": "other"}


@pytest.mark.parametrize("era", ERAS)
async def test_prompts_and_resources_are_those_of_its_own_process(era: Era) -> None:
    async with (
        shared(Pads()) as upstream,
        raw_client(upstream, "handshake") as one,
        raw_client(upstream, era) as other,
    ):
        for client in (one, other):
            own = str(await which(client))
            prompt = await client.request("prompts/get", {"name": "pad__greet"})
            resource = await client.request("resources/read", {"uri": "pad://1"})
            assert prompt["messages"][0]["content"]["text"] == own
            assert resource["contents"][0]["text"] == own
        assert await which(one) != await which(other)


async def test_a_process_knows_what_its_own_client_can_be_asked() -> None:
    pads = Pads()
    async with (
        shared(pads) as upstream,
        raw_client(upstream, "handshake", ABLE) as one,
        raw_client(upstream, "handshake") as other,
        raw_client(upstream, "modern", {"extensions": {TASKS: {}, "x/own": {"a": 1}}}) as third,
    ):
        able, unable = pads.made[await which(one)], pads.made[await which(other)]
        modern = pads.made[await which(third)]
    assert able.client["capabilities"]["roots"] == {"listChanged": True}
    assert "roots" not in unable.client["capabilities"]
    assert types.ElicitationCapability.model_validate(able.client["capabilities"]["elicitation"])
    # Its tasks nobody could ask about.
    assert modern.client["capabilities"]["extensions"] == {"x/own": {"a": 1}}


async def test_what_cannot_be_begun_cannot_be_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_processes, "MAX_CLIENT_PROCESSES", 0)
    async with shared(Pads()) as upstream, raw_client(upstream, "handshake") as client:
        with pytest.raises(MCPError, match="processes run already"):
            await client.request("resources/subscribe", {"uri": "pad://1"})


async def test_the_process_of_who_has_no_session_is_refused_its_questions() -> None:
    caller: Any = SimpleNamespace(capabilities={}, party="address", whose="address")
    conversation = Conversation("modern", has_memory=False)
    resident = ClientResident(caller, conversation, ConnectedClients(is_shared=True))

    assert (resident.key, resident.has_left, resident.is_seen_off) == ("address", False, False)
    with pytest.raises(MCPError):
        await resident.asked(PAD, "roots/list", {})
