"""One server, with whatever it does while it is called."""

import pytest
from mcp_types import JSONRPCRequest

from tests.peers import aggregating, ready
from tests.raw import Dispatch, Json, RawServer, raw_client

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


async def test_a_server_that_asks_twice_under_one_number_stays_connected() -> None:
    async def ask_twice(_context: Dispatch, _params: Json) -> Json:
        for text in ("One?", "Two?"):
            params: Json = {
                "message": text,
                "requestedSchema": {"type": "object", "properties": {}},
            }
            await server.write(
                JSONRPCRequest(jsonrpc="2.0", id=7, method="elicitation/create", params=params)
            )
        return {"content": [{"type": "text", "text": "done"}]}

    server = RawServer("handshake")
    server.tool("work", ask_twice)
    async with aggregating({"peer": server.connect}) as upstream:
        await ready(upstream)
        async with raw_client(upstream, "handshake", {"elicitation": {}}) as client:
            client.answers["elicitation/create"] = lambda _params: {"action": "decline"}
            call: Json = {"name": "peer__work", "arguments": {}}
            results = [await client.request("tools/call", call) for _ in range(2)]

    assert [each["content"][0]["text"] for each in results] == ["done", "done"]
    assert server.methods().count("server/discover") == 1
