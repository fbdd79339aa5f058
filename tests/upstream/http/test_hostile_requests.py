"""Requests that a web page, a rebound name or a stranger might send: none of them is let in."""

from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest

from aggregator.upstream.http.guard import Policy, refusal
from aggregator.upstream.http.refusal import MAX_TOLD
from tests.loopback.door import Open, door
from tests.patience import PATIENCE

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("parser")]

Lines = Sequence[str]

HOST = "Host: 127.0.0.1:{port}"
TOKEN = "Authorization: Bearer {token}"  # noqa: S105 - a place for one

HOSTILE_HOSTS: Sequence[Lines] = [
    (),
    ("Host:",),
    ("Host: evil.example.com",),
    ("Host: evil.example.com:{port}",),
    ("Host: 127.0.0.1",),
    ("Host: 127.0.0.1:1",),
    ("Host: 127.0.0.1:{port}0",),
    ("Host: 127.0.0.1:0{port}",),
    ("Host: 127.0.0.1:{port}.evil.example.com",),
    ("Host: 127.0.0.1.evil.example.com:{port}",),
    ("Host: evil.example.com@127.0.0.1:{port}",),
    ("Host: 127.0.0.1:{port}@evil.example.com",),
    ("Host: localhost.evil.example.com:{port}",),
    ("Host: localhost.:{port}",),
    ("Host: evil-localhost:{port}",),
    ("Host: 127.0.0.2:{port}",),
    ("Host: 2130706433:{port}",),
    ("Host: 0x7f000001:{port}",),
    ("Host: 127.1:{port}",),
    ("Host: 0.0.0.0:{port}",),
    ("Host: [::]:{port}",),
    ("Host: ::1:{port}",),
    ("Host: [::1%25lo]:{port}",),
    ("Host: *:{port}",),
    ("Host: null",),
    ("Host: http://127.0.0.1:{port}",),
    ("Host: 127.0.0.1:{port}/",),
    ("Host: 127.0.0.1:{port}, evil.example.com",),
    ("Host: l\xf6calhost:{port}",),
    (HOST, "Host: evil.example.com"),
    ("Host: evil.example.com", HOST),
    (HOST, HOST),
    ("Host: evil.example.com", "X-Forwarded-Host: 127.0.0.1:{port}"),
    ("Host: evil.example.com", "Forwarded: host=127.0.0.1:{port}"),
]
HOSTILE_ORIGINS: Sequence[Lines] = [
    ("Origin:",),
    ("Origin: null",),
    ("Origin: http://evil.example.com",),
    ("Origin: https://evil.example.com",),
    ("Origin: http://127.0.0.1",),
    ("Origin: http://127.0.0.1:1",),
    ("Origin: http://localhost:3000",),
    ("Origin: http://127.0.0.1:{port}.evil.example.com",),
    ("Origin: http://127.0.0.1.evil.example.com:{port}",),
    ("Origin: http://evil.example.com@127.0.0.1:{port}",),
    ("Origin: http://127.0.0.1:{port}/",),
    ("Origin: http://127.0.0.1:{port} http://evil.example.com",),
    ("Origin: 127.0.0.1:{port}",),
    ("Origin: //127.0.0.1:{port}",),
    ("Origin: file://",),
    ("Origin: file://127.0.0.1:{port}",),
    ("Origin: chrome-extension://abcdefgh",),
    ("Origin: data:text/html,x",),
    ("Origin: http://127.0.0.1:{port}", "Origin: http://evil.example.com"),
    ("Origin: http://127.0.0.1:{port}", "Origin: http://127.0.0.1:{port}"),
    ("Sec-Fetch-Site: cross-site",),
    ("Sec-Fetch-Site: same-site",),
    ("Origin: http://127.0.0.1:{port}", "Sec-Fetch-Site: cross-site"),
]
HOSTILE_TOKENS: Sequence[Lines] = [
    (),
    ("Authorization:",),
    ("Authorization: Bearer",),
    ("Authorization: Bearer wrong",),
    ("Authorization: {token}",),
    ("Authorization: Basic {token}",),
    ("Authorization: Bearer {token}x",),
    ("Authorization: Bearer x{token}",),
    ("Authorization: Bearer {token} {token}",),
    ("Authorization: Bearer {token},{token}",),
    ('Authorization: Bearer "{token}"',),
    ("Authorization: Bearer\t{token}x",),
    ("Authorization: Bearer null",),
    ("Authorization: Bearer undefined",),
    ("Authorization: Bearer t\xf6ken",),
    (TOKEN, "Authorization: Bearer wrong"),
    ("Authorization: Bearer wrong", TOKEN),
    (TOKEN, TOKEN),
    ("X-Authorization: Bearer {token}",),
    ("Cookie: token={token}",),
    ("Proxy-Authorization: Bearer {token}",),
]

HOSTILE: Sequence[tuple[int, Lines]] = [
    *((421, (*lines, TOKEN)) for lines in HOSTILE_HOSTS),
    *((403, (HOST, *lines, TOKEN)) for lines in HOSTILE_ORIGINS),
    *((401, (HOST, *lines)) for lines in HOSTILE_TOKENS),
]

FRIENDLY: Sequence[Lines] = [
    (HOST, TOKEN),
    ("Host: localhost:{port}", TOKEN),
    ("Host: LOCALHOST:{port}", TOKEN),
    ("Host: [::1]:{port}", TOKEN),
    (HOST, "authorization: bearer {token}"),
    (HOST, "Origin: http://127.0.0.1:{port}", TOKEN),
    ("Host: localhost:{port}", "Origin: http://localhost:{port}", TOKEN),
    (HOST, "Origin: http://127.0.0.1:{port}", "Sec-Fetch-Site: same-origin", TOKEN),
]

HELLO = (
    '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
    '"capabilities":{},"clientInfo":{"name":"stranger","version":"1"}}}'
)


def test_there_are_enough_of_them() -> None:
    assert len(HOSTILE) >= 60
    assert len({lines for _, lines in HOSTILE}) == len(HOSTILE)


@pytest.mark.parametrize("request_line", ["POST /mcp", "GET /mcp", "DELETE /mcp"])
async def test_every_hostile_request_is_refused(request_line: str, tmp_path: Path) -> None:
    """By us with the right status, or by the parser as malformed; never with a success."""
    async with door({}, tmp_path) as opened:
        statuses = [
            (await _status(opened, request_line, lines), expected, lines)
            for expected, lines in HOSTILE
        ]

    assert [each for each in statuses if each[0] not in (each[1], 400)] == []


async def test_the_same_requests_without_the_hostile_part_are_let_in(tmp_path: Path) -> None:
    async with door({}, tmp_path) as opened:
        statuses = [await _status(opened, "POST /mcp", lines) for lines in FRIENDLY]

    assert statuses == [200] * len(FRIENDLY)


@pytest.mark.parametrize("request_line", ["POST /mcp", "GET /healthz"])
async def test_a_request_of_two_lengths_is_refused_and_hung_up_on(
    request_line: str, tmp_path: Path
) -> None:
    """A gateway that goes by the one would take for another request what we take for a body."""
    body = f"{len(HELLO):x}\r\n{HELLO}\r\n0\r\n\r\n"
    head = (
        f"{request_line} HTTP/1.1", HOST, TOKEN, "Content-Type: application/json",
        "Accept: application/json, text/event-stream", "Transfer-Encoding: chunked",
    )  # fmt: skip
    async with door({}, tmp_path) as opened:
        port = int(opened.origin.rpartition(":")[2])
        answers: list[bytes] = []
        for length in ((), (f"Content-Length: {len(body)}",), ("content-length: 4",)):
            lines = [line.format(port=port, token=opened.token) for line in (*head, *length)]
            async with await anyio.connect_tcp("127.0.0.1", port) as stream:
                await stream.send("\r\n".join([*lines, "", body]).encode())
                with anyio.fail_after(PATIENCE):
                    answers.append(await stream.receive())

    assert [answer.split(b" ", 2)[1] for answer in answers] == [b"200", b"400", b"400"]
    assert all(b"connection: close" in answer.lower() for answer in answers[1:])


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
async def test_being_well_is_not_for_the_pages_of_others_either(path: str, tmp_path: Path) -> None:
    async with door({}, tmp_path) as opened:
        statuses = {
            await _status(opened, f"GET {path}", lines)
            for lines in (*HOSTILE_HOSTS, *((HOST, *each) for each in HOSTILE_ORIGINS))
        }

    assert statuses <= {400, 403, 421}


async def test_a_refusal_says_how_to_come_in_but_nothing_of_the_token(tmp_path: Path) -> None:
    async with door({}, tmp_path) as opened:
        answer = await _answer(opened, "POST /mcp", (HOST,))
        wrong = await _answer(opened, "POST /mcp", (HOST, "Authorization: Bearer wrong"))

    assert b'www-authenticate: Bearer realm="aggregator"\r\n' in answer
    assert b'error="invalid_token"' in wrong
    assert opened.token.encode() not in answer + wrong


@pytest.mark.parametrize(
    ("host", "address", "allowed"),
    [
        ("192.0.2.7:8000", "192.0.2.7:8000", True),
        ("192.0.2.7:8000", "192.0.2.8:8000", False),
        ("tools.example.com", None, True),
        ("tools.example.com:443", None, True),
        ("TOOLS.example.com", None, True),
        ("other.example.com", None, False),
        ("tools.example.com.evil.example", None, False),
        ("0.0.0.0:8000", "192.0.2.7:8000", False),
    ],
)
def test_elsewhere_only_our_own_address_and_allowed_names_count(
    host: str, address: str | None, *, allowed: bool
) -> None:
    policy = Policy.of("0.0.0.0", 8000, names=["Tools.example.com"])  # noqa: S104 - not bound to

    found = refusal([(b"host", host.encode())], policy, address=address)

    assert (found is None) == allowed


async def _status(opened: Open, request_line: str, lines: Lines) -> int:
    answer = await _answer(opened, request_line, lines)
    return int(answer.split(b" ", 2)[1])


async def _answer(opened: Open, request_line: str, lines: Lines) -> bytes:
    """Send a request as it stands and return the head of the answer."""
    port = int(opened.origin.rpartition(":")[2])
    fixed = (
        f"{request_line} HTTP/1.1",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        f"Content-Length: {len(HELLO)}",
        "Connection: close",
    )
    shown = [line.format(port=port, token=opened.token) for line in lines]
    request = "\r\n".join([*fixed, *shown, "", HELLO]).encode("latin-1")
    async with await anyio.connect_tcp("127.0.0.1", port) as stream:
        await stream.send(request)
        with anyio.fail_after(PATIENCE):
            return await stream.receive()


async def test_a_proxy_that_names_no_host_is_told_to(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with door({}, tmp_path) as opened:
        port = int(opened.origin.rpartition(":")[2])
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            await stream.send(b"GET /readyz HTTP/1.0\r\n\r\n")
            with anyio.fail_after(PATIENCE):
                answer = await stream.receive()

    assert b" 421 " in answer
    (logged,) = (record.message for record in caplog.records)
    assert logged.startswith("a request was answered 421: it has no `Host`, as when a proxy asks")
    assert "`--allow-host`" in logged


async def test_what_is_refused_is_logged_once_with_the_option_that_would_allow_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with door({}, tmp_path) as opened:
        for _ in range(3):
            for lines in (
                ("Host: box.lan:80", TOKEN),
                (HOST, "Origin: http://evil.example.com", TOKEN),
                (HOST,),
                (HOST, "Authorization: Bearer wrong"),
            ):
                await _answer(opened, "POST /mcp", lines)

    host, origin, missing, wrong = (record.message for record in caplog.records)
    assert host.startswith("a request was answered 421: it asks for `box.lan:80`")
    assert host.endswith("use `--allow-host box.lan`")
    assert origin.startswith("a request was answered 403: it comes from a page of `http://evil")
    assert "`--allow-host`" in origin
    assert missing.startswith("a request was answered 401: it has no token; clients must send")
    assert "`--no-auth`" in missing
    assert wrong.startswith("a request was answered 401: it has another token")


async def test_what_strangers_send_cannot_fill_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with door({}, tmp_path) as opened:
        for number in range(MAX_TOLD + 5):
            await _answer(
                opened, "POST /mcp", (f"Host: evil{number}.example.com{'x' * 500}", TOKEN)
            )

    assert len(caplog.records) == MAX_TOLD
    assert all(len(record.message) < 500 for record in caplog.records)
