"""Whole conversations against model APIs that refuse what their vendors' refuse."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from aggregator.host import AsyncToolbox, Carry
from aggregator.host.connection import Connection
from aggregator.host.conversation import AsyncConversation
from tests.host.vendors import MessagesApi, say, use
from tests.peers import Era, Mortal, Peer, aggregating, connect_to, ready, until, visiting

pytestmark = pytest.mark.anyio

Json = dict[str, Any]

MODEL = "claude-opus-5"
CARRIES: tuple[Carry, ...] = ("reference", "inline", "plain")
SAFE: tuple[Carry, ...] = ("reference", "inline")
"""The ways that keep what is cached of a prompt."""


class Agent:
    """An agent's loop, with the answers of its model given."""

    def __init__(self, talk: AsyncConversation[Any], api: Any, model: str) -> None:
        self.talk = talk
        self.api = api
        self.model = model
        self.history: list[Json] = []
        self.tools: list[Json] = []
        self.snapshot: list[str] = []

    def ask(self, words: str) -> None:
        self.history.append({"role": "user", "content": words})

    async def step(self, *script: Json) -> list[Json]:
        """Make one request and append what follows; return it."""
        request = await self.talk.request(self.history, self.tools, snapshot=self.snapshot)
        response = self.api.create(script, model=self.model, max_tokens=1, **request)
        added = await self.talk.answer(response, {"mine": lambda given: f"mine: {given}"})
        self.history += added
        return added


@asynccontextmanager
async def talking(
    era: Era = "modern",
    carry: Carry | None = None,
    model: str = MODEL,
    servers: dict[str, Any] | None = None,
    **choices: Any,
) -> AsyncGenerator[Agent, None]:
    """Have a conversation over the Anthropic API."""
    peers = servers or {"notes": connect_to(Peer("add", "find")), "mail": connect_to(Peer("send"))}
    async with aggregating(peers) as upstream:
        if servers is None:
            await ready(upstream)
        async with AsyncToolbox(client=visiting(upstream, era), environment={}) as box:
            talk = box.anthropic(model, carry=carry, **choices)
            yield Agent(talk, MessagesApi(), model)


@pytest.mark.parametrize("carry", CARRIES)
async def test_a_tool_is_found_and_called_and_another_one(carry: Carry, client_era: Era) -> None:
    async with talking(client_era, carry) as agent:
        agent.ask("note this")
        await agent.step(use("ToolSearch", query="select:notes__add"))
        called = await agent.step(use("notes__add", text="this"))
        await agent.step(say("Done."))
        agent.ask("mail it")
        await agent.step(use("ToolSearch", query="select:mail__send"))
        await agent.step(use("mail__send"), use("notes__add"))
        await agent.step(say("Done."))

    assert called[-1]["content"][0]["content"] == [
        {"type": "text", "text": "add: {'text': 'this'}"}
    ]
    assert agent.api.keeps_its_beginning() is (carry in SAFE)


async def test_searches_run_in_parallel_and_each_has_its_own_answer() -> None:
    async with talking() as agent:
        agent.ask("note and mail")
        first, second = use("ToolSearch", query="add"), use("ToolSearch", query="select:mail__send")
        added = await agent.step(first, second)
        await agent.step(use("notes__add"), use("mail__send"))

    results = added[-1]["content"]
    assert [each["tool_use_id"] for each in results] == ["call_1", "call_2"]
    assert {"type": "tool_reference", "tool_name": "mail__send"} in results[1]["content"]


@pytest.mark.parametrize("carry", CARRIES)
@pytest.mark.parametrize("query", ["", "note"])
async def test_names_alone_are_read_and_not_loaded(carry: Carry, query: str) -> None:
    async with talking(carry=carry) as agent:
        agent.ask("what is there?")
        added = await agent.step(use("ToolSearch", query=query, names=True))
        await agent.step(say("Much."))

    assert "notes__: add, find" in added[-1]["content"][0]["content"][0]["text"]
    assert agent.talk.snapshot(agent.history) == []


@pytest.mark.parametrize("carry", SAFE)
async def test_a_compaction_by_the_api_keeps_what_was_found(carry: Carry) -> None:
    async with talking(carry=carry) as agent:
        agent.ask("note this")
        await agent.step(use("ToolSearch", query="select:notes__add"))
        await agent.step({"type": "compaction", "content": "They want a note."})
        agent.ask("go on")
        await agent.step(use("notes__add"))
        await agent.step(say("Done."))


@pytest.mark.parametrize("carry", SAFE)
async def test_a_compaction_by_the_api_that_records_no_tools_loses_none(carry: Carry) -> None:
    async with talking(carry=carry) as agent:
        agent.ask("note this")
        await agent.step(use("ToolSearch", query="select:notes__add"))
        await agent.step(say("..."))
        summary: Json = {"type": "compaction", "content": "They want a note."}
        agent.history.append({"role": "assistant", "content": [summary]})
        agent.ask("go on")
        await agent.step(use("notes__add"))


@pytest.mark.parametrize("carry", CARRIES)
async def test_a_compaction_by_the_author_keeps_what_was_found(carry: Carry) -> None:
    async with talking(carry=carry) as agent:
        agent.ask("note this")
        await agent.step(use("ToolSearch", query="select:notes__add"))
        await agent.step(use("notes__add"))
        agent.snapshot = agent.talk.snapshot(agent.history)
        agent.history = []
        agent.ask("Summary: a note was added. Add another.")
        await agent.step(use("notes__add"))
        await agent.step(use("ToolSearch", query="select:mail__send"))
        await agent.step(use("mail__send"), use("notes__add"))

    assert agent.snapshot == ["notes__add"]
    assert agent.api.keeps_its_beginning(2) is (carry in SAFE)


@pytest.mark.parametrize("carry", CARRIES)
async def test_a_server_that_is_lost_and_comes_back_costs_no_request(
    carry: Carry, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What it offers is not kept in the lists for a while, in which it may come back.
    monkeypatch.setattr("aggregator.downstream.outage.AWAY", 0.0)
    gate = anyio.Event()
    gate.set()

    @asynccontextmanager
    async def gated() -> AsyncGenerator[Any, None]:
        await gate.wait()
        async with connect_to(Peer("add"))() as transport:
            yield transport

    way = Mortal(gated)
    async with aggregating({"notes": way}) as upstream:
        await ready(upstream)
        async with AsyncToolbox(client=visiting(upstream, "modern"), environment={}) as box:
            agent = Agent(box.anthropic(MODEL, carry=carry), MessagesApi(), MODEL)
            agent.ask("note this")
            await agent.step(use("ToolSearch", query="select:notes__add"))
            gate = anyio.Event()
            way.cut()
            await until(
                lambda: not upstream.fleet.now.catalog.known, lambda: upstream.fleet.changed
            )
            told = await agent.step(say("It is gone."))
            prompt = agent.api.prompts[-1]
            gate.set()
            await ready(upstream)
            agent.ask("again")
            await agent.step(use("notes__add"))

    assert told[-1]["role"] == "assistant"
    assert "Gone:" in prompt
    assert "New:" in agent.api.prompts[-1]
    assert agent.api.keeps_its_beginning() is (carry in SAFE)


@pytest.mark.parametrize("carry", CARRIES)
async def test_a_late_server_is_announced_at_the_end(carry: Carry) -> None:
    gate = anyio.Event()

    @asynccontextmanager
    async def gated() -> AsyncGenerator[Any, None]:
        await gate.wait()
        async with connect_to(Peer("send"))() as transport:
            yield transport

    async with aggregating({"notes": connect_to(Peer("add")), "mail": gated}) as upstream:
        async with AsyncToolbox(client=visiting(upstream, "modern"), environment={}) as box:
            agent = Agent(box.anthropic(MODEL, carry=carry), MessagesApi(), MODEL)
            agent.ask("mail this")
            await agent.step(say("There is no mail yet."))
            gate.set()
            await ready(upstream)
            agent.ask("and now?")
            await agent.step(use("ToolSearch", query="select:mail__send"))
            await agent.step(use("mail__send"))

    assert "mail" in agent.api.prompts[0].partition("Not connected yet: ")[2]
    assert "mail: send" in agent.api.prompts[1].partition("New:")[2]
    assert agent.api.keeps_its_beginning() is (carry in SAFE)


async def test_a_model_that_cannot_use_references_goes_on_and_so_does_the_one_after() -> None:
    async with aggregating({"notes": connect_to(Peer("add", "find"))}) as upstream:
        await ready(upstream)
        async with AsyncToolbox(client=visiting(upstream, "modern"), environment={}) as box:
            agent = Agent(box.anthropic(MODEL), MessagesApi(), MODEL)
            agent.ask("note this")
            await agent.step(use("ToolSearch", query="select:notes__add"))
            for model in ("claude-haiku-4-5", MODEL):
                agent.model, agent.talk = model, box.anthropic(model)
                await agent.step(use("notes__add"))
            agent.talk = box.anthropic(MODEL, carry="inline")
            await agent.step(use("notes__add"))
            await agent.step(use("ToolSearch", query="select:notes__find"))
            agent.talk = box.anthropic(MODEL)
            await agent.step(use("notes__add"), use("notes__find"))
            await agent.step(say("Done."))


@pytest.mark.parametrize("url", ["http://127.0.0.1:4000", "https://[bad"])
async def test_through_a_gateway_nobody_knows_everything_is_loaded(url: str) -> None:
    async with talking(base_url=url) as agent:
        agent.api.is_gateway = True
        agent.ask("note this")
        agent.history.append({"role": "assistant", "content": [_SEARCHED]})
        agent.history.append({"role": "user", "content": [_REFERRED]})
        await agent.step(use("notes__add"), use("mail__send"))
        await agent.step(say("Done."))

    assert agent.talk.carry == "all"


_SEARCHED: Json = {"type": "tool_use", "id": "s", "name": "ToolSearch", "input": {}, "caller": {}}
_REFERRED: Json = {
    "type": "tool_result",
    "tool_use_id": "s",
    "content": [
        {"type": "tool_reference", "tool_name": "notes__add"},
        {"type": "tool_reference", "tool_name": "gone__tool"},
    ],
}


async def test_a_reference_from_another_day_to_a_tool_that_is_gone_is_not_sent() -> None:
    async with talking() as agent:
        agent.ask("note this")
        searched = {key: value for key, value in _SEARCHED.items() if key != "caller"}
        agent.history.append({"role": "assistant", "content": [searched]})
        agent.history.append({"role": "user", "content": [_REFERRED]})
        await agent.step(use("notes__add"))

    assert "gone__tool" not in agent.api.prompts[0]


async def test_what_a_compaction_refers_to_stays_defined_though_it_is_gone() -> None:
    summary: Json = {
        "type": "compaction",
        "content": "Much happened.",
        "tool_changes": [
            {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "gone__tool"}}
        ],
    }

    async with talking() as agent:
        agent.ask("note this")
        agent.history.append({"role": "assistant", "content": [summary]})
        agent.ask("go on")
        await agent.step(use("ToolSearch", query="add"))


async def test_what_one_agent_finds_is_not_found_by_another() -> None:
    async with aggregating({"notes": connect_to(Peer("add"))}) as upstream:
        await ready(upstream)
        async with AsyncToolbox(client=visiting(upstream, "modern"), environment={}) as box:
            agent = Agent(box.anthropic(MODEL), MessagesApi(), MODEL)
            agent.ask("note this")
            await agent.step(use("ToolSearch", query="select:notes__add"))
            async with box.fork() as fork:
                helper = Agent(fork.anthropic(MODEL), MessagesApi(), MODEL)
                helper.ask("help")
                with pytest.raises(AssertionError, match="notes__add is not among"):
                    await helper.step(use("notes__add"))
            await agent.step(use("notes__add"))


@pytest.mark.parametrize("carry", CARRIES)
async def test_tools_of_the_author_are_called_here_and_found_if_deferred(carry: Carry) -> None:
    schema: Json = {"type": "object", "properties": {}}
    mine: Json = {"name": "mine", "description": "Shows the moon", "input_schema": schema}

    async with talking(carry=carry) as agent:
        agent.tools = [{**mine, "defer_loading": True}]
        agent.ask("show me the moon")
        await agent.step(use("ToolSearch", query="moon"))
        called = await agent.step(use("mine", phase="full"), use("ToolSearch", query="add"))
        await agent.step(use("notes__add"), use("mine"))

    told = called[1]["content"][0]["content"]
    assert told == [{"type": "text", "text": "mine: {'phase': 'full'}"}]
    assert agent.api.keeps_its_beginning() is (carry in SAFE)


async def test_a_tool_of_the_author_needs_its_function() -> None:
    async with talking() as agent:
        agent.tools = [{"name": "other", "input_schema": {"type": "object"}}]
        agent.ask("go")
        with pytest.raises(LookupError, match="`other` is your own tool"):
            await agent.step(use("other"))


async def test_tools_are_deferred_once_they_take_their_share_of_the_window() -> None:
    counted: list[int] = []

    async def count(tools: list[Any]) -> int:
        counted.append(len(tools))
        return MessagesApi().count_tokens(tools)

    async with talking(defer="auto", window=200_000, count=count) as agent:
        agent.ask("note this")
        await agent.step(use("notes__add"))
        await agent.step(say("Done."))
    async with talking(defer="auto:1", window=2_000, count=count) as small:
        small.ask("note this")
        await small.step(use("ToolSearch", query="select:notes__add"))

    assert counted == [3, 3]


async def test_an_error_teaches_and_a_search_that_finds_nothing_says_so() -> None:
    async with talking() as agent:
        agent.ask("go")
        nothing = await agent.step(use("ToolSearch", query="select:zzz"))
        some = await agent.step(use("ToolSearch", query="select:notes__add,zzz"))
        await agent.step(say("Done."))

    assert "There is no tool" in nothing[-1]["content"][0]["content"][0]["text"]
    assert "There is no tool 'zzz'." in some[-1]["content"][1]["text"]


async def test_a_box_is_used_inside_of_its_block() -> None:
    box = AsyncToolbox("servers.yaml")

    with pytest.raises(RuntimeError, match="with"):
        box.anthropic(MODEL)
    with pytest.raises(ValueError, match="one of"):
        AsyncToolbox("servers.yaml", url="http://127.0.0.1:1/mcp")


async def test_the_pool_is_sent_again_only_once_it_has_changed() -> None:
    notes = Peer("add")
    async with aggregating({"notes": connect_to(notes)}) as upstream:
        await ready(upstream)
        async with visiting(upstream, "modern") as client:
            connection = Connection(client)
            first = await connection.pool()
            again = await connection.pool()
            short = await client.read_resource(first["edition"])
            await notes.change(find={})
            await until(
                lambda: "notes__find" in upstream.fleet.now.catalog.entries,
                lambda: upstream.fleet.changed,
            )
            changed = await connection.pool()

    assert again is first
    assert len(short.contents[0].model_dump()["text"]) < 100
    assert [each["name"] for each in changed["tools"]] == ["notes__add", "notes__find"]
