"""Each identity has its share of sessions and of connections, and takes none from others."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import httpx2
import mcp_types as types
import pytest
from mcp_types.version import LATEST_MODERN_VERSION

from aggregator.upstream.http import serving
from aggregator.upstream.http.authenticated import Authenticated
from aggregator.upstream.http.keys import Keys, Ring
from aggregator.upstream.http.presence import Presence
from aggregator.upstream.http.sessions import Owner, Sessions
from tests.loopback.door import door
from tests.patience import PATIENCE
from tests.peers import Era
from tests.upstream.http.test_keys import HELLO, LISTEN, begun, client, request
from tests.upstream.http.test_sessions import Plain

META = {
    types.PROTOCOL_VERSION_META_KEY: LATEST_MODERN_VERSION,
    types.CLIENT_INFO_META_KEY: {"name": "one", "version": "1"},
    types.CLIENT_CAPABILITIES_META_KEY: {},
}
ASKED = request(LISTEN, notifications={"toolsListChanged": True}, _meta=META)


def modern(method: str) -> dict[str, str]:
    return {"mcp-protocol-version": LATEST_MODERN_VERSION, "mcp-method": method}


@pytest.fixture
def ring(tmp_path: Path) -> Ring:
    return Ring(tmp_path / "state" / "http-tokens.json", "/etc/servers.yaml")


@asynccontextmanager
async def listening(http: httpx2.AsyncClient, url: str, era: Era) -> AsyncGenerator[int, None]:
    """Listen to what changes, in a session of its own where there are some; give the status."""
    options: dict[str, Any] = {"json": ASKED, "headers": modern(LISTEN)}
    if era == "handshake":
        answer = await http.post(url, json=HELLO)
        if answer.status_code != 200:
            yield answer.status_code
            return
        options = {"headers": {"mcp-session-id": answer.headers["mcp-session-id"]}}
    method = "GET" if era == "handshake" else "POST"
    async with http.stream(method, url, **options) as stream:
        yield stream.status_code


@pytest.mark.anyio
@pytest.mark.usefixtures("parser")
async def test_who_listens_too_often_leaves_room_for_others(
    ring: Ring, tmp_path: Path, client_era: Era, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "MAX_CONNECTIONS", 12)
    greedy, other = ring.add("greedy", None, None), ring.add("other", None, None)
    async with (
        door({}, tmp_path, keys=Keys(ring)) as opened,
        client(greedy) as many,
        client(other) as one,
    ):
        async with AsyncExitStack() as streams:
            statuses = [
                await streams.enter_async_context(listening(many, opened.url, client_era))
                for _ in range(20)
            ]
            refused = await many.post(opened.url, json=HELLO)
            async with listening(one, opened.url, client_era) as heard:
                assert heard == 200
        with anyio.fail_after(PATIENCE):
            # What is closed is noticed in its own time.
            while (await many.post(opened.url, json=HELLO)).status_code != 200:
                await anyio.lowlevel.checkpoint()

    assert statuses == [200] * 3 + [429] * 17
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
    assert "3 requests and streams open" in refused.text


@pytest.mark.anyio
async def test_who_opens_many_sessions_loses_its_own(ring: Ring, tmp_path: Path) -> None:
    greedy, other = ring.add("greedy", None, None), ring.add("other", None, None)
    async with (
        door({}, tmp_path, max_sessions=8, keys=Keys(ring)) as opened,
        client(greedy) as many,
        client(other) as one,
    ):
        first, last = await begun(one, opened.url), await begun(many, opened.url)
        sessions = [await begun(many, opened.url) for _ in range(3)]
        ping = request("ping")
        found = [
            (await http.post(opened.url, json=ping, headers=each)).status_code
            for http, each in ((one, first), *((many, each) for each in (last, *sessions)))
        ]
        async with AsyncExitStack() as streams:
            for each in sessions[1:]:
                stream = many.stream("GET", opened.url, headers=each)
                await streams.enter_async_context(stream)
            refused = await many.post(opened.url, json=HELLO)
            answered = await one.post(opened.url, json=HELLO)

    assert found == [200, 404, 404, 200, 200]
    assert (refused.status_code, answered.status_code) == (429, 200)
    assert "your share of open sessions" in refused.json()["error"]["message"]


def test_sessions_are_counted_for_a_person_with_however_many_programs() -> None:
    sessions = Sessions[Plain](40)
    for number in range(10):
        session = Plain(str(number), f"program {number}")
        session.owner = Owner(None, f"program {number}", "anna")
        sessions.begin(session)

    assert sessions.has_its_share(Owner(None, "another program", "anna"))
    assert not sessions.has_its_share(Owner(None, "another program", "bert"))
    assert not sessions.has_its_share(Owner())


def test_connections_that_are_idle_go_for_those_that_are_not() -> None:
    left: list[str] = []
    authenticated = Authenticated(2)
    connections = {name: Presence(lambda name=name: left.append(name)) for name in "abc"}
    for name in "ab":
        with authenticated.taken("anna", connections[name]) as has_room:
            assert has_room
    with (
        authenticated.taken("anna", connections["a"]),
        authenticated.taken("anna", connections["c"]),
    ):
        assert left == ["b"]
        with authenticated.taken("anna", None) as has_room:
            assert not has_room
        with authenticated.taken("bert", None) as has_room:
            assert has_room


def test_connections_of_gateways_and_those_that_are_closed_count_for_nobody() -> None:
    left: list[str] = []
    authenticated = Authenticated(1)
    with authenticated.taken("anna", None):
        pass
    gone = Presence(lambda: left.append("gone"))
    with authenticated.taken("anna", gone):
        pass
    gone.go()
    with authenticated.taken("anna", Presence(lambda: left.append("next"))) as has_room:
        assert has_room
    # What another asks on the same connection is that one's.
    shared = Presence(lambda: left.append("shared"))
    for holder in ("bert", "carl"):
        with authenticated.taken(holder, shared):
            pass
    with authenticated.taken("bert", None):
        pass

    assert left == []


def test_who_runs_us_may_have_all_there_are() -> None:
    authenticated = Authenticated(1)
    with ExitStack() as stack:
        assert all(stack.enter_context(authenticated.taken("", Presence())) for _ in range(9))
