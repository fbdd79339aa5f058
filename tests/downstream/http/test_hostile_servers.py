"""Servers over HTTP that send too much, too often or elsewhere: the call fails, nothing else."""

import gzip
import json
import zlib
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from starlette.types import Message, Receive, Scope, Send

from aggregator.config import ServerConfig
from aggregator.downstream.http.background import AT_ONCE, MAX_WAITING
from aggregator.downstream.http.reach import reach
from aggregator.names import ServerName
from tests.loopback.scripted import Act, Scripted, body_of, result
from tests.loopback.web import answer, web
from tests.patience import PATIENCE
from tests.peers import aggregating, ready, text_of, visiting

pytestmark = pytest.mark.anyio

LIMIT = 64 * 1024
BOMB = 400 * 1024 * 1024
MAY_HAVE_RUN = "may or may not have taken effect"


@asynccontextmanager
async def calling(script: Scripted, **options: Any) -> AsyncGenerator[Any, None]:
    """Give a way to call the server's tool, for as long as it is connected."""
    async with web(script) as origin:
        server = ServerConfig(
            ServerName("web"),
            "web",
            type="http",
            url=f"{origin}/mcp",
            max_message_bytes=LIMIT,
            **options,
        )
        async with aggregating({"web": reach(server)}) as upstream:
            await ready(upstream)
            async with visiting(upstream, "handshake") as client:

                async def call() -> str:
                    with anyio.fail_after(PATIENCE):
                        return text_of(await client.call_tool("web__go", {}))

                yield call


@contextmanager
def growth() -> Generator[Callable[[], int], None, None]:
    """Give the bytes by which this process was larger in the block than at its beginning.

    The system keeps the largest size ever; it is told to begin anew, or an earlier test that
    needed more would hide what this one needs.
    """
    Path("/proc/self/clear_refs").write_text("5")
    before = _peak()
    yield lambda: _peak() - before


def _peak() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def saying(body: bytes, **headers: str) -> Act:
    async def act(_scope: Scope, _receive: Receive, send: Send, _message: Any) -> None:
        await answer(send, 200, body, **{"content_type": "application/json", **headers})

    return act


def streaming(part: bytes, times: int, kind: str = "application/json") -> Act:
    """Send a part over and over, as long as somebody listens."""

    async def act(_scope: Scope, _receive: Receive, send: Send, _message: Any) -> None:
        headers = [(b"content-type", kind.encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for _ in range(times):
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    return act


def _bomb(encoding: str) -> bytes:
    """Return a few bytes that unfold to hundreds of millions."""
    # The fastest way to pack: three times as fast as the best, and small enough.
    packer = zlib.compressobj(1, wbits=31 if encoding == "gzip" else 15)
    block = b" " * (1 << 20)
    return b"".join([*(packer.compress(block) for _ in range(BOMB >> 20)), packer.flush()])


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "gzip, gzip"])
async def test_a_compressed_answer_is_refused_without_unfolding_it(encoding: str) -> None:
    bomb = _bomb(encoding.partition(",")[0])
    script = Scripted(saying(bomb, content_encoding=encoding))
    async with calling(script) as call:
        with growth() as grown:
            failed, again = await call(), await call()

    assert "compressed" in failed
    assert MAY_HAVE_RUN in failed
    assert again == "gone"
    assert grown() < 64 << 20


async def test_no_compressed_answer_is_asked_for() -> None:
    script = Scripted()
    async with calling(script, headers={"Accept-Encoding": "gzip"}) as call:
        await call()

    encodings = {dict(each["headers"])[b"accept-encoding"] for each in script.requests}
    assert encodings == {b"identity"}


@pytest.mark.parametrize(
    "act",
    [
        streaming(b'"' + b"x" * LIMIT, 4000),
        streaming(b"data: " + b"x" * LIMIT, 4000, "text/event-stream"),
        streaming(b"data: x\n" * 1000, 4000, "text/event-stream"),
    ],
    ids=["body", "line", "event"],
)
async def test_an_answer_without_end_is_cut_short(act: Act) -> None:
    async with calling(Scripted(act)) as call:
        with growth() as grown:
            failed, again = await call(), await call()

    assert MAY_HAVE_RUN in failed
    assert again == "gone"
    assert grown() < 64 << 20


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b"null", b'{"jsonrpc":"2.0"}', gzip.compress(b"{}", mtime=0)]
)
async def test_an_answer_that_is_none_costs_its_call(body: bytes) -> None:
    async with calling(Scripted(saying(body))) as call:
        failed, again = await call(), await call()

    assert "may" in failed
    assert again == "gone"


async def test_a_stream_of_news_that_keeps_ending_is_not_opened_in_a_loop() -> None:
    """Even a server that asks for no pause at all gets one second, then more."""

    async def end_at_once(_scope: Scope, _receive: Receive, send: Send, _message: Any) -> None:
        await answer(send, 200, b"retry: 0\n\n", content_type="text/event-stream")

    script = Scripted(listen=end_at_once)
    began = anyio.current_time()
    async with calling(script) as call:
        connected = anyio.current_time()
        while anyio.current_time() - connected < 2.5:
            assert await call() == "gone"

    assert 1 <= script.gets <= 1 + anyio.current_time() - began


class Asking(Scripted):
    """Asks in the answer to a call, and takes no answer before it is let."""

    def __init__(self, questions: int) -> None:
        super().__init__(self._ask)
        self.questions = questions
        self.go_on = anyio.Event()
        self.open = 0
        self.taken = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            await super().__call__(scope, receive, send)
            return
        body = await body_of(receive)
        if b'"method"' in body:
            await super().__call__(scope, replayed(body), send)
            return
        self.open += 1
        await self.go_on.wait()
        self.taken += 1
        await answer(send, 202)

    async def _ask(self, _scope: Scope, _receive: Receive, send: Send, message: Any) -> None:
        asked = [{"jsonrpc": "2.0", "id": f"q{n}", "method": "ping"} for n in range(self.questions)]
        lines = (f"data: {json.dumps(each)}\n\n" for each in (*asked, result(message, "done")))
        await answer(send, 200, "".join(lines).encode(), content_type="text/event-stream")


def replayed(body: bytes) -> Receive:
    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


async def test_a_server_that_asks_thousands_of_questions_gets_few_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Or on a busy machine the first are given up, and others come after them.
    monkeypatch.setattr("aggregator.downstream.http.session.TELLING", PATIENCE)
    script = Asking(5_000)
    async with calling(script) as call:
        assert await call() == "done"
        # What it asked is being answered by now, as far as that is possible.
        assert await call() == "gone"
        assert script.open <= AT_ONCE
        script.go_on.set()
        assert await call() == "gone"

    assert script.taken <= AT_ONCE + MAX_WAITING


async def test_a_redirect_is_followed_on_its_origin_and_nowhere_else() -> None:
    elsewhere = Scripted()

    async def to_neighbour(_scope: Scope, _receive: Receive, send: Send, _message: Any) -> None:
        await answer(send, 307, location=f"{other}/mcp")

    async def to_slash(_scope: Scope, _receive: Receive, send: Send, _message: Any) -> None:
        script.act = None
        await answer(send, 307, location="/mcp/")

    script = Scripted()
    async with web(elsewhere) as other, calling(script) as call:
        script.act = to_neighbour
        refused = await call()
        script.act = to_slash
        followed = await call()

    assert "points to another place (307)" in refused
    assert "was not run" in refused
    assert followed == "gone"
    assert elsewhere.requests == []


async def test_headers_of_the_configuration_are_sent_and_proxies_of_the_environment_are_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    script = Scripted()
    async with calling(script, headers={"X-Key": "k", "Mcp-Session-Id": "forged"}) as call:
        answered = await call()

    assert answered == "gone"
    sent = [dict(each["headers"]) for each in script.requests]
    assert {each[b"x-key"] for each in sent} == {b"k"}
    assert b"forged" not in {each.get(b"mcp-session-id") for each in sent}


async def test_an_interrupted_stream_is_taken_up_where_it_was_left() -> None:
    """A server that gives its events ids keeps them: the call is not lost, and not run twice."""
    asked: list[bytes] = []

    async def break_off(_scope: Scope, _receive: Receive, send: Send, message: Any) -> None:
        script.answers = json.dumps(result(message, "at last"))
        await answer(send, 200, b"id: 7\ndata:\n\n", content_type="text/event-stream")

    async def go_on(scope: Scope, _receive: Receive, send: Send, _message: Any) -> None:
        place = dict(scope["headers"]).get(b"last-event-id")
        if place is None:
            await answer(send, 405)
            return
        asked.append(place)
        data = f"id: 8\ndata: {script.answers}\n\n".encode()
        await answer(send, 200, data, content_type="text/event-stream")

    class Resuming(Scripted):
        answers = ""

    script = Resuming(break_off, listen=go_on)
    async with calling(script) as call:
        answered = await call()

    assert answered == "at last"
    assert asked == [b"7"]
    assert script.calls == 1


@pytest.mark.parametrize(
    "place", ["caf\u00e9", "\ufffd", "a\vb", "\x7f", "x" * 5000], ids=lambda place: repr(place[:4])
)
async def test_a_place_that_cannot_be_named_to_the_server_again_costs_only_its_call(
    place: str,
) -> None:
    async def break_off(_scope: Scope, _receive: Receive, send: Send, _message: Any) -> None:
        await answer(
            send, 200, f"id: {place}\ndata:\n\n".encode(), content_type="text/event-stream"
        )

    script = Scripted(break_off)
    async with calling(script) as call:
        failed, again = await call(), await call()

    assert MAY_HAVE_RUN in failed
    assert "without an answer" in failed
    assert again == "gone"
    assert not any(b"last-event-id" in dict(each["headers"]) for each in script.requests)
