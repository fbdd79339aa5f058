"""What servers ask in the middle of a call, in each pair of eras."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from mcp.shared.exceptions import MCPError

from aggregator.downstream.questions import MAX_TOGETHER
from aggregator.upstream.seal import MAX_VALUE
from tests.peers import Era, aggregating, ready
from tests.raw import Dispatch, Json, RawClient, RawServer, raw_client

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("each_way")]

FORM: Json = {
    "message": "Your name?",
    "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
    "x-kept": None,
}
SAMPLE: Json = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}],
    "maxTokens": 10,
}
QUESTIONS: dict[str, Json] = {
    "elicitation/create": FORM,
    "sampling/createMessage": SAMPLE,
    "roots/list": {},
}
ANSWERS: dict[str, Json] = {
    "elicitation/create": {"action": "accept", "content": {"name": "Ada"}, "x-kept": [None]},
    "sampling/createMessage": {
        "role": "assistant",
        "content": {"type": "text", "text": "Hello"},
        "model": "m",
        "stopReason": "endTurn",
    },
    "roots/list": {"roots": [{"uri": "file:///home"}]},
}
ABLE: Json = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}


def asking(era: Era, *methods: str) -> RawServer:
    """Be a server whose tool `ask` asks these, and answers with what it was answered."""

    async def ask(_context: Dispatch, params: Json) -> Json:
        if era == "handshake":
            answers = {method: await server.ask(method, QUESTIONS[method]) for method in methods}
            return {"content": [], "structuredContent": answers}
        if "inputResponses" not in params:
            questions = {
                method: {"method": method, "params": QUESTIONS[method]} for method in methods
            }
            return {
                "resultType": "input_required",
                "inputRequests": questions,
                "requestState": "the server's own state",
            }
        assert params["requestState"] == "the server's own state"
        return {"content": [], "structuredContent": params["inputResponses"]}

    server = RawServer(era)
    server.tool("ask", ask)
    return server


@asynccontextmanager
async def raw_pair(
    server: RawServer, client_era: Era, capabilities: Json
) -> AsyncGenerator[RawClient, None]:
    """Put a client in front of a server."""
    async with aggregating({"asker": server.connect}) as upstream:
        await ready(upstream)
        async with raw_client(upstream, client_era, capabilities) as client:
            yield client


async def call(client: RawClient, params: Json | None = None) -> tuple[Json, list[Json]]:
    """Call `ask` and answer every question; return the result and the questions."""
    client.answers |= {method: lambda _params, method=method: ANSWERS[method] for method in ANSWERS}
    given = params or {"name": "asker__ask", "arguments": {}}
    asked: list[Json] = []
    result = await client.request("tools/call", given)
    while result.get("resultType") == "input_required":
        questions: Json = result["inputRequests"]
        asked.extend(questions.values())
        answers = {key: ANSWERS[each["method"]] for key, each in questions.items()}
        again = {**given, "inputResponses": answers, "requestState": result["requestState"]}
        result = await client.request("tools/call", again)
    asked.extend({"method": method, "params": given} for method, given in client.questions)
    return result, asked


@pytest.mark.parametrize("method", QUESTIONS)
async def test_a_question_reaches_the_client_and_its_answer_the_server(
    client_era: Era, server_era: Era, method: str
) -> None:
    server = asking(server_era, method)

    async with raw_pair(server, client_era, ABLE) as client:
        result, asked = await call(client)

    expected = dict(QUESTIONS[method])
    if method == "elicitation/create":
        expected["message"] = "[asker] Your name?"
    assert [(each["method"], each.get("params", {})) for each in asked] == [(method, expected)]
    assert list(result["structuredContent"].values()) == [ANSWERS[method]]


async def test_several_questions_in_one_call_are_all_answered(
    client_era: Era, server_era: Era
) -> None:
    server = asking(server_era, *QUESTIONS)

    async with raw_pair(server, client_era, ABLE) as client:
        result, asked = await call(client)

    assert {each["method"] for each in asked} == set(QUESTIONS)
    assert list(result["structuredContent"].values()) == list(ANSWERS.values())


async def test_the_questions_of_a_relayed_call_are_asked_too(
    client_era: Era, server_era: Era
) -> None:
    server = asking(server_era, "elicitation/create")

    async with raw_pair(server, client_era, ABLE) as client:
        relayed: Json = {"name": "CallTool", "arguments": {"name": "asker__ask", "arguments": {}}}
        result, asked = await call(client, relayed)

    assert len(asked) == 1
    assert result["structuredContent"] == {"elicitation/create": ANSWERS["elicitation/create"]}


async def test_a_client_that_cannot_be_asked_is_not(client_era: Era, server_era: Era) -> None:
    server = asking(server_era, "elicitation/create")

    async with raw_pair(server, client_era, {}) as client:
        result = await client.request("tools/call", {"name": "asker__ask", "arguments": {}})
        seen = [params for method, params in server.received if method == "tools/call"]

    assert client.questions == []
    if server_era == "modern":
        key = "io.modelcontextprotocol/clientCapabilities"
        assert [params["_meta"][key] for params in seen] == [{}] * len(seen)
    if (client_era, server_era) == ("modern", "modern"):
        # It was told what the client can do and asks all the same: that is between the two.
        assert result["resultType"] == "input_required"
    else:
        assert result["structuredContent"] == {"elicitation/create": {"action": "decline"}}


async def test_sampling_of_a_client_that_cannot_is_refused(server_era: Era) -> None:
    server = asking(server_era, "sampling/createMessage")

    async with raw_pair(server, "handshake", {}) as client:
        with pytest.raises(MCPError, match="does not support `sampling/createMessage`"):
            await client.request("tools/call", {"name": "asker__ask", "arguments": {}})


async def test_a_state_that_was_changed_is_refused(server_era: Era) -> None:
    server = asking(server_era, "elicitation/create")
    given: Json = {"name": "asker__ask", "arguments": {}}

    async with raw_pair(server, "modern", ABLE) as client:
        first = await client.request("tools/call", given)
        state: str = first["requestState"]
        for wrong in (state[:-4] + "AAAA", "", "the server's own state", "é", "=" * 8):
            with pytest.raises(MCPError, match="was not issued for this request"):
                await client.request("tools/call", {**given, "requestState": wrong})
        other = {"name": "ToolSearch", "arguments": {"query": "x"}, "requestState": state}
        assert "content" in await client.request("tools/call", other)


async def test_a_state_that_is_too_long_for_a_client_to_carry_is_told_of(
    client_era: Era, server_era: Era
) -> None:
    server, asked = RawServer(server_era), 0

    async def ask(_context: Dispatch, params: Json) -> Json:
        nonlocal asked
        asked += 1
        if server_era == "handshake" or "requestState" in params:
            return {"content": []}
        state = "x" * (MAX_VALUE + 1)
        return {"resultType": "input_required", "inputRequests": {}, "requestState": state}

    server.tool("ask", ask)
    async with raw_pair(server, client_era, ABLE) as client:
        calling = client.request("tools/call", {"name": "asker__ask", "arguments": {}})
        if (client_era, server_era) != ("modern", "modern"):
            # Nobody carries it there.
            assert (await calling)["content"] == []
            return
        with pytest.raises(MCPError, match=r"`requestState` of 1,048,577 characters.* 1 MiB"):
            await calling
    assert asked == 1


async def test_more_questions_than_anybody_could_answer_are_not_passed_on(
    client_era: Era,
) -> None:
    server = RawServer("modern")
    question: Json = {"method": "elicitation/create", "params": FORM}

    async def ask(_context: Dispatch, params: Json) -> Json:
        if "inputResponses" in params:
            return {"content": []}
        number = params["arguments"]["number"]
        questions = {f"q{each}": question for each in range(number)}
        return {"resultType": "input_required", "inputRequests": questions}

    server.tool("ask", ask)
    async with raw_pair(server, client_era, ABLE) as client:
        client.answers["elicitation/create"] = lambda _params: {"action": "decline"}
        many: Json = {"name": "asker__ask", "arguments": {"number": MAX_TOGETHER + 1}}
        with pytest.raises(MCPError, match=r"`asker` asked 101 questions at once.* at most 100"):
            await client.request("tools/call", many)
        few: Json = {"name": "asker__ask", "arguments": {"number": MAX_TOGETHER}}
        result = await client.request("tools/call", few)

    asked = result["inputRequests"] if client_era == "modern" else client.questions
    assert len(asked) == MAX_TOGETHER
