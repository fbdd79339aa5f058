"""Time that passes while somebody is asked, and calls that nobody comes back for."""

import anyio
import pytest
from mcp.shared.exceptions import MCPError

from aggregator.upstream.parking import PARKED_FOR
from tests.peers import ERAS, Era, aggregating, ready
from tests.raw import Dispatch, Json, RawServer, raw_client

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("each_way")]

ASK: Json = {"name": "asker__ask", "arguments": {}}
ABLE: Json = {"elicitation": {}}


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


def asking() -> RawServer:
    """Be a server of the handshake era that asks and then takes another three seconds."""

    async def ask(_context: Dispatch, _params: Json) -> Json:
        try:
            answer = await server.ask("elicitation/create", {"message": "Well?"})
            await anyio.sleep(3)
        finally:
            server.cancelled.set()
        return {"content": [], "structuredContent": answer}

    server = RawServer("handshake")
    server.tool("ask", ask)
    return server


async def test_the_time_a_person_takes_is_not_the_server_s() -> None:
    server = asking()

    async with aggregating({"asker": server.connect}, asker={"call_timeout": 5.0}) as upstream:
        await ready(upstream)
        async with raw_client(upstream, "modern", ABLE) as client:
            asked = await client.request("tools/call", ASK)
            await anyio.sleep(300)
            answers = {key: {"action": "decline"} for key in asked["inputRequests"]}
            again = {**ASK, "inputResponses": answers, "requestState": asked["requestState"]}
            result = await client.request("tools/call", again)

    assert result["structuredContent"] == {"action": "decline"}


async def test_a_parked_call_is_dropped_when_nobody_answers() -> None:
    server = asking()

    async with aggregating({"asker": server.connect}) as upstream:
        await ready(upstream)
        async with raw_client(upstream, "modern", ABLE) as client:
            asked = await client.request("tools/call", ASK)
            await anyio.sleep(PARKED_FOR - 1)
            assert not server.cancelled.is_set()
            await anyio.sleep(2)
            assert server.cancelled.is_set()
            again: Json = {**ASK, "inputResponses": {}, "requestState": asked["requestState"]}
            with pytest.raises(MCPError, match="Start again"):
                await client.request("tools/call", again)


@pytest.mark.parametrize("client_era", ERAS)
async def test_a_client_that_goes_away_takes_its_call_with_it(client_era: Era) -> None:
    server = asking()
    started = anyio.Event()

    async def block(_context: Dispatch, _params: Json) -> Json:
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            server.cancelled.set()
        return {}

    server.handlers["tools/call ask"] = block

    async with aggregating({"asker": server.connect}) as upstream:
        await ready(upstream)
        async with raw_client(upstream, client_era, ABLE) as client:
            async with anyio.create_task_group() as group:
                group.start_soon(client.request, "tools/call", ASK)
                await started.wait()
                group.cancel_scope.cancel()
            with anyio.fail_after(5):
                await server.cancelled.wait()

    assert "notifications/cancelled" in server.methods()


async def test_a_question_that_stays_unanswered_is_asked_again() -> None:
    server = asking()

    async with aggregating({"asker": server.connect}) as upstream:
        await ready(upstream)
        async with raw_client(upstream, "modern", ABLE) as client:
            first = await client.request("tools/call", ASK)
            again: Json = {
                **ASK,
                "inputResponses": {"other": {}},
                "requestState": first["requestState"],
            }
            second = await client.request("tools/call", again)

    assert second["inputRequests"] == first["inputRequests"]
    assert first["inputRequests"]["question-1"]["params"]["message"] == "[asker] Well?"
