"""Requests and answers find each other, whatever comes in between."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_REQUEST,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)

from aggregator.downstream.exchange import Exchange
from aggregator.downstream.transport import (
    ConnectionClosedError,
    Related,
    Undelivered,
    UndeliveredError,
)
from tests.transports import Script

pytestmark = pytest.mark.anyio

Params = Mapping[str, Any] | None


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


class Attendant:
    """Answers when it is let, and remembers what it heard and to which request that belonged."""

    def __init__(self) -> None:
        self.go_on = anyio.Event()
        self.heard: list[tuple[RequestId | None, str]] = []

    async def answer(
        self, _related: RequestId | None, method: str, _params: Params
    ) -> dict[str, Any]:
        if method == "fail":
            raise KeyError(method)
        await self.go_on.wait()
        return {"did": method}

    def hear(self, related: RequestId | None, method: str, _params: Params) -> None:
        if method == "fail":
            raise TypeError(method)
        self.heard.append((related, method))


@asynccontextmanager
async def exchanging(
    script: Script, attendant: Attendant | None = None
) -> AsyncGenerator[Exchange, None]:
    exchange = Exchange(script)
    with script:
        async with anyio.create_task_group() as group:
            await group.start(exchange.run, attendant or Attendant())
            yield exchange
            group.cancel_scope.cancel()


async def request(exchange: Exchange) -> dict[str, Any]:
    return await exchange.request(exchange.next_number(), "tools/list", None)


def asks(number: RequestId, method: str) -> JSONRPCRequest:
    return JSONRPCRequest(jsonrpc="2.0", id=number, method=method)


def answers(number: RequestId) -> JSONRPCResponse:
    return JSONRPCResponse(jsonrpc="2.0", id=number, result={"of": number})


async def test_answers_find_their_requests_in_any_order() -> None:
    script, found, numbers = Script(), list[dict[str, Any]](), list[RequestId]()

    async def ask(exchange: Exchange) -> None:
        found.append(await request(exchange))

    async with exchanging(script) as exchange, anyio.create_task_group() as group:
        group.start_soon(ask, exchange)
        group.start_soon(ask, exchange)
        numbers += [(await script.asked()).id for _ in range(2)]
        script.come(answers("stranger"), answers(numbers[1]), answers(numbers[0]))

    assert found == [{"of": number} for number in reversed(numbers)]


async def test_a_number_that_comes_back_as_text_is_the_same_number() -> None:
    script = Script()
    async with exchanging(script) as exchange:
        script.come(answers("1"))
        assert await request(exchange) == {"of": "1"}


async def test_a_number_of_thousands_of_digits_costs_only_its_message() -> None:
    script = Script()
    async with exchanging(script) as exchange:
        script.come(answers("9" * 5000), answers(1))
        assert await request(exchange) == {"of": 1}


async def test_a_notification_that_cannot_be_understood_costs_only_itself(
    caplog: pytest.LogCaptureFixture,
) -> None:
    script, attendant = Script(), Attendant()
    odd = JSONRPCNotification(jsonrpc="2.0", method="fail")
    async with exchanging(script, attendant) as exchange:
        script.come(odd, JSONRPCNotification(jsonrpc="2.0", method="next"), answers(1))
        assert await request(exchange) == {"of": 1}

    assert attendant.heard == [(None, "next")]
    assert "a notification could not be understood" in caplog.text


async def test_the_first_of_two_answers_counts() -> None:
    """Both may have come before whoever waits has had a turn; who has one first is chance."""
    found = list[dict[str, Any]]()

    async def ask(exchange: Exchange) -> None:
        found.append(await request(exchange))

    for _ in range(20):
        script = Script()
        async with exchanging(script) as exchange, anyio.create_task_group() as group:
            group.start_soon(ask, exchange)
            number = (await script.asked()).id
            twin = JSONRPCResponse(jsonrpc="2.0", id=number, result={"of": "another"})
            script.come(answers(number), twin)

    assert found == [{"of": 1}] * 20


async def test_a_request_that_was_not_delivered_says_why() -> None:
    script = Script()
    undelivered = Undelivered("it is unavailable for now (503)", may_have_run=False, request=1)

    async with exchanging(script) as exchange:
        script.come(undelivered)
        with pytest.raises(UndeliveredError, match="unavailable") as caught:
            await request(exchange)

    assert caught.value.undelivered is undelivered


async def test_who_waits_is_told_of_the_end_and_who_comes_later_too() -> None:
    script = Script()
    async with exchanging(script) as exchange:
        script.end()
        with pytest.raises(ConnectionClosedError):
            await request(exchange)
        with pytest.raises(ConnectionClosedError):
            await request(exchange)
        await exchange.notify("notifications/cancelled")

        assert exchange.closed.is_set()
        assert repr(exchange) == "<Exchange closed>"


async def test_an_error_of_the_server_with_the_code_of_a_closed_connection_is_its_own() -> None:
    script = Script()
    async with exchanging(script) as exchange, anyio.create_task_group() as group:
        group.start_soon(script.refuse, -32000, "Connection closed")
        with pytest.raises(MCPError, match="Connection closed"):
            await request(exchange)

        assert not exchange.closed.is_set()


async def test_a_request_that_nobody_waits_for_any_more_is_taken_back() -> None:
    script = Script()
    async with exchanging(script) as exchange:
        with anyio.move_on_after(1):
            await request(exchange)
        asked, taken_back = await script.asked(), await script.sent()

    assert isinstance(taken_back, JSONRPCNotification)
    assert taken_back.method == "notifications/cancelled"
    assert (taken_back.params or {})["requestId"] == asked.id


async def test_what_the_server_says_is_heard_with_the_request_it_came_with() -> None:
    script, attendant = Script(), Attendant()
    told = JSONRPCNotification(jsonrpc="2.0", method="notifications/message")

    async with exchanging(script, attendant) as exchange:
        script.come(told, Related(told, 7), answers(1))
        await request(exchange)

    assert attendant.heard == [(None, told.method), (7, told.method)]


async def test_a_question_that_is_taken_back_is_not_answered() -> None:
    script, attendant = Script(), Attendant()
    taken_back = JSONRPCNotification(
        jsonrpc="2.0", method="notifications/cancelled", params={"requestId": "a"}
    )

    async with exchanging(script, attendant):
        script.come(asks("a", "one"))
        await anyio.sleep(1)
        script.come(taken_back, asks("b", "two"))
        await anyio.sleep(1)
        attendant.go_on.set()

        assert await script.sent() == JSONRPCResponse(jsonrpc="2.0", id="b", result={"did": "two"})


async def test_a_question_that_cannot_be_answered_costs_nothing_else() -> None:
    script, attendant = Script(), Attendant()
    async with exchanging(script, attendant) as exchange:
        script.come(asks("a", "fail"))
        failed = await script.sent()
        script.come(answers(1))
        await request(exchange)

    assert isinstance(failed, JSONRPCError)
    assert failed.error.message == "The request failed"


async def test_a_second_question_under_a_number_that_is_taken_is_refused() -> None:
    """The server could not tell which of the two an answer is for, nor could we cancel one."""
    script, attendant = Script(), Attendant()
    async with exchanging(script, attendant) as exchange:
        script.come(asks("same", "one"))
        await anyio.sleep(1)
        script.come(asks("same", "two"))
        refused = await script.sent()
        attendant.go_on.set()
        answered = await script.sent()
        script.come(asks("same", "three"))
        again = await script.sent()

        assert not exchange.closed.is_set()

    assert isinstance(refused, JSONRPCError)
    assert (refused.id, refused.error.code) == ("same", INVALID_REQUEST)
    assert answered == JSONRPCResponse(jsonrpc="2.0", id="same", result={"did": "one"})
    assert again == JSONRPCResponse(jsonrpc="2.0", id="same", result={"did": "three"})
