"""Sessions of handshake clients: for one too many, the one that nobody uses is ended."""

from collections.abc import Mapping
from pathlib import Path

import httpx2
import pytest
from mcp_types.version import LATEST_HANDSHAKE_VERSION

from aggregator.upstream.http.sessions import Sessions
from tests.loopback.door import NO_CERTIFICATES, Open, door
from tests.patience import PATIENCE

pytestmark = pytest.mark.anyio

HELLO = {
    "protocolVersion": LATEST_HANDSHAKE_VERSION,
    "capabilities": {},
    "clientInfo": {"name": "one of many", "version": "1"},
}
SESSION = "mcp-session-id"


def http(opened: Open) -> httpx2.AsyncClient:
    headers = {**opened.credentials, "accept": "application/json, text/event-stream"}
    return httpx2.AsyncClient(
        headers=headers, timeout=PATIENCE, trust_env=False, verify=NO_CERTIFICATES
    )


async def begin(client: httpx2.AsyncClient, opened: Open) -> tuple[int, dict[str, str]]:
    """Open a session; return the status, and what later requests of it are sent with."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
    answer = await client.post(opened.url, json=message)
    return answer.status_code, {SESSION: answer.headers.get(SESSION, "")}


async def ping(client: httpx2.AsyncClient, opened: Open, session: Mapping[str, str]) -> int:
    message = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    return (await client.post(opened.url, json=message, headers=session)).status_code


async def test_for_one_too_many_the_longest_idle_is_ended(tmp_path: Path) -> None:
    async with door({}, tmp_path, max_sessions=2) as opened, http(opened) as client:
        _, first = await begin(client, opened)
        _, second = await begin(client, opened)
        assert await ping(client, opened, first) == 200
        status, third = await begin(client, opened)

        assert status == 200
        found = [await ping(client, opened, each) for each in (first, second, third)]

    assert found == [200, 404, 200]


async def test_one_that_listens_is_not_idle(tmp_path: Path) -> None:
    async with door({}, tmp_path, max_sessions=2) as opened, http(opened) as client:
        _, first = await begin(client, opened)
        _, second = await begin(client, opened)
        async with client.stream("GET", opened.url, headers=first) as stream:
            assert stream.status_code == 200
            assert (await begin(client, opened))[0] == 200
            found = [await ping(client, opened, each) for each in (first, second)]

    assert found == [200, 404]


async def test_one_that_its_client_ends_makes_room(tmp_path: Path) -> None:
    async with door({}, tmp_path, max_sessions=2) as opened, http(opened) as client:
        _, first = await begin(client, opened)
        _, second = await begin(client, opened)
        assert (await client.delete(opened.url, headers=second)).status_code == 200
        await begin(client, opened)

        assert await ping(client, opened, first) == 200


def test_one_is_busy_until_its_last_request_is_answered() -> None:
    sessions = Sessions()
    sessions.begin("a")
    sessions.begin("b")
    with sessions.used("a"):
        with sessions.used("a"):
            assert sessions.longest_idle == "b"
        assert sessions.longest_idle == "b"
        sessions.end("b")
        assert sessions.longest_idle is None
    assert (sessions.longest_idle, len(sessions)) == ("a", 1)


def test_one_that_nobody_knows_is_not_remembered() -> None:
    sessions = Sessions()
    with sessions.used("made up"):
        assert len(sessions) == 0
    assert len(sessions) == 0


def test_one_that_ends_while_it_is_used_stays_ended() -> None:
    sessions = Sessions()
    sessions.begin("a")
    with sessions.used("a"):
        sessions.end("a")
    assert len(sessions) == 0
