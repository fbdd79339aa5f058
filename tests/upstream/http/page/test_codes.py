"""A code stands for the token once, for a minute, and for nobody else on the machine."""

import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest

from aggregator.upstream.http.page.codes import CODE, EXCHANGE, LIFE, MAX_CODES, TABLES, Codes
from tests.loopback.door import door

pytestmark = pytest.mark.anyio

TOKEN = "0123456789abcdef" * 3
SOMEBODY_ELSE = 54321


@pytest.fixture
def anyio_backend() -> str:
    """The only one that uvicorn runs on."""
    return "asyncio"


class Browser:
    """Asks for codes, and shows them, from a port of its own."""

    def __init__(self, codes: Codes, host: str = "127.0.0.1", port: int = 5000) -> None:
        self._codes = codes
        self._client = (host, port)

    async def give(self) -> str:
        return (await self._ask(self._codes.give, authorization=f"Bearer {TOKEN}")).json()["code"]

    async def show(self, *codes: str) -> httpx2.Response:
        return await self._ask(self._codes.exchange, **{"aggregator-code": codes})

    async def _ask(self, app: Any, **headers: str | tuple[str, ...]) -> httpx2.Response:
        pairs = [
            (name, each)
            for name, value in headers.items()
            for each in (value if isinstance(value, tuple) else (value,))
        ]
        transport = httpx2.ASGITransport(app=app, client=self._client)
        async with httpx2.AsyncClient(transport=transport) as http:
            return await http.post("http://127.0.0.1/", headers=pairs)


def table(directory: Path, rows: Mapping[str, int], state: str = "01") -> tuple[Path, ...]:
    """Write down whose connections are, as Linux tells it."""
    lines = [
        f"{number:4}: {local} 0100007F:1F90 {state} 00000000:00000000 00:00000000 00000000 "
        f"{owner:5}        0 64170 1 0000000050b66ca4 20 4 30 10 -1"
        for number, (local, owner) in enumerate(rows.items())
    ]
    path = directory / "tcp"
    path.write_text("\n".join(["  sl  local_address rem_address   st", *lines, ""]))
    return (path, directory / "nothing")


async def test_a_door_gives_a_code_to_who_has_the_token_and_takes_it_once(tmp_path: Path) -> None:
    async with (
        door({}, tmp_path) as opened,
        httpx2.AsyncClient(base_url=opened.origin, trust_env=False) as http,
    ):
        stranger = await http.post(CODE)
        code = (await http.post(CODE, headers=opened.credentials)).json()["code"]
        shown = {"aggregator-code": code}
        elsewhere = await http.post(EXCHANGE, headers={**shown, "origin": "http://evil.example"})
        first = await http.post(EXCHANGE, headers=shown)
        second = await http.post(EXCHANGE, headers=shown)

    assert (stranger.status_code, elsewhere.status_code) == (401, 403)
    assert first.json() == {"token": opened.token}
    assert first.headers["cache-control"] == "no-store"
    assert second.status_code == 403
    assert opened.token not in second.text


async def test_a_code_holds_for_a_minute() -> None:
    now = [0.0]
    browser = Browser(Codes(lambda: now[0], ()))
    early, late = await browser.give(), await browser.give()
    now[0] = LIFE
    assert (await browser.show(early)).json() == {"token": TOKEN}
    now[0] = LIFE + 0.1
    assert (await browser.show(late)).status_code == 403


async def test_guesses_and_several_codes_at_once_are_refused() -> None:
    browser = Browser(Codes(tables=()))
    code = await browser.give()
    for wrong in ((), ("",), (code[:-1],), (code, code)):
        assert (await browser.show(*wrong)).status_code == 403
    assert (await browser.show(code)).status_code == 200


async def test_only_so_many_codes_are_kept() -> None:
    browser = Browser(Codes(tables=()))
    given = [await browser.give() for _ in range(MAX_CODES + 1)]
    answers = [(await browser.show(code)).status_code for code in given]
    assert answers == [403] + [200] * MAX_CODES


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1", "0100007F:1388"),
        ("::ffff:127.0.0.1", "0100007F:1388"),
        ("::1", "00000000000000000000000001000000:1388"),
    ],
)
async def test_another_user_of_the_machine_cannot_use_a_code(
    host: str, local: str, tmp_path: Path
) -> None:
    theirs = table(tmp_path, {local: SOMEBODY_ELSE, "0200007F:1388": os.getuid()})
    browser = Browser(codes := Codes(tables=theirs), host)
    code = await browser.give()
    refused = await browser.show(code)
    # What has ended says nothing of who it was.
    table(tmp_path, {local: SOMEBODY_ELSE}, state="06")
    ours = await Browser(codes, host).show(code)

    assert refused.status_code == 403
    assert TOKEN not in refused.text
    assert ours.json() == {"token": TOKEN}


@pytest.mark.skipif(not TABLES[0].exists(), reason="the system does not tell whose connections are")
async def test_the_system_tells_whose_a_connection_is() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(server.getsockname()) as ours:
            browser = Browser(Codes(), *ours.getsockname())
            answer = await browser.show(await browser.give())

    assert answer.json() == {"token": TOKEN}
