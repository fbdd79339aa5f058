"""The response to one request: JSON where the answer is the first thing to say, else events.

What is written to by the handler of a request and by the keepalive, which keeps a connection open
on which nothing is said for long, is written by one of them at a time.
"""

from collections.abc import Sequence
from http import HTTPStatus

import anyio
from mcp_types import JSONRPCError
from starlette.types import Send

from aggregator.upstream.replica import ELSEWHERE

Headers = Sequence[tuple[bytes, bytes]]

JSON = (b"content-type", b"application/json")
EVENTS = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"connection", b"keep-alive"),
    # Some gateways collect what they are sent before they pass it on, unless they are told.
    (b"x-accel-buffering", b"no"),
)
AGAIN = (b"retry-after", b"1")
"""With what is answered 503 nothing has happened: it can be sent again, here or elsewhere."""
PING = b": ping\r\n\r\n"


def status_here(answer: object) -> int:
    """Return the status of an answer that may have to come from another replica."""
    is_elsewhere = isinstance(answer, JSONRPCError) and answer.error.code == ELSEWHERE
    return HTTPStatus.SERVICE_UNAVAILABLE if is_elsewhere else HTTPStatus.OK


def later(status: int) -> Headers:
    """Return what says with a status that the same can be sent again, if it can."""
    return (AGAIN,) if status == HTTPStatus.SERVICE_UNAVAILABLE else ()


class Reply:
    """What goes back on one connection; each with the same headers, whatever else it says."""

    def __init__(self, send: Send, headers: Headers = ()) -> None:
        self._send = send
        self._headers = headers
        self._turn: anyio.Lock | None = None
        self._streams = False
        self._is_over = False

    async def begin(self) -> None:
        """Say that events will follow."""
        async with self._alone():
            await self._begin()

    async def tell(self, message: bytes) -> bool:
        """Send a message as an event; say whether it was not too late for it."""
        async with self._alone():
            if not self._is_over:
                await self._begin()
                await self._event(message)
                return True
        return False

    async def beat(self) -> None:
        """Keep the connection, unless something is on its way to the client already."""
        turn = self._alone()
        if not turn.locked():
            async with turn:
                if not self._is_over:
                    await self._begin()
                    await self._body(PING)

    async def end(self, message: bytes | None, status: int = HTTPStatus.OK) -> None:
        """Send the last message there is, as JSON if it is the first as well."""
        if self._turn is None:
            await self._finish(message, status)
        else:
            async with self._turn:
                await self._finish(message, status)

    def _alone(self) -> anyio.Lock:
        if self._turn is None:
            self._turn = anyio.Lock()
        return self._turn

    async def _begin(self) -> None:
        if not self._streams:
            await self._start(HTTPStatus.OK, (*EVENTS, *self._headers))
            # Not before: who is cancelled while it waits for a client has sent nothing.
            self._streams = True

    async def _finish(self, message: bytes | None, status: int) -> None:
        self._is_over = True
        if self._streams:
            if message is not None:
                await self._event(message)
            await self._send({"type": "http.response.body", "body": b""})
            return
        body = message or b""
        length = (b"content-length", str(len(body)).encode())
        kind = () if message is None else (JSON,)
        await self._start(status, (*kind, length, *later(status), *self._headers))
        await self._send({"type": "http.response.body", "body": body})

    async def _start(self, status: int, headers: Headers) -> None:
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def _event(self, message: bytes) -> None:
        await self._body(b"event: message\r\ndata: " + message + b"\r\n\r\n")

    async def _body(self, body: bytes) -> None:
        await self._send({"type": "http.response.body", "body": body, "more_body": True})
