"""Clients that take their time to say what they want."""

from contextlib import suppress
from pathlib import Path

import anyio
import anyio.abc
import anyio.lowlevel
import pytest

from aggregator.upstream.http.time_limits import TIMEOUT
from tests.loopback.door import Open, door
from tests.patience import PATIENCE
from tests.peers import ERAS, Era, Peer, connect_to, ready, text_of

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("parser")]

HURRY = 0.2
"""Seconds that a request may take here."""

LEISURE = 1.0
"""The same where requests are made that must arrive whole, also on a busy machine."""

HEAD = b"POST /mcp HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n"
BODY = HEAD + b"content-type: application/json\r\ncontent-length: 1000000\r\n\r\n"
CHUNKED = HEAD + b"content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"


async def heard(opened: Open, beginning: bytes, crumb: bytes) -> bytes:
    """Send the beginning of a request and ever more of it; return what comes until the end."""
    host, port = opened.origin.removeprefix("http://").split(":")
    head = beginning.replace(b"{host}", f"{host}:{port}".encode())
    answer = b""
    with anyio.fail_after(PATIENCE):
        async with await anyio.connect_tcp(host, int(port)) as stream:
            await stream.send(head.replace(b"{token}", opened.token.encode()))
            async with anyio.create_task_group() as group:
                group.start_soon(trickle, stream, crumb)
                try:
                    while True:
                        answer += await stream.receive()
                except (anyio.EndOfStream, anyio.BrokenResourceError):
                    group.cancel_scope.cancel()
    return answer


async def trickle(stream: anyio.abc.ByteSendStream, crumb: bytes) -> None:
    """Send a little, over and over, slowly enough for the limits of size."""
    try:
        for _ in range(1000):
            await stream.send(crumb)
            await anyio.lowlevel.checkpoint()
    except anyio.BrokenResourceError:
        return


@pytest.mark.parametrize(
    ("beginning", "crumb"),
    [
        (b"", b""),
        (b"P", b""),
        (HEAD, b""),
        (HEAD, b"x: y\r\n"),
        (HEAD + b"x: ", b"y"),
        (BODY, b""),
        (BODY, b" "),
        (CHUNKED, b"1\r\n \r\n"),
    ],
)
async def test_a_request_that_does_not_end_is_hung_up_on(
    beginning: bytes, crumb: bytes, tmp_path: Path
) -> None:
    async with door({}, tmp_path, patience=HURRY) as opened:
        answer = await heard(opened, beginning, crumb)

    # Who goes on sending to a connection that is closed may lose what was answered.
    assert answer == TIMEOUT or (crumb and not answer)


async def test_who_is_refused_is_not_listened_to_for_ever(tmp_path: Path) -> None:
    """Also a connection that has been answered must not be held by what else is sent on it."""
    stranger = BODY.replace(b"{token}", b"wrong")
    async with door({}, tmp_path, patience=HURRY) as opened:
        answer = await heard(opened, stranger, b" ")

    assert answer.startswith(b"HTTP/1.1 401 ")
    assert b"408" not in answer


@pytest.mark.parametrize("era", ERAS)
async def test_an_answer_may_take_longer_than_a_request(era: Era, tmp_path: Path) -> None:
    """What is limited is the client's time, not the server's; nor the stream of news."""
    peer = Peer("block", "go")
    answers: list[str] = []
    async with door({"slow": connect_to(peer)}, tmp_path, patience=LEISURE) as opened:
        await ready(opened.upstream)
        async with opened.client(era) as client, anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "slow__block")
            await peer.blocked.wait()
            # A connection that only dawdles is gone by then, and the call is still under way.
            await heard(opened, b"", b"")
            answers.append(text_of(await client.call_tool("slow__go", {})))
            assert not peer.cancelled.is_set()
            group.cancel_scope.cancel()

    assert answers == ["go: {}"]


async def test_the_head_of_a_request_has_a_bound(tmp_path: Path) -> None:
    """It is refused or hung up on, also where it would never end."""
    async with door({}, tmp_path) as opened:
        port = int(opened.origin.rpartition(":")[2])
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            answer = b""
            with anyio.fail_after(PATIENCE), suppress(anyio.BrokenResourceError, anyio.EndOfStream):
                await stream.send(b"POST /mcp HTTP/1.1\r\n")
                for _ in range(1024):
                    await stream.send(b"x: " + b"y" * 1000 + b"\r\n")
                answer = await stream.receive()

    assert not answer or answer.split(b" ")[1] in (b"400", b"431")
