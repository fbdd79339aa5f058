"""Whole conversations over the OpenAI Responses API."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from aggregator.host import AsyncToolbox, Carry
from aggregator.host.responses.history import discovered
from tests.host.test_conversations import Agent
from tests.host.vendors import RefusedError, ResponsesApi, use
from tests.peers import Mortal, Peer, aggregating, connect_to, ready, until, visiting

pytestmark = pytest.mark.anyio

MODEL = "gpt-5.4"
OLD = "gpt-4.1"
SAID: dict[str, Any] = {
    "type": "message",
    "role": "assistant",
    "id": "m",
    "status": "completed",
    "content": [{"type": "output_text", "text": "Done.", "annotations": []}],
}


@asynccontextmanager
async def boxed() -> AsyncGenerator[AsyncToolbox, None]:
    servers = {"notes": connect_to(Peer("add", "find")), "mail": connect_to(Peer("send"))}
    async with aggregating(servers) as upstream:
        await ready(upstream)
        async with AsyncToolbox(client=visiting(upstream, "modern"), environment={}) as box:
            yield box


def search(query: str, **more: Any) -> dict[str, Any]:
    return {"type": "search", "query": query, "more": more}


def called(server: str, tool: str, **arguments: Any) -> dict[str, Any]:
    return {**use(tool, **arguments), "namespace": server}


async def test_a_tool_is_found_and_called_and_another_one() -> None:
    async with boxed() as box:
        agent = Agent(box.openai(MODEL), ResponsesApi(), MODEL)
        agent.ask("note this")
        found = await agent.step(search("select:notes__add"))
        result = await agent.step(called("notes", "add", text="this"))
        await agent.step(SAID)
        agent.ask("mail it")
        await agent.step(search("select:mail__send"), search("select:notes__find"))
        await agent.step(called("mail", "send"), called("notes", "find"))
        await agent.step(SAID)

    assert [each["name"] for each in found[1]["tools"]] == ["notes"]
    assert result[1]["output"] == "add: {'text': 'this'}"
    assert agent.api.keeps_its_beginning()


async def test_a_search_that_finds_nothing_says_so() -> None:
    async with boxed() as box:
        agent = Agent(box.openai(MODEL), ResponsesApi(), MODEL)
        agent.ask("note this")
        found = await agent.step(search("select:zzz"))
        await agent.step(SAID)

    assert found[1]["tools"] == []
    assert "There is no tool" in found[2]["content"][0]["text"]


async def test_a_model_that_does_not_search_goes_on_with_plain_functions() -> None:
    async with boxed() as box:
        agent = Agent(box.openai(MODEL), ResponsesApi(), MODEL)
        agent.ask("note this")
        await agent.step(search("select:notes__add"))
        await agent.step(called("notes", "add"))
        agent.model, agent.talk = OLD, box.openai(OLD)
        await agent.step(use("notes__add"))
        await agent.step(use("ToolSearch", query="select:mail__send"))
        await agent.step(use("mail__send"), use("ToolSearch", query="select:zzz"))
        agent.model, agent.talk = MODEL, box.openai(MODEL)
        await agent.step(called("notes", "add"), use("mail__send"))
        await agent.step(SAID)


@pytest.mark.parametrize("carry", ["inline", "plain"])
async def test_a_compaction_keeps_what_was_found(carry: Carry) -> None:
    model = MODEL if carry == "inline" else OLD

    async with boxed() as box:
        agent = Agent(box.openai(model), ResponsesApi(), model)
        agent.ask("note this")
        query = "select:notes__add"
        asked = search(query) if carry == "inline" else use("ToolSearch", query=query)
        await agent.step(asked)
        agent.history.append({"type": "compaction", "encrypted_content": "..."})
        agent.ask("go on")
        await agent.step(use("notes__add"))
        agent.snapshot = agent.talk.snapshot(agent.history)
        agent.history = []
        agent.ask("Summary: a note was added. Add another.")
        await agent.step(use("notes__add"))

    assert agent.snapshot == ["notes__add"]


async def test_a_model_or_a_gateway_nobody_knows_is_given_everything() -> None:
    async with boxed() as box:
        for model, url in (("llama-4", None), (MODEL, "http://127.0.0.1:4000/v1")):
            agent = Agent(box.openai(model, base_url=url), ResponsesApi(is_gateway=True), model)
            agent.ask("note this")
            await agent.step(use("notes__add"), use("mail__send"))
            await agent.step(SAID)


async def test_a_conversation_that_has_searched_goes_on_through_a_gateway_that_refuses_it() -> None:
    async with boxed() as box:
        agent = Agent(box.openai(MODEL), ResponsesApi(), MODEL)
        agent.ask("note this")
        await agent.step(search("select:notes__add"))
        await agent.step(called("notes", "add"))
        agent.api = ResponsesApi(is_gateway=True)
        with pytest.raises(RefusedError):
            await agent.step(SAID)
        agent.talk = box.openai(MODEL, base_url="http://127.0.0.1:4000/v1")
        await agent.step(use("notes__add"), use("mail__send"))
        await agent.step(SAID)

    assert agent.talk.carry == "all"


@pytest.mark.parametrize("model", [MODEL, OLD])
async def test_searches_run_in_parallel_and_each_has_its_own_answer(model: str) -> None:
    async with boxed() as box:
        agent = Agent(box.openai(model), ResponsesApi(), model)
        agent.ask("note and mail")
        added = await agent.step(
            asking(model, "select:notes__add"), asking(model, "select:mail__send")
        )
        await agent.step(using(model, "notes", "add"), using(model, "mail", "send"))
        await agent.step(SAID)

    assert [each["call_id"] for each in added] == ["call_1", "call_2"] * 2
    assert [discovered([*added[:2], each]) for each in added[2:]] == [
        ("notes__add",),
        ("mail__send",),
    ]
    assert agent.api.keeps_its_beginning() is (model == MODEL)


@pytest.mark.parametrize("model", [MODEL, OLD])
async def test_names_alone_are_read_and_not_loaded(model: str) -> None:
    async with boxed() as box:
        agent = Agent(box.openai(model), ResponsesApi(), model)
        agent.ask("what is there?")
        asked = search("", names=True) if model == MODEL else use("ToolSearch", names=True)
        added = await agent.step(asked)
        await agent.step(SAID)

    assert "notes__: add, find" in str(added)
    assert agent.talk.snapshot(agent.history) == []


async def test_tools_of_the_author_are_found_and_arguments_that_are_no_json_are_told() -> None:
    mine: dict[str, Any] = {
        "type": "function",
        "name": "mine",
        "description": "Shows the moon",
        "parameters": {"type": "object", "properties": {}},
        "strict": False,
        "defer_loading": True,
    }

    async with boxed() as box:
        agent = Agent(box.openai(MODEL), ResponsesApi(), MODEL)
        agent.tools = [mine]
        agent.ask("show me the moon")
        await agent.step(search("moon"))
        shown = await agent.step(use("mine"))
        broken = {"type": "function_call", "call_id": "x", "name": "mine", "arguments": "{"}
        told = await agent.step(broken)

    assert shown[1]["output"] == "mine: {}"
    assert told[1]["output"].startswith("The call failed: The arguments are not JSON")


async def test_references_are_not_for_this_api() -> None:
    async with boxed() as box:
        with pytest.raises(ValueError, match="inline"):
            box.openai(MODEL, carry="reference")


@asynccontextmanager
async def gated(peer: Peer, gate: Callable[[], anyio.Event]) -> AsyncGenerator[Any, None]:
    """Connect to a server once its gate is open."""
    await gate().wait()
    async with connect_to(peer)() as transport:
        yield transport


@pytest.mark.parametrize("model", [MODEL, OLD])
async def test_a_server_that_is_lost_and_comes_back_costs_no_request(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What it offers is not kept in the lists for a while, in which it may come back.
    monkeypatch.setattr("aggregator.downstream.outage.AWAY", 0.0)
    gate = anyio.Event()
    gate.set()
    way = Mortal(lambda: gated(Peer("add"), lambda: gate))
    async with aggregating({"notes": way}) as upstream:
        await ready(upstream)
        async with AsyncToolbox(client=visiting(upstream, "modern"), environment={}) as box:
            agent = Agent(box.openai(model), ResponsesApi(), model)
            agent.ask("note this")
            await agent.step(asking(model, "select:notes__add"))
            gate = anyio.Event()
            way.cut()
            await until(
                lambda: not upstream.fleet.now.catalog.known, lambda: upstream.fleet.changed
            )
            await agent.step(SAID)
            prompt = agent.api.prompts[-1]
            gate.set()
            await ready(upstream)
            agent.ask("again")
            again = await agent.step(using(model, "notes", "add"))

    assert "Gone:" in prompt
    assert "New:" in agent.api.prompts[-1]
    assert again[-1]["output"] == "add: {}"
    assert agent.api.keeps_its_beginning() is (model == MODEL)


@pytest.mark.parametrize("model", [MODEL, OLD])
async def test_a_late_server_is_announced_at_the_end(model: str) -> None:
    gate = anyio.Event()
    servers: dict[str, Any] = {
        "notes": connect_to(Peer("add")),
        "mail": lambda: gated(Peer("send"), lambda: gate),
    }
    async with aggregating(servers) as upstream:
        async with AsyncToolbox(client=visiting(upstream, "modern"), environment={}) as box:
            agent = Agent(box.openai(model), ResponsesApi(), model)
            agent.ask("mail this")
            await agent.step(SAID)
            gate.set()
            await ready(upstream)
            agent.ask("and now?")
            await agent.step(asking(model, "select:mail__send"))
            await agent.step(using(model, "mail", "send"))

    assert "mail" in agent.api.prompts[0].partition("Not connected yet: ")[2]
    assert "mail: send" in agent.api.prompts[1].partition("New:")[2]
    assert agent.api.keeps_its_beginning() is (model == MODEL)


@pytest.mark.parametrize("model", [MODEL, OLD])
async def test_what_one_agent_finds_is_not_found_by_another(model: str) -> None:
    async with boxed() as box:
        agent = Agent(box.openai(model), ResponsesApi(), model)
        agent.ask("note this")
        await agent.step(asking(model, "select:notes__add"))
        async with box.fork() as fork:
            helper = Agent(fork.openai(model), ResponsesApi(), model)
            helper.ask("help")
            with pytest.raises(AssertionError, match="add"):
                await helper.step(using(model, "notes", "add"))
        await agent.step(using(model, "notes", "add"))


async def test_tools_are_deferred_once_they_take_their_share_of_the_window() -> None:
    counted: list[int] = []

    async def count(tools: list[Any]) -> int:
        counted.append(len(tools))
        return 600

    async with boxed() as box:
        talk = box.openai(MODEL, defer="auto", window=200_000, count=count)
        agent = Agent(talk, ResponsesApi(), MODEL)
        agent.ask("note this")
        await agent.step(use("notes__add"))
        await agent.step(SAID)
        small = Agent(
            box.openai(MODEL, defer="auto:1", window=2_000, count=count), ResponsesApi(), MODEL
        )
        small.ask("note this")
        await small.step(search("select:notes__add"))
        await small.step(called("notes", "add"))

    assert counted == [3, 3]


def asking(model: str, query: str) -> dict[str, Any]:
    """Return a search as a model makes it, by its own item or by a function."""
    return search(query) if model == MODEL else use("ToolSearch", query=query)


def using(model: str, server: str, tool: str) -> dict[str, Any]:
    """Return a call as a model makes it, in a namespace or by the whole name."""
    return called(server, tool) if model == MODEL else use(f"{server}__{tool}")
