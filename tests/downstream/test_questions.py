"""What a server asks goes to the client of its call, if that can be asked."""

from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from aggregator.basics.json import JsonObject
from aggregator.downstream.questions import (
    EVERYTHING,
    QUESTIONS_AT_ONCE,
    QUESTIONS_WITHIN,
    Questions,
    declared,
    is_limited,
    joint,
    telling_of_roots,
)
from aggregator.names import ServerName
from tests.downstream.linking import Client, call_of

pytestmark = pytest.mark.anyio

ASK = "elicitation/create"


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


async def test_a_question_says_which_server_asks() -> None:
    call = call_of(Client(elicitation={}))
    answer = await Questions(ServerName("db")).answer(call, ASK, {"message": "Sure?"})

    assert answer == {"asked": ASK, "message": "[db] Sure?"}


async def test_a_client_that_cannot_be_asked_declines_and_is_not_made_to_sample() -> None:
    questions, call = Questions(ServerName("db")), call_of(Client())

    assert await questions.answer(call, ASK, {"message": "Sure?"}) == {"action": "decline"}
    with pytest.raises(MCPError, match="does not support"):
        await questions.answer(call, "sampling/createMessage", {})


async def test_a_ping_needs_no_call_and_a_question_does() -> None:
    questions = Questions(ServerName("db"))

    assert await questions.answer(None, "ping", None) == {}
    with pytest.raises(MCPError, match="cannot be attributed"):
        await questions.answer(None, ASK, {})
    with pytest.raises(MCPError, match="not served here"):
        await questions.answer(None, "tasks/get", {})


async def test_too_many_questions_are_refused_until_some_time_has_passed() -> None:
    questions, call = Questions(ServerName("db")), call_of(Client(elicitation={}))
    for _ in range(QUESTIONS_AT_ONCE):
        await questions.answer(call, ASK, {})
    with pytest.raises(MCPError, match="Too many"):
        await questions.answer(call, ASK, {})
    await anyio.sleep(QUESTIONS_WITHIN + 1)

    assert await questions.answer(call, ASK, {})


@pytest.mark.parametrize("by_refusing", [False, True])
async def test_who_was_sent_elsewhere_is_told_once_that_it_has_come_to_its_end(
    *, by_refusing: bool
) -> None:
    questions, client = Questions(ServerName("db")), Client(elicitation={"url": {}})
    asked: dict[str, Any] = {"mode": "url", "elicitationId": "e1", "url": "https://x"}
    if by_refusing:
        refusal = MCPError(types.URL_ELICITATION_REQUIRED, "First", {"elicitations": [asked]})
        questions.note_refusal(refusal, client)
    else:
        await questions.answer(call_of(client), ASK, asked)
    questions.complete({"elicitationId": ["no", "text"]})
    for _ in range(2):
        questions.complete({"elicitationId": "e1"})

    assert client.notified == [("notifications/elicitation/complete", {"elicitationId": "e1"})]


def test_what_servers_are_told_is_what_some_client_can_be_asked() -> None:
    tasks: JsonObject = {"io.modelcontextprotocol/tasks": {}}

    assert joint([]) == EVERYTHING
    assert joint([{"elicitation": {}}, {"elicitation": {"url": {}}}, {"x": {}}]) == {
        "elicitation": {"form": {}, "url": {}}
    }
    assert declared({"roots": {"listChanged": True}, "extensions": tasks, "x": 1}, "handshake") == {
        "roots": {}
    }


def test_a_server_is_told_less_where_one_thing_cannot_be_asked() -> None:
    forms: JsonObject = {**EVERYTHING, "elicitation": {}}
    less: list[JsonObject] = [{}, {"sampling": {}}, forms, joint([forms])]

    assert not is_limited(EVERYTHING)
    assert not is_limited(telling_of_roots({**EVERYTHING, "x": {}}))
    assert all(map(is_limited, less))


def test_extensions_but_for_tasks_are_passed_on() -> None:
    ui: JsonObject = {"io.modelcontextprotocol/ui": {"a": 1}}

    assert declared({"extensions": ui}, "handshake") == {"extensions": ui}
