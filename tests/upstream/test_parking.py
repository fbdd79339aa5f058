"""Calls that are parked while somebody is asked: no result is lost, and nobody waits for ever."""

import anyio
import anyio.abc
import pytest
from mcp.shared.exceptions import MCPError

from aggregator.upstream.parking import PARKED_FOR
from tests.peers import Era, aggregating, ready
from tests.raw import Dispatch, Json, RawClient, RawServer, raw_client, without_envelope

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("each_way")]

CALL: Json = {"name": "peer__work", "arguments": {}}
ABLE: Json = {"elicitation": {}}
ACCEPT: Json = {"action": "accept"}


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


class Slow(RawServer):
    """A server of the handshake era that asks, and when answered works for three seconds."""

    def __init__(self) -> None:
        super().__init__("handshake")
        self.tool("work", self._work)

    async def _work(self, context: Dispatch, params: Json) -> Json:
        answer = await self.ask("elicitation/create", {"message": "Well?"})
        try:
            await anyio.sleep(2)
            token = params["_meta"]["progressToken"]
            await context.notify("notifications/progress", {"progressToken": token, "progress": 1})
            await anyio.sleep(1)
        except anyio.get_cancelled_exc_class():
            self.cancelled.set()
            raise
        return {"content": [], "structuredContent": answer}


def answering(asked: Json) -> Json:
    """Make the request that answers what a call asks."""
    answers = dict.fromkeys(asked["inputRequests"], ACCEPT)
    return {**CALL, "inputResponses": answers, "requestState": asked["requestState"]}


class Attempt:
    """One of several requests that say the same."""

    def __init__(self, client: RawClient, params: Json, token: str) -> None:
        self._client = client
        self._params = params
        self._token = token
        self.scope = anyio.CancelScope()
        self.result: Json | None = None

    async def run(self) -> None:
        with self.scope:
            self.result = await self._client.request(
                "tools/call", self._params, progressToken=self._token
            )


async def attempts(client: RawClient) -> tuple[Attempt, Attempt]:
    """Have a call ask, and make two requests of the answer."""
    again = answering(await client.request("tools/call", CALL))
    return Attempt(client, again, "first"), Attempt(client, again, "second")


async def send(group: anyio.abc.TaskGroup, first: Attempt, second: Attempt) -> None:
    """Send both, one second apart, while the server is at work."""
    group.start_soon(first.run)
    await anyio.sleep(1)
    group.start_soon(second.run)
    await anyio.sleep(0.5)


async def test_a_result_without_content_is_a_result(client_era: Era, server_era: Era) -> None:
    async def work(_context: Dispatch, _params: Json) -> Json:
        return {}

    server = RawServer(server_era)
    server.tool("work", work)

    async with aggregating({"peer": server.connect}) as upstream:
        await ready(upstream)
        async with raw_client(upstream, client_era, ABLE) as client:
            result = await client.request("tools/call", CALL)

    assert without_envelope(result) == {}


async def test_answers_that_are_sent_twice_get_the_result_twice() -> None:
    server = Slow()

    async with aggregating({"peer": server.connect}) as upstream:
        await ready(upstream)
        async with raw_client(upstream, "modern", ABLE) as client:
            first, second = await attempts(client)
            with anyio.fail_after(5):
                async with anyio.create_task_group() as group:
                    await send(group, first, second)

    assert first.result == second.result
    assert (first.result or {})["structuredContent"] == ACCEPT
    assert server.methods().count("tools/call") == 1


@pytest.mark.parametrize("leaving", ["first", "second"])
async def test_a_request_that_hangs_up_leaves_the_call_to_its_repetition(leaving: str) -> None:
    server = Slow()

    async with aggregating({"peer": server.connect}) as upstream:
        await ready(upstream)
        async with raw_client(upstream, "modern", ABLE) as client:
            first, second = await attempts(client)
            gone, staying = (first, second) if leaving == "first" else (second, first)
            with anyio.fail_after(5):
                async with anyio.create_task_group() as group:
                    await send(group, first, second)
                    gone.scope.cancel()
            told = [params["progressToken"] for method, params in client.heard if "prog" in method]

    assert gone.result is None
    assert (staying.result or {})["structuredContent"] == ACCEPT
    assert told == ["second" if leaving == "first" else "first"]


async def test_a_call_is_given_up_with_the_last_request_that_waits_for_it() -> None:
    server = Slow()

    async with aggregating({"peer": server.connect}) as upstream:
        await ready(upstream)
        async with raw_client(upstream, "modern", ABLE) as client:
            first, second = await attempts(client)
            async with anyio.create_task_group() as group:
                await send(group, first, second)
                first.scope.cancel()
                second.scope.cancel()
            with anyio.fail_after(0.1):
                await server.cancelled.wait()


class Impatient(RawServer):
    """A server of the handshake era that waits a minute for an answer, and then does without."""

    def __init__(self, *outcomes: Json | MCPError) -> None:
        super().__init__("handshake")
        self._outcomes = list(outcomes)
        self.tool("work", self._work)

    async def _work(self, _context: Dispatch, _params: Json) -> Json:
        with anyio.move_on_after(60):
            await self.ask("elicitation/create", {"message": "Well?"})
        outcome = self._outcomes.pop(0)
        if isinstance(outcome, MCPError):
            raise outcome
        return outcome


async def test_the_result_of_a_call_that_ended_while_it_was_parked_is_given_once() -> None:
    server = Impatient({"content": [], "structuredContent": {"acted": True}})

    async with aggregating({"peer": server.connect}) as upstream:
        await ready(upstream)
        async with raw_client(upstream, "modern", ABLE) as client:
            again = answering(await client.request("tools/call", CALL))
            await anyio.sleep(120)
            result = await client.request("tools/call", again)
            with pytest.raises(MCPError, match="given already"):
                await client.request("tools/call", again)

    assert result["structuredContent"] == {"acted": True}
    assert server.methods().count("tools/call") == 1


async def test_the_error_of_a_call_that_ended_while_it_was_parked_is_given() -> None:
    server = Impatient(MCPError(-32000, "Nobody answered"))

    async with aggregating({"peer": server.connect}) as upstream:
        await ready(upstream)
        async with raw_client(upstream, "modern", ABLE) as client:
            again = answering(await client.request("tools/call", CALL))
            await anyio.sleep(120)
            with pytest.raises(MCPError, match="Nobody answered"):
                await client.request("tools/call", again)


async def test_a_result_that_nobody_collects_is_kept_as_long_as_a_question() -> None:
    server = Impatient({"content": []}, {"content": []})

    async with aggregating({"peer": server.connect}) as upstream:
        await ready(upstream)
        async with raw_client(upstream, "modern", ABLE) as client:
            early, late = [answering(await client.request("tools/call", CALL)) for _ in range(2)]
            await anyio.sleep(PARKED_FOR - 1)
            assert (await client.request("tools/call", early))["content"] == []
            await anyio.sleep(2)
            with pytest.raises(MCPError, match="waited too long"):
                await client.request("tools/call", late)


async def test_a_question_that_its_server_took_back_is_not_asked_again() -> None:
    async def work(_context: Dispatch, _params: Json) -> Json:
        with anyio.move_on_after(60):
            await server.ask("elicitation/create", {"message": "First?"})
        answer = await server.ask("elicitation/create", {"message": "Second?"})
        return {"content": [], "structuredContent": answer}

    server = RawServer("handshake")
    server.tool("work", work)

    async with aggregating({"peer": server.connect}) as upstream:
        await ready(upstream)
        async with raw_client(upstream, "modern", ABLE) as client:
            first = await client.request("tools/call", CALL)
            await anyio.sleep(120)
            unanswered: Json = {**answering(first), "inputResponses": {}}
            second = await client.request("tools/call", unanswered)
            result = await client.request("tools/call", answering(second))

    asked = [
        [each["params"]["message"] for each in asking["inputRequests"].values()]
        for asking in (first, second)
    ]
    assert asked == [["[peer] First?"], ["[peer] Second?"]]
    assert result["structuredContent"] == ACCEPT
