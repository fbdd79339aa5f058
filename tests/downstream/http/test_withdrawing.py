"""Requests that are taken back: what a server makes of them is not held against it."""

import anyio
import pytest
from mcp_types import JSONRPCNotification, JSONRPCRequest

from aggregator.downstream.http.address import Address
from aggregator.downstream.http.endpoint import open_endpoint
from aggregator.downstream.http.streamable import open_streamable
from aggregator.downstream.http.traffic import FAILURES_TOLERATED, Traffic
from aggregator.downstream.transport import Received
from tests.downstream.http.test_wire import Visit, bare

pytestmark = pytest.mark.anyio

HANDSHAKE = {"mcp-protocol-version": "2025-11-25"}
STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


async def test_streams_that_end_without_an_answer_that_nobody_wants_do_not_cost_the_link() -> None:
    asked, ended = anyio.Event(), anyio.Event()
    taken: list[Received] = []

    async def serve(visit: Visit) -> None:
        nonlocal asked, ended
        while True:
            if b"notifications/cancelled" in await visit.read():
                ended.set()
                # Its client hears of the end before it hangs up by itself.
                await anyio.wait_all_tasks_blocked()
                await visit.say(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")
            else:
                await visit.say(STREAM)
                asked.set()
                await ended.wait()
                await visit.say(b"0\r\n\r\n")

    async with (
        bare(serve) as server,
        open_endpoint(Address(server.url)) as endpoint,
        open_streamable(endpoint) as transport,
    ):
        assert isinstance(transport, Traffic)
        for number in range(FAILURES_TOLERATED):
            asked, ended = anyio.Event(), anyio.Event()
            request = JSONRPCRequest(jsonrpc="2.0", id=number, method="tools/call", params={})
            assert transport.put(request, HANDSHAKE, taken.append)
            await asked.wait()
            params = {"requestId": number}
            await transport.send(
                JSONRPCNotification(jsonrpc="2.0", method="notifications/cancelled", params=params)
            )
            await ended.wait()
            await anyio.wait_all_tasks_blocked()

        assert not transport.is_lost
    assert taken == []
