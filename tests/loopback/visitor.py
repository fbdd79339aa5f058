"""One of a crowd of clients: bare HTTP, many calls under way, and account of all that it sees."""

import json
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from itertools import count
from typing import Any
from uuid import uuid4

import anyio

from aggregator.downstream.link import LEVELS
from tests.loopback.bare import Wire
from tests.loopback.witness import LOG_LEVEL, LOGGED, STEPS, VERSIONS, Json

CALLS_IN_A_ROUND = 10


class Account:
    """What all clients have seen together."""

    def __init__(self, servers: Iterable[str], pipes: Iterable[str]) -> None:
        self.servers = tuple(servers)
        self.pipes = frozenset(pipes)
        self.calls = 0
        self.arrived = Counter[str]()
        self.wrong = Counter[str]()
        self.missing = Counter[str]()
        self.examples: list[str] = []
        self.cancelled = defaultdict[str, list[str]](list)
        """What clients have cancelled, by server."""

    def expect(self, kind: str, *, right: bool, example: object) -> None:
        if right:
            self.arrived[kind] += 1
        else:
            self.wrong[kind] += 1
            self.examples.append(f"{kind}: {str(example)[:300]}")


class Visitor:
    """One client."""

    def __init__(self, number: int, url: str, account: Account) -> None:
        self._number = number
        self._account = account
        self._era = ("handshake", "modern")[number % 2]
        self._level = LOGGED[number // 2 % 2]
        self._wire = Wire(url)
        self._ids = count(1)
        self._session: dict[str, str] = {}

    @asynccontextmanager
    async def present(self) -> AsyncGenerator[None, None]:
        """Introduce ourselves, and listen to what is announced for the length of the block."""
        async with anyio.create_task_group() as group:
            if self._era == "handshake":
                await self._introduce()
                group.start_soon(self._hear, "GET", None, self._headers(""))
            else:
                params: Json = {"notifications": {"toolsListChanged": True}}
                listen = self._message("subscriptions/listen", params)
                group.start_soon(self._hear, "POST", listen, self._headers("subscriptions/listen"))
            for server in self._account.servers:
                await self._plain(server, "echo")
            yield
            group.cancel_scope.cancel()
        await self._wire.close()

    async def make_calls(self, calls: int, at_once: int) -> None:
        """Make so many calls, so many at a time."""
        rounds = iter(range(calls // CALLS_IN_A_ROUND))

        async def work() -> None:
            for number in rounds:
                await self._round(number + self._number)

        async with anyio.create_task_group() as group:
            for _ in range(at_once):
                group.start_soon(work)

    async def tally(self, server: str, expected: int) -> Json:
        """Ask a server for its own account, once it has seen so many calls cancelled."""
        return json.loads(_text(await self._result(server, "tally", str(expected))))

    async def _round(self, offset: int) -> None:
        """Make ten calls of every kind, each of another server than the one before."""
        kinds: tuple[Callable[[str], Coroutine[Any, Any, None]], ...] = (
            self._echo,
            self._step,
            self._log,
            self._hold,
            self._cancel,
            self._echo,
            self._step,
            self._log,
            self._echo,
        )
        for index, kind in enumerate(kinds):
            await kind(self._account.servers[(offset + index) % len(self._account.servers)])
        self._account.calls += CALLS_IN_A_ROUND

    async def _echo(self, server: str) -> None:
        await self._plain(server, "echo")

    async def _plain(self, server: str, tool: str, nonce: str = "") -> None:
        nonce = nonce or self._nonce()
        self._check_result(nonce, await self._result(server, tool, nonce))

    async def _step(self, server: str) -> None:
        await self._watched(server, "step", progress=STEPS)

    async def _log(self, server: str) -> None:
        await self._watched(server, "log", logs=len(LOGGED[LOGGED.index(self._level) :]))

    async def _watched(self, server: str, tool: str, *, progress: int = 0, logs: int = 0) -> None:
        """Make a call, and hold what comes on the way against what should."""
        nonce, seen = self._nonce(), Counter[str]()
        async with self._call(server, tool, nonce) as messages:
            async for message in messages:
                if "method" in message:
                    seen[self._check_notice(server, nonce, message)] += 1
                else:
                    self._check_result(nonce, message)
        self._account.missing["progress"] += progress - seen["progress"]
        unheard = "unattributable" if server in self._account.pipes else "logs"
        self._account.missing[unheard] += logs - seen["logs"]

    async def _hold(self, server: str) -> None:
        """Make a call that another call of ours ends."""
        nonce = self._nonce()
        async with self._call(server, "hold", nonce) as messages:
            async for message in messages:
                if "method" not in message:
                    self._check_result(nonce, message)
                elif self._check_notice(server, nonce, message) == "progress":
                    await self._plain(server, "release", nonce)

    async def _cancel(self, server: str) -> None:
        """Make a call and cancel it in the way of the era as soon as it is under way."""
        nonce = self._nonce()
        async with self._call(server, "hold", nonce) as messages:
            async for message in messages:
                if "method" not in message:
                    self._account.expect(
                        "cancellations", right="error" in message, example=(nonce, message)
                    )
                elif self._check_notice(server, nonce, message) == "progress":
                    self._account.cancelled[server].append(nonce)
                    if self._era == "modern":
                        return
                    await self._take_back(message["params"]["progressToken"])

    async def _take_back(self, number: int) -> None:
        cancel: Json = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
        cancel["params"] = {"requestId": number}
        async with self._wire.send("POST", cancel, self._headers("")) as messages:
            async for _ in messages:
                pass

    def _check_result(self, nonce: str, message: Json) -> None:
        right = "result" in message and _text(message) == nonce
        self._account.expect("results", right=right, example=(nonce, message))

    def _check_notice(self, server: str, nonce: str, message: Json) -> str:
        """Check what comes on the stream of a call; return its kind."""
        params = message["params"]
        if message["method"] == "notifications/progress":
            right = params["message"] == nonce
            self._account.expect("progress", right=right, example=(nonce, message))
            return "progress"
        said: str = params["data"]["nonce"]
        # On a pipe a message may belong to any call of ours, if all calls under way are ours.
        is_ours = said == nonce or (server in self._account.pipes and self._owns(said))
        right = is_ours and LEVELS.index(params["level"]) >= LEVELS.index(self._level)
        self._account.expect("logs", right=right, example=(nonce, message))
        return "logs"

    def _owns(self, nonce: str) -> bool:
        return nonce.startswith(f"{self._number}-")

    def _nonce(self) -> str:
        return f"{self._number}-{uuid4().hex}"

    async def _result(self, server: str, tool: str, nonce: str) -> Json:
        answer: Json = {}
        async with self._call(server, tool, nonce) as messages:
            async for message in messages:
                if "method" not in message:
                    answer = message
                else:
                    self._check_notice(server, nonce, message)
        return answer

    @asynccontextmanager
    async def _call(
        self, server: str, tool: str, nonce: str
    ) -> AsyncGenerator[AsyncGenerator[Json, None], None]:
        number, name = next(self._ids), f"{server}__{tool}"
        params: Json = {"name": name, "arguments": {"nonce": nonce}}
        params["_meta"] = {"progressToken": number}
        message = self._message("tools/call", params, number)
        headers = self._headers("tools/call", name)
        async with self._wire.send("POST", message, headers) as messages:
            yield messages

    async def _introduce(self) -> None:
        about: Json = {"name": f"visitor {self._number}", "version": "1"}
        params: Json = {"protocolVersion": VERSIONS["handshake"], "capabilities": {}}
        await self._ask("initialize", {**params, "clientInfo": about})
        self._session = {"mcp-session-id": self._wire.session}
        ready: Json = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        async with self._wire.send("POST", ready, self._headers("")):
            pass
        await self._ask("logging/setLevel", {"level": self._level})

    async def _ask(self, method: str, params: Json) -> None:
        message = self._message(method, params)
        async with self._wire.send("POST", message, self._headers(method)) as messages:
            async for _ in messages:
                pass

    async def _hear(self, method: str, message: Json | None, headers: dict[str, str]) -> None:
        """Listen; what belongs to a call has no business here."""
        async with self._wire.send(method, message, headers) as messages:
            async for heard in messages:
                about = heard.get("method", "")
                is_announced = "list_changed" in about or "subscriptions" in about
                if not is_announced:
                    kind = "progress" if "progress" in about else "logs"
                    self._account.expect(kind, right=False, example=("announced", heard))

    def _message(self, method: str, params: Json, number: int | None = None) -> Json:
        if self._era == "modern":
            params["_meta"] = {
                **params.get("_meta", {}),
                "io.modelcontextprotocol/protocolVersion": VERSIONS["modern"],
                "io.modelcontextprotocol/clientInfo": {"name": "visitor", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
                LOG_LEVEL: self._level,
            }
        number = number or next(self._ids)
        return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}

    def _headers(self, method: str, name: str = "") -> dict[str, str]:
        headers = {"mcp-protocol-version": VERSIONS[self._era], **self._session}
        if self._era == "modern":
            headers |= {"mcp-method": method} | ({"mcp-name": name} if name else {})
        return headers


def _text(message: Json) -> str:
    return message.get("result", {}).get("content", [{}])[0].get("text", "")
