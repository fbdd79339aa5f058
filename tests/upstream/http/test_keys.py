"""Tokens with names: what is kept of them, what they open, and when they no longer do."""

from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import httpx2
import mcp_types as types
import pytest
from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION

from aggregator.config import Settings
from aggregator.config.profile import Profile
from aggregator.upstream.http.binding import BindingError
from aggregator.upstream.http.keys import Keys, Ring, digest_of
from tests.loopback.door import NO_CERTIFICATES, Open, door
from tests.patience import PATIENCE
from tests.peers import Peer, connect_to, ready

LISTEN = "subscriptions/listen"
CONFIG = "/etc/servers.yaml"
UNAUTHORIZED = 401
PROFILES = Settings(
    surface="full",
    profiles={"reading": Profile("reading", deny=("delete",)), "wide": Profile("wide")},
)


@pytest.fixture
def ring(tmp_path: Path) -> Ring:
    return Ring(tmp_path / "state" / "http-tokens.json", CONFIG)


def test_of_a_token_only_a_digest_is_kept_and_for_its_owner_alone(ring: Ring) -> None:
    token = ring.add("anna", "reading", None)

    kept = ring.path.read_text(encoding="utf-8")
    assert token not in kept
    assert token.removeprefix("agg_") not in kept
    assert digest_of(token) in kept
    assert ring.path.stat().st_mode & 0o777 == 0o600
    assert [(each.name, each.profile) for each in ring.tokens()] == [("anna", "reading")]


def test_there_is_one_of_a_name_and_it_can_be_revoked(ring: Ring) -> None:
    ring.add("anna", None, None)

    with pytest.raises(BindingError, match="there is a token `anna` already"):
        ring.add("anna", None, None)
    assert ring.revoke("anna")
    assert not ring.revoke("anna")
    assert ring.tokens() == ()


def test_what_opens_one_configuration_does_not_open_another(ring: Ring) -> None:
    token = ring.add("anna", None, None)
    other = Ring(ring.path, "/etc/other.yaml")
    other.add("bert", None, None)

    assert Keys(ring).known(token) is not None
    assert Keys(other).known(token) is None
    assert [each.name for each in ring.tokens()] == ["anna"]


def test_a_token_opens_until_it_expires(ring: Ring) -> None:
    time = 100.0
    token = ring.add("anna", None, 200.0)
    keys = Keys(ring, clock=lambda: time)

    assert keys.known(token) is not None
    assert keys.valid == {digest_of(token)}
    time = 200.0
    assert keys.known(token) is None
    assert keys.valid == frozenset()


def test_what_is_nearly_a_token_opens_nothing(ring: Ring) -> None:
    token = ring.add("anna", None, None)
    keys = Keys(ring)

    wrong = ("", token[:-1], f"{token}x", token.upper(), digest_of(token), "agg_", "\udcff", "é")
    assert [each for each in wrong if keys.known(each)] == []


def test_an_edit_of_the_file_is_noticed(ring: Ring) -> None:
    keys = Keys(ring)
    token = ring.add("anna", None, None)
    assert keys.known(token) is None
    keys.look()
    assert keys.known(token) is not None
    ring.revoke("anna")
    keys.look()
    assert keys.known(token) is None


@pytest.mark.parametrize(
    "content",
    ["{", "[]", f'{{"{CONFIG}": [1]}}', f'{{"{CONFIG}": [{{"name": "a", "digest": 1}}]}}'],
)
def test_a_file_that_cannot_be_read_opens_nothing(ring: Ring, content: str) -> None:
    token = ring.add("anna", None, None)
    keys = Keys(ring)
    ring.path.write_text(content, encoding="utf-8")
    keys.look()

    assert keys.known(token) is None


def test_a_file_that_others_can_read_opens_nothing(ring: Ring) -> None:
    token = ring.add("anna", None, None)
    ring.path.chmod(0o644)

    assert Keys(ring).known(token) is None
    with pytest.raises(BindingError, match="can be read by others"):
        ring.tokens()


def request(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


HELLO = request(
    "initialize",
    protocolVersion=LATEST_HANDSHAKE_VERSION,
    capabilities={},
    clientInfo={"name": "one", "version": "1"},
)


def client(token: str) -> httpx2.AsyncClient:
    headers = {
        "authorization": f"Bearer {token}",
        "accept": "application/json, text/event-stream",
    }
    return httpx2.AsyncClient(
        headers=headers, timeout=PATIENCE, trust_env=False, verify=NO_CERTIFICATES
    )


async def begun(http: httpx2.AsyncClient, url: str) -> dict[str, str]:
    answer = await http.post(url, json=HELLO)
    assert answer.status_code == 200
    session = {"mcp-session-id": answer.headers["mcp-session-id"]}
    told = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    await http.post(url, json=told, headers=session)
    return session


async def listed(http: httpx2.AsyncClient, url: str, session: dict[str, str]) -> list[str]:
    answer = await http.post(url, json=request("tools/list"), headers=session)
    return [each["name"] for each in answer.json()["result"]["tools"]]


async def status(http: httpx2.AsyncClient, opened: Open, path: str) -> int:
    return (await http.post(f"{opened.origin}{path}", json=HELLO)).status_code


@pytest.mark.anyio
async def test_who_has_a_token_sees_what_it_shows(ring: Ring, tmp_path: Path) -> None:
    narrow, wide = ring.add("narrow", "reading", None), ring.add("wide", None, None)
    servers = {"notes": connect_to(Peer("read", "delete"))}
    async with door(servers, tmp_path, PROFILES, keys=Keys(ring)) as opened:
        await ready(opened.upstream)
        found: list[list[str]] = []
        for token in (opened.token, wide, narrow):
            async with client(token) as http:
                found.append(await listed(http, opened.url, await begun(http, opened.url)))
        async with client(narrow) as http:
            paths = ("/mcp", "/mcp/reading", "/mcp/wide")
            codes = [await status(http, opened, path) for path in paths]
            of_all = [
                (await http.get(f"{opened.origin}{path}")).status_code
                for path in ("/metrics", "/activity", "/stats")
            ]

    assert found == [["notes__read", "notes__delete"]] * 2 + [["notes__read"]]
    assert codes == [200, 200, 404]
    assert of_all == [404] * 3


@pytest.mark.anyio
async def test_a_session_is_of_who_has_opened_it(ring: Ring, tmp_path: Path) -> None:
    one, other = ring.add("one", None, None), ring.add("other", None, None)
    async with door({}, tmp_path, keys=Keys(ring)) as opened:
        async with client(one) as http:
            session = await begun(http, opened.url)
        codes: list[int] = []
        for token in (other, opened.token, one):
            async with client(token) as http:
                answer = await http.post(opened.url, json=request("ping"), headers=session)
                codes.append(answer.status_code)

    assert codes == [404, 404, 200]


@pytest.mark.anyio
async def test_a_token_that_is_revoked_ends_its_sessions_and_no_others(
    ring: Ring, tmp_path: Path
) -> None:
    gone, stays = ring.add("gone", None, None), ring.add("stays", None, None)
    async with (
        door({}, tmp_path, keys=Keys(ring)) as opened,
        client(gone) as leaving,
        client(stays) as staying,
    ):
        session = await begun(leaving, opened.url)
        kept = await begun(staying, opened.url)
        async with leaving.stream("GET", opened.url, headers=session) as stream:
            ring.revoke("gone")
            with anyio.fail_after(PATIENCE):
                # What it listens to ends by itself.
                async for _ in stream.aiter_bytes():
                    pass
        refused = await leaving.post(opened.url, json=request("ping"), headers=session)
        answered = await staying.post(opened.url, json=request("ping"), headers=kept)

    assert stream.status_code == 200
    assert refused.status_code == 401
    assert answered.status_code == 200


@pytest.mark.anyio
async def test_who_listens_without_a_session_is_hung_up_on_when_the_token_is_revoked(
    ring: Ring, tmp_path: Path
) -> None:
    token = ring.add("gone", None, None)
    meta = {
        types.PROTOCOL_VERSION_META_KEY: LATEST_MODERN_VERSION,
        types.CLIENT_INFO_META_KEY: {"name": "one", "version": "1"},
        types.CLIENT_CAPABILITIES_META_KEY: {},
    }
    headers = {"mcp-protocol-version": LATEST_MODERN_VERSION, "mcp-method": LISTEN}
    asked = request(LISTEN, notifications={"toolsListChanged": True}, _meta=meta)
    async with door({}, tmp_path, keys=Keys(ring)) as opened, client(token) as http:
        async with http.stream("POST", opened.url, json=asked, headers=headers) as stream:
            heard = stream.aiter_bytes()
            await anext(heard)
            ring.revoke("gone")
            with anyio.fail_after(PATIENCE), suppress(httpx2.RemoteProtocolError):
                async for _ in heard:
                    pass
        again = await http.post(opened.url, json=asked, headers=headers)

    assert stream.status_code == 200
    assert again.status_code == 401


@pytest.mark.anyio
async def test_what_arrives_after_its_token_was_revoked_is_not_answered(
    ring: Ring, tmp_path: Path
) -> None:
    slow, stays = ring.add("slow", None, None), ring.add("stays", None, None)

    async def body() -> AsyncGenerator[bytes, None]:
        yield b'{"jsonrpc": "2.0", "id": 1, '
        ring.revoke("slow")
        with anyio.fail_after(PATIENCE):
            while (await other.get(opened.url, headers=shown)).status_code != UNAUTHORIZED:  # noqa: ASYNC110 - nobody tells
                await anyio.sleep(0.05)
        # The rest comes once those who came in by it have been parted with.
        await anyio.sleep(0.1)
        yield b'"method": "initialize", "params": {}}'

    shown = {"authorization": f"Bearer {slow}"}
    headers = {"content-type": "application/json"}
    async with (
        door({}, tmp_path, keys=Keys(ring)) as opened,
        client(slow) as http,
        client(stays) as other,
    ):
        answer = await http.post(opened.url, content=body(), headers=headers)

    assert answer.status_code == UNAUTHORIZED
