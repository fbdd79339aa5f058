"""Results that are kept for clients over HTTP: for the session, or for who comes from there."""

from pathlib import Path

import httpx2
import pytest

from tests.loopback.door import NO_CERTIFICATES, door
from tests.patience import PATIENCE
from tests.peers import Era, connect_to, error_of, ready, until
from tests.stories.test_large_results import (
    CLAUDE,
    GUARDED,
    LARGE,
    Logs,
    calls_in,
    facts,
    read_all,
)
from tests.upstream.http.test_endpoint import call
from tests.upstream.http.test_sessions import begin, http

pytestmark = pytest.mark.anyio


async def test_a_result_is_for_who_was_given_it_alone(client_era: Era, tmp_path: Path) -> None:
    async with door({"logs": connect_to(Logs())}, tmp_path, GUARDED) as opened:
        await ready(opened.upstream)
        async with opened.client(client_era) as client:
            shown = await client.call_tool("logs__read", {})
            (name, arguments), _find = calls_in(shown)

            assert await read_all(client, (name, arguments)) == LARGE[:400_000]
            async with opened.client(client_era, client_info=CLAUDE) as other:
                refused = await other.call_tool(name, arguments)
                assert error_of(refused)["kind"] == "unknown-result"
            assert len(opened.upstream.kept) == 1
        if client_era == "handshake":
            kept = opened.upstream.kept
            await until(lambda: not len(kept), lambda: kept.changed)


async def test_it_is_out_of_reach_without_its_session(tmp_path: Path) -> None:
    async with door({"logs": connect_to(Logs())}, tmp_path, GUARDED) as opened:
        await ready(opened.upstream)
        async with opened.client("handshake") as client, opened.client("modern") as other:
            shown = await client.call_tool("logs__read", {})
            (name, arguments), _find = calls_in(shown)

            assert error_of(await other.call_tool(name, arguments))["kind"] == "unknown-result"
            async with httpx2.AsyncClient(
                timeout=PATIENCE, trust_env=False, verify=NO_CERTIFICATES
            ) as stranger:
                answer = await stranger.post(opened.url, json={"uri": facts(shown)["uri"]})
                assert answer.status_code == 401


async def test_nothing_is_left_of_who_never_said_that_it_is_ready(tmp_path: Path) -> None:
    async with door({"logs": connect_to(Logs())}, tmp_path, GUARDED) as opened:
        await ready(opened.upstream)
        kept = opened.upstream.kept
        async with http(opened) as client:
            _, session = await begin(client, opened)
            await client.post(opened.url, json=call("logs__read"), headers=session)
            assert len(kept) == 1
            await client.delete(opened.url, headers=session)
        await until(lambda: not len(kept), lambda: kept.changed)
