"""What stands beside a request on its connection: behind its body, after it, or instead of it."""

from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from tests.loopback.door import Open, door
from tests.patience import PATIENCE

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("parser")]

BODY = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",'
    b'"capabilities":{},"clientInfo":{"name":"a","version":"1"}}}'
)
HEAD = (
    b"POST /mcp HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n"
    b"accept: application/json, text/event-stream\r\n"
)
CHUNKED = b"transfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n" % (len(BODY), BODY)
SIZED = b"content-length: %d\r\n\r\n" % len(BODY)
TOKEN = b"authorization: Bearer {token}\r\n"
HEALTH = b"GET /healthz HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n"
READ = b"until it is read"
"""Stands for waiting until the pieces before it have been read, apart from those behind it."""


async def heard(opened: Open, *pieces: bytes, until: bytes = b"") -> bytes:
    """Send the pieces of a request one by one; return what comes, to its end or a text in it."""
    host = opened.origin.removeprefix("http://")
    name, port = host.split(":")
    answer = b""
    with anyio.fail_after(PATIENCE), suppress(anyio.EndOfStream, anyio.BrokenResourceError):
        async with await anyio.connect_tcp(name, int(port)) as stream:
            for each in pieces:
                if each is READ:
                    # Whoever asks later is answered once what came before has been read.
                    await heard(opened, HEALTH)
                    continue
                piece = each.replace(b"{host}", host.encode())
                await stream.send(piece.replace(b"{token}", opened.token.encode()))
            while not until or until not in answer:
                answer += await stream.receive()
    return answer


async def test_what_follows_a_body_is_not_taken_for_its_headers(tmp_path: Path) -> None:
    async with door({}, tmp_path) as opened:
        known = await heard(opened, HEAD + TOKEN + CHUNKED + b"\r\n", until=b"serverInfo")
        assert known.startswith(b"HTTP/1.1 200")
        behind = await heard(opened, HEAD + CHUNKED + TOKEN + b"\r\n", until=b"\r\n\r\n")
    assert behind.startswith(b"HTTP/1.1 401")


@pytest.mark.parametrize("crumb", [b"a: b\r\n", b"a"])
async def test_what_follows_a_body_has_an_end(tmp_path: Path, crumb: bytes) -> None:
    many = crumb * (64 * 1024 // len(crumb))
    async with door({}, tmp_path) as opened:
        # It would be waited for until the client is patient no longer, and kept meanwhile.
        with anyio.fail_after(PATIENCE / 2):
            await heard(opened, HEAD + TOKEN + CHUNKED, *[many] * 40)


async def test_a_body_may_come_in_large_pieces_after_its_head(tmp_path: Path) -> None:
    blanks = b" " * 1_000_000
    head = HEAD + TOKEN + b"content-length: %d\r\n\r\n" % (len(BODY) + len(blanks))
    async with door({}, tmp_path) as opened:
        answer = await heard(opened, head, blanks, BODY, until=b"serverInfo")
    assert answer.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("behind", [1, 2, 3])
async def test_a_head_may_end_in_two_pieces_with_a_large_body_behind(
    tmp_path: Path, behind: int
) -> None:
    blanks = b" " * 200_000
    head = HEAD + TOKEN + b"content-length: %d\r\n\r\n" % (len(BODY) + len(blanks))
    async with door({}, tmp_path) as opened:
        answer = await heard(
            opened, head[:-behind], READ, head[-behind:] + blanks + BODY, until=b"serverInfo"
        )
    assert answer.startswith(b"HTTP/1.1 200")


async def test_requests_before_an_answer_have_a_bound(tmp_path: Path) -> None:
    async with door({}, tmp_path) as opened:
        few = await heard(
            opened,
            b"GET /healthz HTTP/1.1\r\nhost: {host}\r\n\r\n" * 9
            + b"GET /healthz HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n",
        )
        assert few.count(b"HTTP/1.1 200") == 10
        many = await heard(opened, b"GET / HTTP/1.1\r\n\r\n" * 2_000)
    assert many.count(b"HTTP/1.1 ") < 2_000


@pytest.mark.parametrize("offer", [b"h2c", b"websocket"])
@pytest.mark.parametrize("between", [(), (b"",)], ids=["in one piece", "in two"])
async def test_the_offer_of_another_protocol_is_let_pass(
    tmp_path: Path, offer: bytes, between: tuple[bytes, ...]
) -> None:
    """Programs in Java offer HTTP/2 with each request, unless they are told not to."""
    offered = b"connection: Upgrade, HTTP2-Settings\r\nupgrade: %b\r\nhttp2-settings: AAMA\r\n"
    head = HEAD + TOKEN + offered % offer + SIZED
    pieces = (head, BODY) if between else (head + BODY,)
    async with door({}, tmp_path) as opened:
        answer = await heard(opened, *pieces, until=b"serverInfo")
    assert answer.startswith(b"HTTP/1.1 200")


async def test_the_answer_to_what_came_first_comes_first(tmp_path: Path) -> None:
    async with door({}, tmp_path) as opened:
        answer = await heard(opened, HEAD + TOKEN + SIZED + BODY + b"no request\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"serverInfo" in answer
