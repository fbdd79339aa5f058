"""The deprecated SSE transport: one stream for all answers, and a mailbox for what is asked."""

import json
from typing import Any

import anyio
import pytest
from starlette.types import Receive, Scope, Send

from aggregator.catalog import Failed, Pending, Ready
from aggregator.config import ServerConfig
from aggregator.downstream.http.reach import reach
from aggregator.downstream.transport import Connect
from aggregator.fleet.fleet import Fleet
from aggregator.names import ServerName
from tests.loopback.web import answer, web
from tests.patience import PATIENCE
from tests.peers import aggregating, ready, text_of, until, visiting

pytestmark = pytest.mark.anyio

WEB = ServerName("web")
TOOLS: dict[str, Any] = {
    "tools": [{"name": "go", "inputSchema": {"type": "object", "properties": {}}}]
}


class Mailbox:
    """An old server: it says where its mailbox is, and answers on the stream."""

    def __init__(self, place: str = "/messages?session=1") -> None:
        self._place = place
        self._send: Send | None = None
        self._closing = anyio.Event()
        self.refusal = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "GET":
            await self._stream(send)
        elif self.refusal:
            await answer(send, self.refusal)
            self.refusal = 0
        else:
            message = json.loads((await receive())["body"])
            await answer(send, 202)
            await self._reply(message)

    def hang_up(self) -> None:
        self._closing.set()

    async def _stream(self, send: Send) -> None:
        self._send, self._closing = send, anyio.Event()
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await self._say("endpoint", self._place)
        await self._closing.wait()
        await send({"type": "http.response.body", "body": b""})

    async def _say(self, event: str, data: str) -> None:
        assert self._send is not None
        body = f"event: {event}\ndata: {data}\n\n".encode()
        await self._send({"type": "http.response.body", "body": body, "more_body": True})

    async def _reply(self, message: dict[str, Any]) -> None:
        answers: dict[str, Any] = {
            "initialize": {
                "protocolVersion": "2024-11-05",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "old", "version": "1"},
            },
            "tools/list": TOOLS,
            "tools/call": {"content": [{"type": "text", "text": "gone"}]},
        }
        if "id" not in message:
            return
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        if message["method"] in answers:
            reply["result"] = answers[message["method"]]
        else:
            reply["error"] = {"code": -32601, "message": "Method not found"}
        await self._say("message", json.dumps(reply))


def at(url: str) -> Connect:
    return reach(ServerConfig(WEB, "web", type="sse", url=url))


async def _reason(fleet: Fleet) -> str:
    while True:
        changed, state = fleet.changed, fleet.now.catalog.servers[WEB]
        if isinstance(state, Pending | Failed) and state.reason:
            return state.reason
        with anyio.fail_after(PATIENCE):
            await changed.wait()


async def test_an_old_server_is_listed_and_called() -> None:
    async with web(Mailbox()) as origin, aggregating({"web": at(f"{origin}/sse")}) as upstream:
        await ready(upstream)
        async with visiting(upstream, "modern") as client:
            result = await client.call_tool("web__go", {})
        state: Any = upstream.fleet.now.catalog.servers[WEB]

    assert text_of(result) == "gone"
    assert state.protocol_version == "2024-11-05"


async def test_a_message_that_is_refused_costs_its_call() -> None:
    mailbox = Mailbox()
    async with web(mailbox) as origin, aggregating({"web": at(f"{origin}/sse")}) as upstream:
        await ready(upstream)
        async with visiting(upstream, "handshake") as client:
            mailbox.refusal = 503
            failed = text_of(await client.call_tool("web__go", {}))
            again = text_of(await client.call_tool("web__go", {}))

    assert "was not run" in failed
    assert again == "gone"


async def test_a_stream_that_ends_is_opened_again() -> None:
    mailbox = Mailbox()
    async with web(mailbox) as origin, aggregating({"web": at(f"{origin}/sse")}) as upstream:
        await ready(upstream)
        fleet = upstream.fleet
        mailbox.hang_up()
        reason = await _reason(fleet)
        await until(
            lambda: isinstance(fleet.now.catalog.servers[WEB], Ready), lambda: fleet.changed
        )

    assert reason == "it closed its stream"


async def test_a_mailbox_on_another_origin_is_not_used() -> None:
    async with web(Mailbox("http://192.0.2.1/messages")) as origin:
        async with aggregating({"web": at(f"{origin}/sse")}) as upstream:
            reason = await _reason(upstream.fleet)

    assert reason == "it names an address on another origin, which is not followed"


async def test_a_server_that_has_no_such_stream_says_so() -> None:
    async def refuse(_scope: Scope, _receive: Receive, send: Send) -> None:
        await answer(send, 401)

    async with web(refuse) as origin, aggregating({"web": at(f"{origin}/sse")}) as upstream:
        reason = await _reason(upstream.fleet)
        failed = upstream.fleet.now.catalog.failed

    assert reason.startswith("auth required")
    assert list(failed) == [WEB]
