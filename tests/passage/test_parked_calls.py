"""Calls that are parked while somebody is asked: no result is lost, and nobody waits for ever."""

import pytest

from tests.passage.raw import Dispatch, Json, RawServer, raw_client, without_envelope
from tests.peers import Era, aggregating, ready

pytestmark = pytest.mark.anyio

CALL: Json = {"name": "peer__work", "arguments": {}}
ABLE: Json = {"elicitation": {}}


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


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
