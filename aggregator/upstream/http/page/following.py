"""`GET /activity`: what happens, as it happens, to a browser that knows the token.

It is a stream of server-sent events that is read by `fetch`: `EventSource` cannot send a token.
"""

import json
from http import HTTPStatus
from pathlib import Path

import anyio
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from aggregator.basics.glyphs import on_one_line
from aggregator.upstream.http.page.activity import Activity, Reader
from aggregator.upstream.http.page.files import HEADERS
from aggregator.upstream.identity import IDENTITY, OPERATOR, Identity

ACTIVITY = "/activity"
MAX_READERS = 32
"""Browsers that may look at the same time."""
PULSE = 15.0
"""Seconds after which a browser is told that nothing has happened, and that we are still here."""

_NOT_KEPT = {**HEADERS, "cache-control": "no-store"}


class Following:
    """Streams what happens to whoever looks."""

    def __init__(self, activity: Activity, run: str, config: Path) -> None:
        self._activity = activity
        self._config = str(config.absolute())
        """The file that commands on the page are about."""
        self._run = run
        """Tells this run from the one before, whose numbers mean nothing here."""
        self._readers = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send what has happened, and go on until the browser leaves."""
        if self._readers >= MAX_READERS:
            told = f"{MAX_READERS} pages look already: close some of them\n"
            headers = {**_NOT_KEPT, "retry-after": "10"}
            refused = PlainTextResponse(told, HTTPStatus.SERVICE_UNAVAILABLE, headers)
            await refused(scope, receive, send)
            return
        self._readers += 1
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._stream, scope, send)
                while (await receive())["type"] != "http.disconnect":
                    continue
                group.cancel_scope.cancel()
        finally:
            self._readers -= 1

    async def _stream(self, scope: Scope, send: Send) -> None:
        headers = {**_NOT_KEPT, "content-type": "text/event-stream; charset=utf-8"}
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": HTTPStatus.OK, "headers": raw})
        ours = {"showsArguments": self._activity.shows_arguments, "config": self._config}
        await _write(send, f"event: hello\ndata: {json.dumps(ours)}\n\n")
        last, reader = self._place(scope), _reader(scope)
        while True:
            batch = self._activity.after(last, reader)
            if batch.missed:
                await _write(send, f"event: missed\ndata: {batch.missed}\n\n")
            for number, told in batch.events:
                # One at a time: whoever reads slowly has no more than this in memory.
                await _write(send, f"id: {self._run}-{number}\ndata: {told}\n\n")
            last = batch.last
            if not batch.events:
                await self._wait(send)

    async def _wait(self, send: Send) -> None:
        with anyio.move_on_after(PULSE) as waiting:
            await self._activity.news.wait()
        if waiting.cancelled_caught:
            await _write(send, ": nothing new\n\n")

    def _place(self, scope: Scope) -> int:
        """Return the number of the last event that a browser has of this run."""
        for name, value in scope["headers"]:
            if name == b"last-event-id":
                run, _, number = value.decode("latin-1").rpartition("-")
                if run == self._run and number.isdecimal() and len(number) < len(str(1 << 53)):
                    return int(number)
        return 0


def _reader(scope: Scope) -> Reader | None:
    """Return who is to hear of nobody else; nothing for whoever runs us."""
    identity: Identity = scope.get(IDENTITY, OPERATOR)
    return None if identity.is_operator else Reader(on_one_line(identity.name), identity.issuer)


async def _write(send: Send, text: str) -> None:
    await send({"type": "http.response.body", "body": text.encode(), "more_body": True})
