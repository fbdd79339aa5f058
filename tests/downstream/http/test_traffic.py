"""The half of a transport that hears: when it is over, and what may be sent until then."""

import anyio
import pytest
from mcp_types import JSONRPCRequest

from aggregator.config import ServerConfig
from aggregator.downstream.http.reach import reach
from aggregator.downstream.http.traffic import Traffic
from aggregator.downstream.transport import NO_HEADERS, Received, Undelivered
from aggregator.names import ServerName
from tests.patience import patience

pytestmark = pytest.mark.anyio

REQUEST = JSONRPCRequest(jsonrpc="2.0", id=1, method="tools/call", params={"name": "x"})


async def test_nothing_is_sent_on_a_link_that_is_over() -> None:
    nobody = ServerConfig(ServerName("web"), "web", type="http", url="http://127.0.0.1:1/mcp")
    came: list[Received] = []
    async with reach(nobody)() as transport:
        assert transport.put(REQUEST, NO_HEADERS, came.append)
        with anyio.fail_after(patience()), pytest.raises(anyio.EndOfStream):
            await transport.receive()
        with pytest.raises(anyio.ClosedResourceError):
            transport.put(REQUEST, NO_HEADERS, came.append)

    assert len(came) == 1


async def test_a_link_that_is_lost_is_not_over_before_what_is_about_to_be_sent() -> None:
    with Traffic() as traffic:
        scope = traffic.begin(REQUEST)
        traffic.lose(Undelivered("it cannot be reached"))
        traffic.check_open()
        with traffic.under_way(REQUEST, scope):
            pass
        with pytest.raises(anyio.ClosedResourceError):
            traffic.check_open()
