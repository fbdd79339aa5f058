"""A login in use: a real authorisation server, a real server of either era, and a client."""

import json
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import mcp_types as types
import pytest
from mcp import Client

from aggregator.catalog import Failed, Ready
from aggregator.downstream.http.reach import reach
from tests.downstream.login.authority import Authority, World, world
from tests.downstream.login.logins import WEB, had, logins_in, server_at
from tests.patience import PATIENCE
from tests.peers import (
    Context,
    Era,
    Peer,
    aggregating,
    connect_to,
    error_of,
    ready,
    text_of,
    until,
    visiting,
)

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def client_of(there: World, directory: Path, era: Era) -> AsyncGenerator[Client, None]:
    """Be a client of the aggregator in front of a server that wants a login."""
    connect = reach(server_at(there.url), logins_in(directory))
    async with aggregating({"web": connect}) as upstream:
        await ready(upstream)
        async with visiting(upstream, era) as client:
            yield client


async def test_a_call_goes_through_with_the_login_that_is_kept(
    tmp_path: Path, server_era: Era, client_era: Era
) -> None:
    async with world(era=server_era) as there:
        had(there.authority, logins_in(tmp_path).file(server_at(there.url)), time.time)
        async with client_of(there, tmp_path, client_era) as client:
            assert text_of(await client.call_tool("web__go", {})) == "go: {}"


async def test_access_that_is_taken_back_is_had_anew_without_anybody_noticing(
    tmp_path: Path, server_era: Era
) -> None:
    async with world(era=server_era) as there:
        had(there.authority, logins_in(tmp_path).file(server_at(there.url)), time.time)
        async with client_of(there, tmp_path, "modern") as client:
            there.authority.forget_access()
            assert text_of(await client.call_tool("web__go", {})) == "go: {}"
        assert (there.authority.refreshed, there.authority.reused) == (1, 0)
        assert there.authority.forms[0]["resource"] == there.url


async def test_a_server_that_wants_a_login_says_so_and_comes_when_there_is_one(
    tmp_path: Path, server_era: Era, client_era: Era
) -> None:
    async with world(era=server_era) as there:
        logins = logins_in(tmp_path)
        connect = reach(server_at(there.url), logins)
        command = f"aggregator login web --config {tmp_path}/servers.yaml"
        async with aggregating({"web": connect}) as upstream:
            await ready(upstream)
            fleet = upstream.fleet
            state = fleet.now.catalog.servers[WEB]
            assert isinstance(state, Failed)
            assert state.login == command
            assert state.reason == f"its user has to log in: run `{command}`"
            async with visiting(upstream, client_era) as client:
                result = await client.call_tool("web__go", {})
                assert text_of(result) == (
                    f"The server `web` is not connected: its user has to log in: run `{command}`. "
                    "The tool was not run; use another tool, or try again once your user has "
                    "logged in"
                )
                assert error_of(result) == {
                    "kind": "needs-login",
                    "server": "web",
                    "login": {"command": command},
                }

                had(there.authority, logins.file(server_at(there.url)), time.time)
                await until(
                    lambda: isinstance(fleet.now.catalog.servers[WEB], Ready),
                    lambda: fleet.changed,
                )
                assert text_of(await client.call_tool("web__go", {})) == "go: {}"


async def test_a_login_that_is_revoked_while_in_use_is_told_to_the_call(
    tmp_path: Path, server_era: Era
) -> None:
    async with world(era=server_era) as there:
        logins = logins_in(tmp_path)
        connect = reach(server_at(there.url), logins)
        had(there.authority, logins.file(server_at(there.url)), time.time)
        async with aggregating({"web": connect}) as upstream:
            await ready(upstream)
            async with visiting(upstream, "handshake") as client:
                there.authority.revoke_all()
                result = await client.call_tool("web__go", {})
                assert "its login has expired or was revoked (invalid_grant)" in text_of(result)
                assert "was not run" in text_of(result)
                assert error_of(result)["kind"] == "needs-login"
                fleet = upstream.fleet
                await until(
                    lambda: isinstance(fleet.now.catalog.servers[WEB], Failed),
                    lambda: fleet.changed,
                )
                had(there.authority, logins.file(server_at(there.url)), time.time)
                assert text_of(await client.call_tool("web__go", {})) == "go: {}"


async def test_a_call_that_needs_more_rights_fails_alone(tmp_path: Path, server_era: Era) -> None:
    async with world(Authority(demands="admin"), era=server_era) as there:
        had(there.authority, logins_in(tmp_path).file(server_at(there.url)), time.time)
        async with client_of(there, tmp_path, "modern") as client:
            text = text_of(await client.call_tool("web__go", {}))
            assert 'it wants more rights for this (scope "admin")' in text
            assert f"aggregator login web --scope admin --config {tmp_path}/servers.yaml" in text
            there.authority.demands = ""
            assert text_of(await client.call_tool("web__go", {})) == "go: {}"


class Meeting(Peer):
    """Answers no call before so many are under way."""

    def __init__(self, size: int) -> None:
        super().__init__("go")
        self._size = size
        self._all_here = anyio.Event()

    async def _call(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        result = await super()._call(ctx, params)
        if len(self.calls) == self._size:
            self._all_here.set()
        await self._all_here.wait()
        return result


async def test_calls_at_the_same_time_do_not_wait_for_one_another(tmp_path: Path) -> None:
    async with world(peer=Meeting(5)) as there:
        had(there.authority, logins_in(tmp_path).file(server_at(there.url)), time.time)
        async with client_of(there, tmp_path, "modern") as client:
            with anyio.fail_after(PATIENCE):
                async with anyio.create_task_group() as group:
                    for _ in range(5):
                        group.start_soon(client.call_tool, "web__go")


async def test_a_search_says_which_command_helps(tmp_path: Path, client_era: Era) -> None:
    async with world() as there:
        connect = reach(server_at(there.url), logins_in(tmp_path))
        command = f"aggregator login web --config {tmp_path}/servers.yaml"
        async with aggregating({"web": connect, "near": connect_to(Peer("near"))}) as upstream:
            await ready(upstream)
            async with visiting(upstream, client_era) as client:
                nothing = await client.call_tool("ToolSearch", {"query": "xylophone"})
                sentence = (
                    "web needs its user to log in, so its tools are not here. "
                    f"Ask them to run: {command}"
                )
                assert sentence in text_of(nothing)
                (told,) = (nothing.meta or {})["aggregator/search"]["failed_mcp_servers"]
                assert (told["state"], told["login"]) == ("needs login", {"command": command})
                found = await client.call_tool("ToolSearch", {"query": "near"})
                assert "web needs its user to log in" in text_of(found)
                assert sentence not in text_of(found)
                named = await client.call_tool("ToolSearch", {"query": "server:web"})
                assert sentence in text_of(named)
                overview = await client.call_tool("ToolSearch", {"query": ""})
                assert "- web (needs login)" in text_of(overview)
                document = (await client.read_resource("catalog://servers")).contents[0]
                assert isinstance(document, types.TextResourceContents)
                (state, _other) = json.loads(document.text)["servers"]
                assert (state["state"], state["login"]) == ("needs login", {"command": command})
