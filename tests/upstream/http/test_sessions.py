"""Sessions of handshake clients: for one too many, the one that nobody uses is ended."""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import httpx2
import pytest
from mcp_types.version import LATEST_HANDSHAKE_VERSION

from aggregator.upstream.http.sessions import MAX_OPENING, Owner, Sessions
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


class Plain:
    """A session without anything in it."""

    def __init__(self, key: str, grant: str = "") -> None:
        self.key = key
        self.owner = Owner(None, grant, grant)
        self.uses = 0
        self.has_ended = False

    @property
    def is_idle(self) -> bool:
        return not self.uses

    def use(self) -> None:
        self.uses += 1

    def let_go(self) -> None:
        self.uses -= 1

    def end(self) -> None:
        self.has_ended = True


def test_one_is_busy_until_its_last_request_is_answered() -> None:
    sessions = Sessions[Plain](2)
    one, other = Plain("a"), Plain("b")
    sessions.begin(one)
    sessions.begin(other)
    with sessions.used(one):
        with sessions.used(one):
            pass
        assert sessions.make_room()
        assert (one.has_ended, other.has_ended, len(sessions)) == (False, True, 1)
    sessions.begin(Plain("c"))
    assert sessions.make_room()
    assert (one.has_ended, len(sessions)) == (True, 1)


def test_who_opens_many_takes_none_from_others() -> None:
    sessions = Sessions[Plain](4)
    anna, *others = (Plain(str(number), grant) for number, grant in enumerate("abbb"))
    for each in (anna, *others):
        sessions.begin(each)
    for number in range(10, 30):
        assert sessions.make_room()
        sessions.begin(Plain(str(number), "b"))

    assert not anna.has_ended
    assert [each.has_ended for each in others] == [True] * 3
    assert len(sessions) == 4


def test_there_is_an_end_to_those_that_are_all_in_use() -> None:
    sessions = Sessions[Plain](1)
    with ExitStack() as stack:
        for number in range(1 + MAX_OPENING):
            assert sessions.make_room()
            session = Plain(str(number))
            sessions.begin(session)
            stack.enter_context(sessions.used(session))
        assert not sessions.make_room()


def test_one_that_ends_while_it_is_used_stays_ended() -> None:
    sessions = Sessions[Plain](1)
    one = Plain("a")
    sessions.begin(one)
    with sessions.used(one):
        sessions.end(one)
        assert sessions.get("a") is None
    assert len(sessions) == 0
    assert one.has_ended
