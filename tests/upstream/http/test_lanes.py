"""Calls over HTTP that are like one before, answered where they are read."""

import gc
import json
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import mcp_types as types
import pytest
from mcp.server.context import CallNext
from mcp.shared.exceptions import MCPError
from mcp_types.version import LATEST_MODERN_VERSION

from aggregator.config import Settings
from aggregator.upstream.caller import Context
from aggregator.upstream.http.bodies import SMALL_BYTES
from aggregator.upstream.http.keys import Keys, Ring
from aggregator.upstream.http.patience import HAS_HTTPTOOLS
from aggregator.upstream.http.shortcut import Offer
from aggregator.upstream.replica import ELSEWHERE
from aggregator.upstream.server import Upstream
from tests.loopback.door import Open, door
from tests.patience import PATIENCE
from tests.peers import ERAS, Era, connect_to, ready, until
from tests.peers import Context as PeerContext
from tests.upstream.http.test_endpoint import ENVELOPE, HELLO, Asker, asked

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not HAS_HTTPTOOLS, reason="without it all goes the usual way"),
]

CALL = "tools/call"


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> Era:
    return request.param


class Usual:
    """What goes the usual way: through the SDK."""

    def __init__(self, upstream: Upstream) -> None:
        self.calls: list[Any] = []
        upstream.middleware.insert(0, self._note)

    async def _note(self, ctx: Context, call_next: CallNext) -> Any:
        if ctx.method == CALL:
            self.calls.append((ctx.params or {}).get("name"))
        return await call_next(ctx)


class Answer:
    """What came back: a status, headers, and messages."""

    def __init__(self, head: bytes, body: bytes) -> None:
        status, *lines = head.decode().split("\r\n")
        self.status = int(status.split()[1])
        self.headers = dict(line.split(": ", 1) for line in lines)
        kind = self.headers.get("content-type")
        texts = [body.decode()] if kind == "application/json" else []
        if kind == "text/event-stream":
            texts = [line[6:] for line in body.decode().splitlines() if line.startswith("data: ")]
        self.messages: list[dict[str, Any]] = [json.loads(each) for each in texts]

    @property
    def text(self) -> str:
        return self.messages[-1]["result"]["content"][0]["text"]


class Wire:
    """One connection to a door, on which each byte is ours."""

    def __init__(self, stream: anyio.abc.SocketStream, opened: Open, era: Era) -> None:
        self.stream = stream
        self.era: Era = era
        self.host = opened.origin.removeprefix("http://")
        self.token = opened.token
        self.session = ""
        self._rest = b""
        self.number = 0

    def request(
        self, method: str, params: dict[str, Any] | None = None, **headers: str
    ) -> tuple[bytes, bytes]:
        """Return the head and the body of a request."""
        self.number += 1
        params = dict(params or {})
        given = {
            "host": self.host,
            "authorization": f"Bearer {self.token}",
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
        }
        if self.era == "modern":
            params["_meta"] = {**ENVELOPE, **params.get("_meta", {})}
            given |= {"mcp-protocol-version": LATEST_MODERN_VERSION, "mcp-method": method}
            if method == CALL:
                given["mcp-name"] = params["name"]
        elif self.session:
            given["mcp-session-id"] = self.session
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        body = json.dumps(asked(method, params, self.number)).encode()
        given["content-length"] = str(len(body))
        lines = "".join(f"{name}: {value}\r\n" for name, value in given.items() if value)
        return f"POST /mcp HTTP/1.1\r\n{lines}\r\n".encode(), body

    def call(
        self, tool: str = "one__plain", *, waits: bool = False, **headers: str
    ) -> tuple[bytes, bytes]:
        arguments = {"waits": True} if waits else {}
        return self.request(CALL, {"name": tool, "arguments": arguments}, **headers)

    def sized(self, body: bytes) -> bytes:
        """Return the request that is like a call, but for its body."""
        head, usual = self.call()
        said = "content-length: %d\r\n"
        return head.replace((said % len(usual)).encode(), (said % len(body)).encode()) + body

    async def ask(self, *pieces: bytes) -> Answer:
        """Send the pieces of a request, and return its answer."""
        await self.send(pieces)
        return await self.answer()

    async def send(self, pieces: Iterable[bytes]) -> None:
        for piece in pieces:
            await self.stream.send(piece)

    async def answer(self) -> Answer:
        with anyio.fail_after(PATIENCE):
            head = await self._until(b"\r\n\r\n")
            if b"transfer-encoding: chunked" in head:
                return Answer(head, await self._chunks())
            length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
            while len(self._rest) < length:
                self._rest += await self.stream.receive()
            body, self._rest = self._rest[:length], self._rest[length:]
            return Answer(head, body)

    async def _chunks(self) -> bytes:
        body = b""
        while size := int(await self._until(b"\r\n"), 16):
            while len(self._rest) < size + 2:
                self._rest += await self.stream.receive()
            body, self._rest = body + self._rest[:size], self._rest[size + 2 :]
        await self._until(b"\r\n")
        return body

    async def _until(self, end: bytes) -> bytes:
        while end not in self._rest:
            self._rest += await self.stream.receive()
        before, _, self._rest = self._rest.partition(end)
        return before

    async def begin(self) -> None:
        """Shake hands, if that is what is done in its era."""
        if self.era == "handshake":
            answer = await self.ask(*self.request("initialize", dict(HELLO)))
            self.session = answer.headers["mcp-session-id"]


@asynccontextmanager
async def connected(opened: Open, era: Era, of: Wire | None = None) -> AsyncGenerator[Wire, None]:
    """Connect to a door, in the session of another connection if there is one."""
    name, port = opened.origin.removeprefix("http://").split(":")
    async with await anyio.connect_tcp(name, int(port)) as stream:
        wire = Wire(stream, opened, era)
        if of is None:
            await wire.begin()
        else:
            wire.session = of.session
        yield wire


class Gate(Asker):
    """Leaves a call unanswered that asks for it, for ever or until it is let through."""

    def __init__(self, *tools: str) -> None:
        super().__init__(*tools)
        self.let_through = anyio.Event()

    async def _call(self, ctx: PeerContext, params: types.CallToolRequestParams) -> Any:
        arguments = params.arguments or {}
        if arguments.get("waits"):
            params = params.model_copy(update={"name": "block"})
        if arguments.get("lingers"):
            self.blocked.set()
            await self.let_through.wait()
        if (code := arguments.get("refused")) is not None:
            raise MCPError(code, "No", {"why": "because"})
        return await super()._call(ctx, params)


class Served:
    def __init__(self, opened: Open, wire: Wire, peer: Gate, usual: Usual) -> None:
        self.opened = opened
        self.wire = wire
        self.peer = peer
        self.usual = usual


@asynccontextmanager
async def serving(
    directory: Path, era: Era, settings: Settings | None = None, **options: Any
) -> AsyncGenerator[Served, None]:
    """Serve one server, with a client that has called it once."""
    options.setdefault("outside", {"drain_time": 0.05})
    peer = Gate("plain", "count", "ask", "other")
    async with door({"one": connect_to(peer, era)}, directory, settings, **options) as opened:
        await ready(opened.upstream)
        usual = Usual(opened.upstream)
        async with connected(opened, era) as wire:
            assert (await wire.ask(*wire.call())).status == 200
            usual.calls.clear()
            yield Served(opened, wire, peer, usual)


async def test_a_call_like_one_before_is_answered_as_that_was(era: Era, tmp_path: Path) -> None:
    async with serving(tmp_path, era) as served:
        wire = served.wire
        head, body = wire.call()
        other = head.replace(b"accept", b"x: y\r\naccept")
        answers = [
            await wire.ask(head + body),
            await wire.ask(head, body),
            await wire.ask(head + body[:5], body[5:]),
            await wire.ask(other + body),
        ]
        rests = [repr(each) for each in (served.opened.upstream.fleet.server("one").requests,)]  # pyright: ignore[reportArgumentType]

    assert len(served.usual.calls) == 1
    first, *others = ((each.status, each.headers, each.messages) for each in answers)
    assert all(
        (status, {**headers, "date": ""}, messages)
        == (first[0], {**first[1], "date": ""}, first[2])
        for status, headers, messages in others
    )
    assert "0 of" in rests[0]
    assert len(served.peer.calls) == 5


async def test_a_large_call_is_weighed_and_none_is_known_by_it(era: Era, tmp_path: Path) -> None:
    large = {"name": "one__plain", "arguments": {"text": "x" * SMALL_BYTES}}
    async with (
        serving(tmp_path, era) as served,
        connected(served.opened, era, served.wire) as wire,
    ):
        for _ in range(2):
            assert (await wire.ask(b"".join(wire.request(CALL, large)))).status == 200
        for _ in range(3):
            assert (await wire.ask(*wire.call())).status == 200

    assert len(served.usual.calls) == 3


@pytest.mark.parametrize("code", [types.INVALID_PARAMS, types.HEADER_MISMATCH, ELSEWHERE, 7])
async def test_an_error_of_a_server_is_told_as_on_a_fresh_connection(
    era: Era, code: int, tmp_path: Path
) -> None:
    params = {"name": "one__plain", "arguments": {"refused": code}}
    async with serving(tmp_path, era) as served:
        known = await served.wire.ask(*served.wire.request(CALL, params))
        assert served.usual.calls == []
        async with connected(served.opened, era, served.wire) as other:
            other.number = served.wire.number - 1
            fresh = await other.ask(*other.request(CALL, params))

    assert (known.status, known.messages) == (fresh.status, fresh.messages)
    assert {**known.headers, "date": ""} == {**fresh.headers, "date": ""}


async def test_each_of_several_tools_is_known(era: Era, tmp_path: Path) -> None:
    async with serving(tmp_path, era) as served:
        for _ in range(3):
            for tool in ("one__plain", "one__other"):
                await served.wire.ask(*served.wire.call(tool))

    assert len(served.usual.calls) == (1 if era == "modern" else 0)
    assert len(served.peer.calls) == 7


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"authorization": "Bearer wrong"}, 401),
        ({"authorization": ""}, 401),
        ({"host": "elsewhere"}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"accept": "application/json"}, 406),
        ({"content_type": "text/plain"}, 415),
    ],
)
async def test_a_head_that_is_another_is_looked_at(
    era: Era, change: dict[str, str], status: int, tmp_path: Path
) -> None:
    async with serving(tmp_path, era) as served:
        answer = await served.wire.ask(*served.wire.call(waits=False, **change))
        after = await served.wire.ask(*served.wire.call())

    assert answer.status == status
    assert after.status == 200
    assert len(served.peer.calls) == 2


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"[]",
        b"not json",
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}',
        b'{"jsonrpc":"1.0","id":1,"method":"tools/call","params":{"name":"one__plain"}}',
        b'{"jsonrpc":"2.0","id":true,"method":"tools/call","params":{"name":"one__plain"}}',
        b'{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"one__plain"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}',
    ],
)
async def test_what_is_no_plain_call_is_answered_as_on_a_fresh_connection(
    era: Era, body: bytes, tmp_path: Path
) -> None:
    async with serving(tmp_path, era) as served:
        known = await served.wire.ask(served.wire.sized(body))
        async with connected(served.opened, era, served.wire) as other:
            fresh = await other.ask(other.sized(body))

    assert (known.status, known.messages) == (fresh.status, fresh.messages)


async def test_in_the_modern_era_a_call_is_the_one_that_its_head_names(tmp_path: Path) -> None:
    async with serving(tmp_path, "modern") as served:
        _, body = served.wire.call("one__other")
        answer = await served.wire.ask(served.wire.sized(body))

    assert answer.status == 400
    assert "error" in answer.messages[0]
    assert len(served.peer.calls) == 1


async def test_what_is_told_before_the_answer_makes_it_a_stream(era: Era, tmp_path: Path) -> None:
    params = {"name": "one__count", "arguments": {}, "_meta": {"progressToken": "mine"}}
    async with serving(tmp_path, era) as served:
        wire = served.wire
        await wire.ask(*wire.call("one__count"))
        served.usual.calls.clear()
        answer = await wire.ask(*wire.request(CALL, params))
        after = await wire.ask(*wire.call())

    assert served.usual.calls == []
    told = [each.get("method") for each in answer.messages]
    assert told == ["notifications/progress"] * 3 + [None]
    assert {each["params"]["progressToken"] for each in answer.messages[:3]} == {"mine"}
    assert answer.text == "count: {}"
    assert after.text == "plain: {}"


async def test_a_question_is_asked_on_the_way_of_the_call(tmp_path: Path) -> None:
    async with serving(tmp_path, "handshake") as served:
        wire = served.wire
        async with connected(served.opened, "handshake", wire) as other:
            await wire.send(wire.call("one__ask"))
            with anyio.fail_after(PATIENCE):
                came = b""
                while b"elicitation/create" not in came or not came.endswith(b"\r\n\r\n\r\n"):
                    came += await wire.stream.receive()
            number = json.loads(came.partition(b"data: ")[2].partition(b"\r\n")[0])["id"]
            answer = {"jsonrpc": "2.0", "id": number, "result": {"action": "decline"}}
            taken = await other.ask(other.sized(json.dumps(answer).encode()))
            with anyio.fail_after(PATIENCE):
                while b"they decline" not in came:
                    came += await wire.stream.receive()

    assert taken.status == 202
    assert served.usual.calls == []


async def test_a_call_that_is_taken_back_is_said_to_be_and_cancelled(tmp_path: Path) -> None:
    async with serving(tmp_path, "handshake") as served:
        wire = served.wire
        async with connected(served.opened, "handshake", wire) as other:
            await wire.send(wire.call(waits=True))
            await served.peer.blocked.wait()
            number = wire.number
            notice = {
                "jsonrpc": "2.0",
                "method": "notifications/cancelled",
                "params": {"requestId": str(number)},
            }
            assert (await other.ask(other.sized(json.dumps(notice).encode()))).status == 202
            answer = await wire.answer()
            with anyio.fail_after(PATIENCE):
                await served.peer.cancelled.wait()
            after = await wire.ask(*wire.call())

    assert served.usual.calls == []
    assert [(each["id"], each["error"]["code"]) for each in answer.messages] == [(number, -32800)]
    assert after.text == "plain: {}"


async def test_only_in_the_modern_era_a_client_that_goes_takes_its_call_back(
    era: Era, tmp_path: Path
) -> None:
    async with serving(tmp_path, era) as served:
        async with connected(served.opened, era, served.wire) as wire:
            await wire.ask(*wire.call())
            await wire.send(wire.call(waits=True))
            await served.peer.blocked.wait()
        if era == "modern":
            with anyio.fail_after(PATIENCE):
                await served.peer.cancelled.wait()
        assert (await served.wire.ask(*served.wire.call())).status == 200
        assert served.peer.cancelled.is_set() is (era == "modern")


async def test_a_session_that_ends_ends_what_is_under_way(tmp_path: Path) -> None:
    async with serving(tmp_path, "handshake") as served:
        wire = served.wire
        await wire.send(wire.call(waits=True))
        await served.peer.blocked.wait()
        async with connected(served.opened, "handshake", wire) as other:
            head, _ = other.call()
            gone = head.replace(b"POST", b"DELETE").partition(b"content-length")[0] + b"\r\n"
            assert (await other.ask(gone)).status == 200
        answer = await wire.answer()
        after = await wire.ask(*wire.call())

    assert "It may have taken effect" in answer.messages[0]["error"]["message"]
    assert (after.status, after.messages[0]["error"]["message"]) == (404, "Session not found")


@pytest.mark.parametrize("size", [100, 700, 1_000_000])
async def test_what_is_sent_before_an_answer_is_answered_after_it(
    era: Era, size: int, tmp_path: Path
) -> None:
    tools = ("plain", "count", "plain", "other", "plain", "plain")
    texts: list[str] = []
    async with serving(tmp_path, era) as served:
        wire = served.wire
        await wire.ask(*wire.call("one__count"))
        together = b"".join(part for tool in tools for part in wire.call(f"one__{tool}"))
        async with anyio.create_task_group() as group:
            pieces = [together[at : at + size] for at in range(0, len(together), size)]
            group.start_soon(wire.send, pieces)
            texts += [(await wire.answer()).text for _ in tools]

    assert texts == [f"{tool}: {{}}" for tool in tools]


async def test_what_is_sent_while_a_call_is_under_way_is_answered_after_it(
    era: Era, tmp_path: Path
) -> None:
    lingering = {"name": "one__plain", "arguments": {"lingers": True}}
    async with serving(tmp_path, era) as served:
        wire, peer = served.wire, served.peer
        await wire.send(wire.request(CALL, lingering))
        await peer.blocked.wait()
        await wire.send(wire.call())
        async with connected(served.opened, era, wire) as other:
            # What it sent is read by the time that somebody else is answered.
            assert (await other.ask(*other.call())).status == 200
        peer.let_through.set()
        answers = [await wire.answer(), await wire.answer(), await wire.ask(*wire.call())]

    assert [each.messages[0]["id"] for each in answers] == list(
        range(wire.number - 2, wire.number + 1)
    )
    assert [each.text for each in answers] == ["plain: {'lingers': True}", "plain: {}", "plain: {}"]


async def test_a_door_that_closes_lets_a_call_come_to_its_end(era: Era, tmp_path: Path) -> None:
    async with serving(tmp_path, era) as served:
        wire = served.wire
        await wire.send(wire.call(waits=True))
        await served.peer.blocked.wait()
        served.opened.stop.set()
        answer = await wire.answer()
        with (
            anyio.fail_after(PATIENCE),
            pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)),
        ):
            await wire.stream.receive()

    assert "error" in answer.messages[0]


async def test_who_is_not_let_in_any_more_is_not_by_a_head_that_was(tmp_path: Path) -> None:
    ring = Ring(tmp_path / "ring", "x")
    token = ring.add("ann", None, None)
    keys = Keys(ring)
    async with serving(tmp_path, "modern", keys=keys) as served:
        wire = served.wire
        wire.token = token
        for _ in range(3):
            assert (await wire.ask(*wire.call())).status == 200
        # Each call of somebody with a name is counted for them.
        assert len(served.usual.calls) == 3
        ring.revoke("ann")
        keys.look()
        assert (await wire.ask(*wire.call())).status == 401


async def test_what_changes_is_looked_at_anew(era: Era, tmp_path: Path) -> None:
    async with serving(tmp_path, era) as served:
        wire, fleet = served.wire, served.opened.upstream.fleet
        await wire.ask(*wire.call())
        assert served.usual.calls == []
        before = fleet.now
        await served.peer.change(new={"description": "Is new"})
        with anyio.fail_after(PATIENCE):
            while fleet.now is before:
                await fleet.changed.wait()
        for _ in range(3):
            assert (await wire.ask(*wire.call())).status == 200

    assert len(served.usual.calls) == 1


async def test_what_changes_while_a_call_comes_is_looked_at_anew(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, "modern") as served,
        connected(served.opened, "modern", served.wire) as wire,
    ):
        fleet, config = served.opened.upstream.fleet, served.opened.upstream.fleet.now.config
        head, body = wire.call()
        await wire.send([head])
        assert (await served.wire.ask(*served.wire.call())).status == 200
        # Clients of this era are not served any more, but for whoever has been let in.
        fleet.reconfigure(replace(config, settings=Settings(surface="promote")))
        await until(lambda: fleet.now.config is not config, lambda: fleet.changed)
        statuses = [(await wire.ask(body)).status, (await wire.ask(*wire.call())).status]

    assert statuses == [200, 400]


async def test_a_request_leaves_nothing_to_be_collected(tmp_path: Path) -> None:
    async with serving(tmp_path, "handshake") as served:
        gc.collect()
        gc.disable()
        try:
            for _ in range(9):
                await served.wire.ask(*served.wire.request("tools/list"))
            left = [each for each in gc.get_objects() if isinstance(each, Offer)]
        finally:
            gc.enable()

    # Of the call by which the others are known, and of the last request.
    assert len(left) <= 2


async def until_pinged(wire: Wire) -> bytes:
    """Call what takes long, and return what has come by the first sign of life."""
    await wire.send(wire.call(waits=True))
    came = b""
    while b": ping" not in came:
        came += await wire.stream.receive()
    return came


async def test_a_client_that_waits_long_hears_that_it_is_not_forgotten(
    era: Era, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aggregator.upstream.http.pulse.TICK", 0.01)
    async with serving(tmp_path, era) as served:
        with anyio.fail_after(PATIENCE):
            came = await until_pinged(served.wire)

    assert b"text/event-stream" in came
    assert served.usual.calls == []


async def test_nothing_stands_in_the_middle_of_an_answer(
    era: Era, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aggregator.upstream.http.pulse.TICK", 0.01)
    async with serving(tmp_path, era) as served:
        wire, came = served.wire, b""
        with anyio.fail_after(PATIENCE), suppress(anyio.EndOfStream, anyio.BrokenResourceError):
            came = await until_pinged(wire)
            await wire.stream.send(b"this is no request\r\n\r\n")
            while True:
                came += await wire.stream.receive()

    assert came.count(b"HTTP/1.1") == 1
