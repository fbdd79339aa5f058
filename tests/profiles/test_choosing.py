"""Which profile a client has: by its name, by its address, by what it was started with."""

from pathlib import Path

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import Implementation
from mcp_types.version import LATEST_HANDSHAKE_VERSION

from aggregator.config import Settings
from aggregator.config.profile import Profile
from aggregator.upstream.visitor import Visitor
from tests.loopback.door import NO_CERTIFICATES, Open, door
from tests.patience import PATIENCE
from tests.peers import ERAS, MODES, Era, Peer, aggregating, connect_to, ready, visiting

pytestmark = pytest.mark.anyio

FULL = Settings(
    surface="full",
    profiles={
        "reading": Profile("reading", deny=("delete",), clients=("reader",)),
        "nothing": Profile("nothing", servers=()),
    },
)
ALL, SOME = ["notes__read", "notes__delete"], ["notes__read"]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def names(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools]


@pytest.mark.parametrize("era", ERAS)
async def test_by_the_name_that_a_client_gives_itself(era: Era) -> None:
    async with aggregating({"notes": connect_to(Peer("read", "delete"))}, FULL) as upstream:
        await ready(upstream)
        found: list[list[str]] = []
        for name in ("reader", "writer"):
            info = Implementation(name=name, version="1")
            visitor = Visitor(name, "/", 1)
            async with visiting(upstream, era, visitor, client_info=info) as client:
                found.append(await names(client))

    assert found == [SOME, ALL]


@pytest.mark.parametrize("era", ERAS)
async def test_what_it_was_started_with_comes_before_its_name(era: Era) -> None:
    info = Implementation(name="reader", version="1")
    async with aggregating({"notes": connect_to(Peer("read", "delete"))}, FULL) as upstream:
        await ready(upstream)
        visitor = Visitor("one", "/", 1, "nothing")
        async with visiting(upstream, era, visitor, client_info=info) as client:
            found = await names(client)

    assert found == []


def http(opened: Open) -> httpx2.AsyncClient:
    headers = {**opened.credentials, "accept": "application/json, text/event-stream"}
    return httpx2.AsyncClient(
        headers=headers, timeout=PATIENCE, trust_env=False, verify=NO_CERTIFICATES
    )


@pytest.mark.parametrize("era", ERAS)
async def test_by_the_address_that_a_client_comes_to(era: Era, tmp_path: Path) -> None:
    found: list[list[str]] = []
    async with door({"notes": connect_to(Peer("read", "delete"))}, tmp_path, FULL) as opened:
        await ready(opened.upstream)
        for path in ("", "/reading", "/nothing"):
            async with (
                http(opened) as transport,
                Client(
                    streamable_http_client(f"{opened.url}{path}", http_client=transport),
                    mode=MODES[era],
                ) as client,
            ):
                found.append(await names(client))

    assert found == [ALL, SOME, []]


HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": LATEST_HANDSHAKE_VERSION,
        "capabilities": {},
        "clientInfo": {"name": "one", "version": "1"},
    },
}
PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}


async def test_there_is_no_address_of_what_is_no_profile(tmp_path: Path) -> None:
    async with door({}, tmp_path, FULL) as opened, http(opened) as client:
        paths = ("/mcp/reading", "/mcp/writing", "/mcp/", "/mcp/reading/", "/mcp/reading/x")
        answers = [await client.post(f"{opened.origin}{path}", json=HELLO) for path in paths]

    assert [each.status_code for each in answers] == [200, 404, 404, 404, 404]


async def test_a_session_belongs_to_the_address_it_was_opened_at(tmp_path: Path) -> None:
    async with door({}, tmp_path, FULL) as opened, http(opened) as client:
        answer = await client.post(f"{opened.url}/reading", json=HELLO)
        session = {"mcp-session-id": answer.headers["mcp-session-id"]}
        urls = (opened.url, f"{opened.url}/nothing", f"{opened.url}/reading")
        found = [(await client.post(url, json=PING, headers=session)).status_code for url in urls]

    assert found == [404, 404, 200]


async def test_where_all_have_one_profile_there_is_no_other(tmp_path: Path) -> None:
    async with door({}, tmp_path, FULL, profile="reading") as opened, http(opened) as client:
        paths = ("/mcp", "/mcp/reading", "/mcp/nothing", "/metrics")
        answers = [await client.post(f"{opened.origin}{path}", json=HELLO) for path in paths]

    assert [each.status_code for each in answers] == [200, 200, 404, 404]
