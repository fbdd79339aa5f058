"""Whole conversations on each surface, with the SDK's client and real processes."""

import os
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
import yaml
from mcp import Client, StdioServerParameters

from tests.patience import PATIENCE
from tests.peers import error_of, text_of
from tests.processes.driver import ROOT, faulty

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

META = ["ToolSearch", "CallTool", "CallReadOnlyTool"]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Visitor:
    """A client that lists again when it is told to, or never."""

    def __init__(self, client: Client, *, relists: bool) -> None:
        self.client = client
        self.tools: list[str] = []
        self.told = 0
        self._heard = anyio.Event()
        self._relists = relists

    async def hear(self, message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self.told += 1
            if self._relists:
                await self.list()
            heard, self._heard = self._heard, anyio.Event()
            heard.set()

    async def list(self) -> list[str]:
        listed = await self.client.list_tools(cache_mode="refresh")
        self.tools = [tool.name for tool in listed.tools]
        return self.tools

    async def search(self, query: str, **options: Any) -> str:
        return text_of(await self.client.call_tool("ToolSearch", {"query": query, **options}))

    async def call(self, tool: str, **arguments: Any) -> str:
        """Call what a model could call: a listed name, or anything through `CallTool`."""
        if tool in self.tools:
            return text_of(await self.client.call_tool(tool, arguments))
        assert "CallTool" in self.tools
        through = {"name": tool, "arguments": arguments}
        return text_of(await self.client.call_tool("CallTool", through))

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something holds that only an announcement can bring about."""
        with anyio.fail_after(PATIENCE):
            while not condition():
                await self._heard.wait()


@asynccontextmanager
async def visiting(
    directory: Path,
    *,
    name: str = "test",
    mode: str = "legacy",
    relists: bool = True,
    **settings: Any,
) -> AsyncGenerator[Visitor, None]:
    path = directory / "servers.yaml"
    path.write_text(yaml.safe_dump({"servers": {"one": faulty()}, **settings}), encoding="utf-8")
    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "aggregator", "serve", "--config", str(path)],
        env={**os.environ, "XDG_STATE_HOME": str(directory / "state")},
        cwd=ROOT,
    )
    visitors: list[Visitor] = []

    async def hear(message: object) -> None:
        await visitors[0].hear(message)

    client = Client(
        command,
        mode=mode,
        message_handler=hear,
        client_info=types.Implementation(name=name, version="1"),
    )
    visitors.append(Visitor(client, relists=relists))
    async with client:
        yield visitors[0]


async def test_promote_lists_what_was_found_and_takes_it_back_with_its_server(
    tmp_path: Path,
) -> None:
    async with visiting(tmp_path, surface="promote") as visitor:
        assert await visitor.list() == ["ToolSearch"]
        found = await visitor.search("echo", wait=20, max_results=1)
        assert visitor.tools == ["ToolSearch", "one__echo"]
        assert "Call: one__echo {" in found
        assert "hello" in await visitor.call("one__echo", text="hello")

        await _lose_server(visitor)
        await visitor.until(lambda: "one__echo" in visitor.tools)
        assert "again" in await visitor.call("one__echo", text="again")


async def _lose_server(visitor: Visitor) -> None:
    answer = await visitor.client.call_tool("one__fault", {"kind": "die"})
    assert error_of(answer) == {"kind": "server-lost", "server": "one"}
    assert "`one` went away during the call: it " in text_of(answer)


async def test_hybrid_offers_both_ways_to_a_client_nobody_knows(tmp_path: Path) -> None:
    async with visiting(tmp_path) as visitor:
        assert await visitor.list() == META
        await visitor.search("echo", wait=20, max_results=1)
        assert visitor.tools == [*META, "one__echo"]
        assert "direct" in await visitor.call("one__echo", text="direct")
        through = {"name": "one__echo", "arguments": {"text": "through"}}
        assert "through" in text_of(await visitor.client.call_tool("CallTool", through))

        await _lose_server(visitor)
        await visitor.until(lambda: "one__echo" in visitor.tools)
        assert "again" in await visitor.call("one__echo", text="again")


async def test_a_client_that_never_lists_again_is_told_to_use_call_tool(tmp_path: Path) -> None:
    async with visiting(tmp_path, relists=False) as visitor:
        assert await visitor.list() == META
        found = await visitor.search("echo", wait=20, max_results=1)

        assert 'Call: CallTool {"name": "one__echo"' in found
        assert "hello" in await visitor.call("one__echo", text="hello")


@pytest.mark.parametrize(
    ("name", "mode"), [("codex-mcp-client", "legacy"), ("claude-code", "auto"), ("x", "auto")]
)
async def test_relay_never_changes_the_list(tmp_path: Path, name: str, mode: str) -> None:
    async with visiting(tmp_path, name=name, mode=mode) as visitor:
        assert await visitor.list() == META
        found = await visitor.search("echo", wait=20, max_results=1)

        assert 'Call: CallTool {"name": "one__echo"' in found
        assert await visitor.list() == META
        assert "hello" in await visitor.call("one__echo", text="hello")
        answer = await visitor.client.call_tool("one__fault", {"kind": "die"})
        assert answer.is_error
        assert "again" in await visitor.call("one__echo", text="again")
        assert visitor.told == 0


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_full_shows_everything_without_a_search(tmp_path: Path, mode: str) -> None:
    async with visiting(tmp_path, mode=mode, toolSearch=False) as visitor:
        await visitor.client.call_tool("one__echo", {"text": "wait for it"})
        listed = await visitor.list()

        assert "one__echo" in listed
        assert not set(META) & set(listed)
        assert "hello" in await visitor.call("one__echo", text="hello")
        await _lose_server(visitor)
        assert "again" in await visitor.call("one__echo", text="again")


async def test_a_new_process_for_every_call_still_gets_there(tmp_path: Path) -> None:
    """As one framework does: nothing is remembered from the search to the call."""
    async with visiting(tmp_path) as visitor:
        found = await visitor.search("echo", wait=20, max_results=1)
    async with visiting(tmp_path) as visitor:
        through = {"name": "one__echo", "arguments": {"text": "hello"}}
        called = await visitor.client.call_tool("CallTool", through)

    assert "one__echo" in found
    assert "hello" in text_of(called)


async def test_a_restarted_aggregator_gives_a_client_its_loaded_tools_back(
    tmp_path: Path,
) -> None:
    async with visiting(tmp_path) as visitor:
        await visitor.list()
        await visitor.search("echo", wait=20, max_results=1)
    async with visiting(tmp_path) as visitor:
        await visitor.search("", wait=20)
        again = await visitor.list()
    async with visiting(tmp_path, name="another") as stranger:
        await stranger.search("", wait=20)
        other = await stranger.list()

    assert again == [*META, "one__echo"]
    assert other == META
