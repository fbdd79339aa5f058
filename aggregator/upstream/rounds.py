"""A server that answers with questions, asked of a client that answers requests."""

from collections.abc import Awaitable, Mapping
from typing import Any, Protocol

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError

from aggregator.basics.json import JsonObject, as_object
from aggregator.downstream.inflight import Caller
from aggregator.downstream.questions import (
    can_be_asked,
    check_number,
    instead,
    is_input_required,
    labelled,
)
from aggregator.names import ServerName

MAX_ROUNDS = 10
"""Times a server may answer with questions before it is taken to go round in circles."""
STATE_ONLY_PAUSE = 0.25
"""Seconds to wait before asking again a server that only wants to be asked again."""


class Recipient(Protocol):
    """A server that requests are sent on to."""

    def request(
        self, method: str, params: Mapping[str, Any], caller: Caller
    ) -> Awaitable[dict[str, Any]]:
        """Send a client's request and return the result as it came."""
        ...


class Recipients(Protocol):
    """The servers that there are; one may be replaced while its client thinks of an answer."""

    def server(self, name: ServerName, /) -> Recipient:
        """Return a server that is configured."""
        ...


async def fulfil(
    servers: Recipients,
    name: ServerName,
    method: str,
    params: Mapping[str, Any],
    caller: Caller,
) -> dict[str, Any]:
    """Send a request, and again with the client's answers for as long as there are questions.

    Raises:
        CallError: The server is not there, or not any more.
        MCPError: The server goes on asking, or the client cannot or will not answer.
    """
    result = await servers.server(name).request(method, params, caller)
    for _round in range(MAX_ROUNDS):
        if not is_input_required(result):
            return result
        again = {key: value for key, value in params.items() if key not in ROUND_PARAMS}
        questions = as_object(result.get("inputRequests"))
        check_number(name, questions)
        if questions:
            again["inputResponses"] = await _answers(questions, caller, name)
        else:
            await anyio.sleep(STATE_ONLY_PAUSE)
        if "requestState" in result:
            again["requestState"] = result["requestState"]
        result = await servers.server(name).request(method, again, caller)
    raise MCPError(types.INTERNAL_ERROR, f"The server `{name}` does not stop asking")


ROUND_PARAMS = frozenset({"inputResponses", "requestState"})
"""What a repeated request carries of the round before."""


async def _answers(questions: JsonObject, caller: Caller, server: ServerName) -> dict[str, Any]:
    """Ask one question after the other, as a person would want it."""
    return {key: await _answer(as_object(each), caller, server) for key, each in questions.items()}


async def _answer(question: JsonObject, caller: Caller, server: ServerName) -> dict[str, Any]:
    method, params = str(question.get("method")), as_object(question.get("params"))
    if not can_be_asked(caller.capabilities, method, params):
        return instead(method)
    return await caller.ask(method, labelled(server, method, params))


def with_labels(result: dict[str, Any], server: ServerName) -> dict[str, Any]:
    """Say in every question of a result which server asks.

    Raises:
        MCPError: There are too many.
    """
    if "inputRequests" not in result:
        return result
    questions = as_object(result["inputRequests"])
    check_number(server, questions)
    asked = {key: _labelled(as_object(each), server) for key, each in questions.items()}
    return {**result, "inputRequests": asked}


def _labelled(question: JsonObject, server: ServerName) -> JsonObject:
    method, params = str(question.get("method")), as_object(question.get("params"))
    told = labelled(server, method, params)
    return {**question, "params": told} if told or "params" in question else question
