"""One of many clients of several replicas, and account of everything that it is answered."""

import time
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from math import inf
from typing import Any
from uuid import uuid4

import anyio
import h11

from tests.loopback.bare import Wire
from tests.loopback.witness import VERSIONS

Json = dict[str, Any]

SERVERS = ("old", "new")
PAUSE = 0.05
"""Seconds before what is to be sent again is sent again."""
TRIES = 200
"""How often a request is sent that is answered each time that it is to be sent again."""
GONE = (ConnectionError, OSError, anyio.BrokenResourceError, anyio.EndOfStream, h11.ProtocolError)


class AnsweredError(Exception):
    """A status instead of an answer."""

    def __init__(self, status: int, *, is_to_be_sent_again: bool) -> None:
        super().__init__(f"answered {status}")
        self.status = status
        self.is_to_be_sent_again = is_to_be_sent_again


class Line(Wire):
    """Connections to the proxy, by which statuses are told apart."""

    def _begins_stream(self, response: h11.Response) -> bool:
        headers = {bytes(name): bytes(value) for name, value in response.headers}
        if response.status_code not in (200, 202):
            raise AnsweredError(response.status_code, is_to_be_sent_again=b"retry-after" in headers)
        return super()._begins_stream(response)


@dataclass
class Failure:
    """A request that came to nothing."""

    what: str
    began: float
    ended: float


@dataclass
class Account:
    """What all clients have seen together."""

    done: Counter[str] = field(default_factory=Counter[str])
    """Requests that were answered, by kind."""
    told: int = 0
    """How often somebody was told to send a request again."""
    failures: list[Failure] = field(default_factory=list[Failure])
    crossed: list[str] = field(default_factory=list[str])
    announced: int = 0
    streams: int = 0
    """How often a stream was opened."""
    mark: float = inf
    """How many requests are to be answered before something happens."""
    marked: anyio.Event = field(default_factory=anyio.Event)

    def note(self, kind: str) -> None:
        """Take note of a request that was answered."""
        self.done[kind] += 1
        if self.done.total() >= self.mark:
            self.marked.set()

    def beyond(self, moment: float) -> list[Failure]:
        """Return the failures of what was not under way at a moment."""
        return [each for each in self.failures if not each.began <= moment <= each.ended]


class Guest:
    """One client, of the one era or of the other."""

    def __init__(self, number: int, url: str, account: Account) -> None:
        self.number = number
        self.era = ("handshake", "modern")[number % 2]
        self._line = Line(url)
        self._account = account
        self._ids = count(1)
        self._session: dict[str, str] = {}

    @asynccontextmanager
    async def present(self) -> AsyncGenerator[None, None]:
        """Introduce ourselves, and listen for the length of the block."""
        if self.era == "handshake":
            about: Json = {"name": f"guest {self.number}", "version": "1"}
            params: Json = {"protocolVersion": VERSIONS["handshake"], "capabilities": {}}
            await self._answered("initialize", {**params, "clientInfo": about})
            self._session = {"mcp-session-id": self._line.session}
            ready: Json = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            async with self._line.send("POST", ready, self._headers("")) as messages:
                async for _ in messages:
                    pass
        async with anyio.create_task_group() as group:
            group.start_soon(self._listen)
            yield
            group.cancel_scope.cancel()
        await self._line.close()

    async def work(self, steps: int, until: anyio.Event) -> None:
        """Call, search and list, one after the other: so often, and until something is over."""
        for step in count():
            if step >= steps and until.is_set():
                return
            match step % 10:
                case 4:
                    await self._counted("searches", self._search)
                case 9:
                    await self._counted("lists", self._list)
                case _:
                    await self._counted("calls", self._call)

    async def _counted(self, kind: str, request: Any) -> None:
        began = time.monotonic()
        try:
            await request()
        except (AnsweredError, *GONE) as error:
            text = f"{kind}: {type(error).__name__} {error}"
            self._account.failures.append(Failure(text, began, time.monotonic()))
        else:
            self._account.note(kind)

    async def _call(self) -> None:
        nonce = f"{self.number}-{uuid4().hex}"
        server = SERVERS[(self.number + next(self._ids)) % len(SERVERS)]
        answer = await self.called(f"{server}__echo", nonce)
        self._expect(answer == nonce, (nonce, answer))

    async def called(self, name: str, nonce: str) -> str:
        """Call a tool, as often as we are told to; return the text that it answers with."""
        params: Json = {"name": name, "arguments": {"nonce": nonce}}
        return _text(await self._answered("tools/call", params))

    async def _search(self) -> None:
        params: Json = {"name": "ToolSearch", "arguments": {"query": "select:old__tally"}}
        result = await self._answered("tools/call", params)
        self._expect("old__tally" in _text(result), result)

    async def _list(self) -> None:
        result = await self._answered("tools/list", {})
        names = [tool["name"] for tool in result.get("tools", ())]
        self._expect("ToolSearch" in names and "old__step" in names, names)

    def _expect(self, right: bool, example: object) -> None:
        if not right:
            self._account.crossed.append(str(example)[:300])

    async def _answered(self, method: str, params: Json) -> Json:
        """Send a request until it is answered, as often as we are told to."""
        for _ in range(TRIES):
            try:
                return await self.once(method, {**params})
            except AnsweredError as error:
                if not error.is_to_be_sent_again:
                    raise
                self._account.told += 1
                await anyio.sleep(PAUSE)
        raise AnsweredError(503, is_to_be_sent_again=False)

    async def once(self, method: str, params: Json) -> Json:
        """Send a request once; return the result."""
        message = self._message(method, params)
        headers = self._headers(method, params.get("name", ""))
        answer: Json = {}
        async with self._line.send("POST", message, headers) as messages:
            async for each in messages:
                if "method" not in each:
                    answer = each
        self._expect(answer.get("id") == message["id"], (message, answer))
        if "result" not in answer:
            raise ConnectionError(str(answer)[:300])
        return answer["result"]

    async def _listen(self) -> None:
        """Hear what is announced, on another stream where one has ended."""
        params: Json = {"notifications": {"toolsListChanged": True}}
        while True:
            listen = None if self.era == "handshake" else self._message(LISTEN, {**params})
            method = "GET" if listen is None else "POST"
            try:
                async with self._line.send(method, listen, self._headers(LISTEN)) as messages:
                    self._account.streams += 1
                    async for heard in messages:
                        self._account.announced += "list_changed" in heard.get("method", "")
            except (AnsweredError, *GONE):
                pass
            await anyio.sleep(PAUSE)

    def _message(self, method: str, params: Json) -> Json:
        if self.era == "modern":
            params["_meta"] = {
                "io.modelcontextprotocol/protocolVersion": VERSIONS["modern"],
                "io.modelcontextprotocol/clientInfo": {"name": "guest", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            }
        number = f"{self.number}-{next(self._ids)}"
        return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}

    def _headers(self, method: str, name: str = "") -> dict[str, str]:
        headers = {"mcp-protocol-version": VERSIONS[self.era], **self._session}
        if self.era == "modern":
            headers |= {"mcp-method": method} | ({"mcp-name": name} if name else {})
        return headers


LISTEN = "subscriptions/listen"


def _text(result: Json) -> str:
    return result.get("content", [{}])[0].get("text", "")
