"""What each identity may ask: told to models in both eras, and to whoever does not listen."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from aggregator.config import Settings
from aggregator.config.http import CallLimits, Http
from aggregator.config.profile import Profile, for_others
from aggregator.errors import ERROR_META
from aggregator.records.events import CallEnded, Event
from aggregator.upstream.allowances import INSISTING
from aggregator.upstream.http.keys import Keys, Ring
from tests.loopback.door import NO_CERTIFICATES, Open, door
from tests.patience import PATIENCE
from tests.peers import ERAS, MODES, Era, Peer, connect_to, ready
from tests.upstream.http.issuer.issuing import Authority, limited, settings
from tests.upstream.http.test_keys import begun, client, request

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def calling(
    opened: Open, token: str, era: Era, path: str = ""
) -> AsyncGenerator[Client, None]:
    headers = {"authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(
            headers=headers, timeout=PATIENCE, trust_env=False, verify=NO_CERTIFICATES
        ) as http,
        Client(
            streamable_http_client(f"{opened.url}{path}", http_client=http), mode=MODES[era]
        ) as one,
    ):
        yield one


async def called(one: Client) -> dict[str, Any] | None:
    """Call a tool; return the facts of the refusal, if it was refused."""
    result = await one.call_tool("notes__read", {})
    assert isinstance(result, types.CallToolResult)
    if not result.is_error:
        return None
    assert "Nothing was run; wait" in str(result.content)
    return (result.meta or {})[ERROR_META]


@pytest.mark.parametrize("era", ERAS)
async def test_a_model_is_told_to_wait_and_its_connection_holds(era: Era, tmp_path: Path) -> None:
    peer, told = Peer("read"), list[Event]()
    async with Authority().served() as authority:
        made = settings(limited(authority.trusted(), per_minute=2))
        async with door({"notes": connect_to(peer)}, tmp_path, made) as opened:
            await ready(opened.upstream)
            with opened.upstream.fleet.stream.heard_by(told.append):
                async with (
                    calling(opened, authority.token(), era) as one,
                    # The same person with another program, and another person.
                    calling(opened, authority.token(client_id="other"), era) as same,
                    calling(opened, authority.token(sub="bert"), era) as other,
                ):
                    found = [await called(one), await called(same), await called(one)]
                    found += [await called(other)]
                    tools = await one.list_tools(cache_mode="refresh")
                    with pytest.raises(MCPError, match="2 calls in the last minute"):
                        await one.read_resource("note://1")

    assert [found[0], found[1], found[3]] == [None] * 3
    assert found[2] is not None
    assert found[2]["kind"] == "over-limit"
    assert 0 < found[2]["retryAfter"] <= 60
    assert [tool.name for tool in tools.tools] == ["notes__read"]
    ended = [each for each in told if isinstance(each, CallEnded)]
    assert [(each.origin.identity, each.outcome) for each in ended] == [
        ("anna", "ok"),
        ("anna", "ok"),
        ("anna", "over-limit"),
        ("bert", "ok"),
    ]
    assert {each.origin.issuer for each in ended} == {authority.issuer}
    assert {each.origin.profile for each in ended} == {for_others("reading")}


async def test_who_does_not_listen_is_turned_away_at_the_door_and_others_are_served(
    tmp_path: Path,
) -> None:
    ring = Ring(tmp_path / "tokens.json", "/etc/servers.yaml")
    wild, calm = ring.add("wild", None, None), ring.add("calm", None, None)
    peer, told = Peer("read"), list[Event]()
    made = settings(limited(Http(), per_minute=5))
    codes = list[int]()
    async with door({"notes": connect_to(peer)}, tmp_path, made, keys=Keys(ring)) as opened:
        await ready(opened.upstream)
        call = request("tools/call", name="notes__read", arguments={})
        with opened.upstream.fleet.stream.heard_by(told.append):
            async with client(wild) as one, client(calm) as other:
                session, own = await begun(one, opened.url), await begun(other, opened.url)

                async def flood() -> None:
                    for _ in range(25):
                        answer = await one.post(opened.url, json=call, headers=session)
                        codes.append(answer.status_code)
                        if answer.status_code == 429:
                            assert 0 < int(answer.headers["retry-after"]) <= 60

                async with anyio.create_task_group() as group:
                    for _ in range(4):
                        group.start_soon(flood)
                answered = await other.post(opened.url, json=call, headers=own)
                # Who is turned away may still listen, and leave.
                left = await one.delete(opened.url, headers=session)

    assert answered.json()["result"].get("isError") is not True
    assert left.status_code == 200
    # What a model could read, and what nobody reads.
    assert codes.count(200) <= 5 + INSISTING + 4
    assert codes.count(200) + codes.count(429) == 100
    ended = [each.origin.identity for each in told if isinstance(each, CallEnded)]
    reached = [each for each in told if isinstance(each, CallEnded) and each.outcome == "ok"]
    assert [each.origin.identity for each in reached] == ["wild"] * 5 + ["calm"]
    assert len(ended) == codes.count(200) + 1


@pytest.mark.parametrize("era", ERAS)
async def test_a_profile_has_limits_of_its_own(era: Era, tmp_path: Path) -> None:
    ring = Ring(tmp_path / "tokens.json", "/etc/servers.yaml")
    token = ring.add("anna", None, None)
    profiles = {"slow": Profile("slow", max_calls_per_minute=3)}
    http = Http(limits=CallLimits(per_minute=100))
    made = Settings(surface="full", profiles=profiles, http=http)
    servers = {"notes": connect_to(Peer("read"))}
    async with door(servers, tmp_path, made, keys=Keys(ring)) as opened:
        await ready(opened.upstream)
        async with calling(opened, token, era, "/slow") as one:
            found = [await called(one) for _ in range(4)]
        async with calling(opened, token, era) as one:
            wide = await called(one)
        async with opened.client(era) as one:
            operator = [await called(one) for _ in range(4)]

    assert found[:3] == [None] * 3
    assert found[3] is not None
    assert wide is None
    assert operator == [None] * 4


@pytest.mark.parametrize("era", ERAS)
async def test_calls_at_a_time_are_limited(era: Era, tmp_path: Path) -> None:
    ring = Ring(tmp_path / "tokens.json", "/etc/servers.yaml")
    token = ring.add("anna", None, None)
    peer, refused = Peer("read", "block"), list[dict[str, Any] | None]()
    made = settings(limited(Http(), in_flight=1))
    async with door({"notes": connect_to(peer)}, tmp_path, made, keys=Keys(ring)) as opened:
        await ready(opened.upstream)
        async with calling(opened, token, era) as one, anyio.create_task_group() as group:
            group.start_soon(one.call_tool, "notes__block")
            with anyio.fail_after(PATIENCE):
                await peer.blocked.wait()
            refused.append(await called(one))
            group.cancel_scope.cancel()

    assert refused == [{"kind": "over-limit", "retryAfter": 1}]
