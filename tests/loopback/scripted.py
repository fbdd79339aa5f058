"""A server of the handshake era over bare ASGI, that answers calls exactly as it is told to."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.types import Receive, Scope, Send

from tests.loopback.web import answer

Act = Callable[[Scope, Receive, Send, dict[str, Any]], Awaitable[None]]
"""Answers one request, given its message."""

SCHEMA: dict[str, Any] = {"type": "object", "properties": {}}


def result(message: dict[str, Any], text: str) -> dict[str, Any]:
    """Return the answer to a call."""
    content = [{"type": "text", "text": text}]
    return {"jsonrpc": "2.0", "id": message["id"], "result": {"content": content}}


class Scripted:
    """One tool, `go`, and a script for what happens when it is called."""

    def __init__(self, act: Act | None = None, *, listen: Act | None = None) -> None:
        self.act = act
        self._listen = listen
        self.requests: list[Scope] = []
        self.gets = 0
        self.calls = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.requests.append(scope)
        if scope["method"] == "GET":
            self.gets += 1
            await (self._listen or _not_allowed)(scope, receive, send, {})
        elif scope["method"] == "DELETE":
            await answer(send, 200)
        else:
            await self._post(scope, receive, send, json.loads(await body_of(receive)))

    async def _post(
        self, scope: Scope, receive: Receive, send: Send, message: dict[str, Any]
    ) -> None:
        match message["method"]:
            case "initialize":
                version = message["params"]["protocolVersion"]
                about: dict[str, Any] = {"protocolVersion": version}
                about["capabilities"] = {"tools": {}}
                about["serverInfo"] = {"name": "scripted", "version": "1"}
                await answer(send, 200, _answered(message, about), mcp_session_id="one")
            case "tools/list":
                tools = [{"name": "go", "inputSchema": SCHEMA}]
                await answer(send, 200, _answered(message, {"tools": tools}))
            case "tools/call":
                self.calls += 1
                act, self.act = self.act, None
                if act is None:
                    await answer(send, 200, result(message, "gone"))
                else:
                    await act(scope, receive, send, message)
            case "server/discover":
                await answer(send, 404)
            case _:
                await answer(send, 202)


def _answered(message: dict[str, Any], about: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": message["id"], "result": about}


async def _not_allowed(
    _scope: Scope, _receive: Receive, send: Send, _message: dict[str, Any]
) -> None:
    await answer(send, 405)


async def body_of(receive: Receive) -> bytes:
    body = b""
    while True:
        part = await receive()
        body += part.get("body", b"")
        if not part.get("more_body"):
            return body
