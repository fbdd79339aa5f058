"""Processes that clients have to themselves, counted: begun by a call, ended with the session."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION

from tests.census import Census, census_fixture, descendants
from tests.loopback.door import NO_CERTIFICATES, Open, door
from tests.patience import PATIENCE
from tests.peers import Peer, afresh
from tests.processes.driver import ROOT, faulty
from tests.processes.test_lazy_start import until
from tests.upstream.http.test_sessions import SESSION, begin, http

__all__ = ["census_fixture"]

pytestmark = pytest.mark.anyio

TOKEN = "own" * 16
ACCEPT = "application/json, text/event-stream"


def running() -> set[int]:
    """Return the servers that run now."""
    return {each.pid for each in descendants(os.getpid()) if "faulty.py" in each.command}


async def until_running(number: int) -> set[int]:
    """Wait until so many servers run."""

    async def are_so_many() -> bool:
        return len(running()) == number

    await until(are_so_many)
    return running()


class Visitor:
    """A client that speaks bare HTTP."""

    def __init__(self, url: str, name: str = "bare") -> None:
        headers = {"authorization": f"Bearer {TOKEN}", "accept": ACCEPT}
        self._http = httpx2.AsyncClient(
            headers=headers, timeout=PATIENCE, trust_env=False, verify=NO_CERTIFICATES
        )
        self._url = url
        self._info = {"name": name, "version": "1"}
        self._session: dict[str, str] = {}

    async def open(self) -> "Visitor":
        """Begin a session."""
        hello = {
            "protocolVersion": LATEST_HANDSHAKE_VERSION,
            "capabilities": {},
            "clientInfo": self._info,
        }
        answer = await self._post({"id": 1, "method": "initialize", "params": hello})
        self._session = {SESSION: answer.headers[SESSION]}
        await self._post({"method": "notifications/initialized"})
        return self

    async def call(self, tool: str = "pad__echo", **arguments: Any) -> str:
        params: dict[str, Any] = {"name": tool, "arguments": arguments or {"text": "x"}}
        headers: dict[str, str] = {}
        if not self._session:
            params["_meta"] = {
                "io.modelcontextprotocol/protocolVersion": LATEST_MODERN_VERSION,
                "io.modelcontextprotocol/clientInfo": self._info,
                "io.modelcontextprotocol/clientCapabilities": {},
            }
            headers = {
                "mcp-protocol-version": LATEST_MODERN_VERSION,
                "mcp-method": "tools/call",
                "mcp-name": tool,
            }
        asked = {"id": 2, "method": "tools/call", "params": params}
        return (await self._post(asked, headers)).text

    async def end_session(self) -> None:
        answer = await self._http.delete(self._url, headers=self._session)
        assert answer.status_code == 200

    async def close(self) -> None:
        """Go away without a word."""
        await self._http.aclose()

    async def _post(
        self, message: Mapping[str, Any], headers: Mapping[str, str] | None = None
    ) -> httpx2.Response:
        carried = {**self._session, **(headers or {})}
        return await self._http.post(self._url, json={"jsonrpc": "2.0", **message}, headers=carried)


@asynccontextmanager
async def serving(directory: Path) -> AsyncGenerator[tuple[subprocess.Popen[str], str], None]:
    """Run the aggregator behind its door, in front of one server that each client has."""
    config = directory / "servers.yaml"
    config.write_text(json.dumps({"servers": {"pad": {**faulty(), "perClient": True}}}), "utf-8")
    process = subprocess.Popen(  # noqa: ASYNC220 - it only starts it
        [sys.executable, "-m", "aggregator", "serve", "--http", "0", "--config", str(config)],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "XDG_STATE_HOME": str(directory), "AGGREGATOR_TOKEN": TOKEN},
    )
    with process:
        try:
            assert process.stderr is not None
            url = re.findall(r"http://\S+", process.stderr.readline())[0].rstrip(".,;`")
            yield process, url
        finally:
            process.kill()


@pytest.mark.slow
async def test_each_session_has_a_process_that_ends_with_it(tmp_path: Path, census: Census) -> None:
    assert census.living() == set()
    async with serving(tmp_path) as (process, url):
        one, two = await Visitor(url).open(), await Visitor(url).open()
        assert '"text":"x"' in (await one.call()).replace(" ", "")
        first = await until_running(1)
        await two.call()
        both = await until_running(2)
        await one.call()
        assert running() == both

        await one.end_session()
        assert await until_running(1) == both - first
        process.send_signal(signal.SIGTERM)
        await until_running(0)
        for visitor in (one, two):
            await visitor.close()


@pytest.mark.slow
async def test_none_is_left_when_we_are_killed(tmp_path: Path, census: Census) -> None:
    assert census.living() == set()
    async with serving(tmp_path) as (process, url):
        visitors = [await Visitor(url).open() for _ in range(3)]
        for visitor in visitors:
            await visitor.call()
        await until_running(3)
        process.kill()
        await until_running(0)
        for visitor in visitors:
            await visitor.close()


@pytest.mark.slow
async def test_who_has_no_session_is_known_by_its_name(tmp_path: Path, census: Census) -> None:
    assert census.living() == set()
    async with serving(tmp_path) as (process, url):
        one, other = Visitor(url, "one"), Visitor(url, "other")
        await one.call()
        first = await until_running(1)
        await other.call()
        both = await until_running(2)
        await one.call()
        assert running() == both > first
        process.send_signal(signal.SIGTERM)
        await until_running(0)
        for visitor in (one, other):
            await visitor.close()


async def until_taken(opened: Open, number: int) -> None:
    """Wait until so many clients have a process."""

    async def are_so_many() -> bool:
        return len(list(opened.upstream.fleet.client_processes)) == number

    await until(are_so_many)


async def test_a_session_that_makes_room_for_another_takes_its_process_along(
    tmp_path: Path,
) -> None:
    pads = {"pad": afresh(lambda: Peer("do"))}
    async with (
        door(pads, tmp_path, max_sessions=2, is_shared=True, pad={"per_client": True}) as opened,
        http(opened) as client,
    ):
        call: dict[str, Any] = {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "tools/call",
            "params": {"name": "pad__do", "arguments": {}},
        }
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        for expected in (1, 2, 2, 2):
            _, session = await begin(client, opened)
            await client.post(opened.url, json=ready, headers=session)
            answer = await client.post(opened.url, json=call, headers=session)
            assert "do: {}" in answer.text
            await until_taken(opened, expected)
