"""An edit of `servers.yaml` beside real processes: which of them live on."""

import json
import signal
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.patience import PATIENCE
from tests.processes.driver import Aggregator, aggregator, texts

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

COUNTER = """
import os
from mcp.server.mcpserver import MCPServer

server, calls = MCPServer("counter"), []

@server.tool()
def count() -> str:
    "Count the calls."
    calls.append(1)
    return f"{os.getpid()} {len(calls)} {os.environ.get('TEAM')}"

@server.tool()
def reset() -> str:
    "Begin anew."
    calls.clear()
    return "done"

server.run("stdio")
"""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def edited(client: Aggregator, directory: Path, *sought: str, **entry: Any) -> str:
    """Change the entry of the one server, and return the overview once it has the words."""
    path = directory / "servers.yaml"
    config = json.loads(path.read_text(encoding="utf-8"))
    config["servers"]["counter"] |= entry
    path.write_text(json.dumps(config), encoding="utf-8")
    client.signal(signal.SIGHUP)
    with anyio.fail_after(PATIENCE):
        while True:
            overview = texts(await client.call("ToolSearch", query=""))
            if all(word in overview for word in sought):
                return overview


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_words_leave_the_process_alone_and_another_environment_replaces_it(
    tmp_path: Path, era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEAM", "blue")
    program = tmp_path / "counter.py"
    program.write_text(COUNTER, encoding="utf-8")
    counter = {"command": sys.executable, "args": [str(program)], "description": "first words"}

    async def count(client: Aggregator) -> list[str]:
        return texts(await client.call("counter__count")).split()

    async with aggregator(tmp_path, {"counter": counter}, era=era) as client:
        first = await count(client)
        words = {"description": "second words", "callTimeout": "9s", "alwaysLoad": ["count"]}
        hints = {"searchHints": {"reset": "zeppelin"}, "tools": {"deny": ["count*x"]}}
        await edited(client, tmp_path, "second words", **words, **hints)
        found = texts(await client.call("ToolSearch", query="zeppelin"))
        listed = [tool["name"] for tool in (await client.ask("tools/list"))["result"]["tools"]]
        second = await count(client)
        await edited(client, tmp_path, "third", description="third", inheritEnv=["NOTHING_*"])
        third = await count(client)
        await edited(client, tmp_path, "fourth", description="fourth", inheritEnv=["TEAM"])
        fourth = await count(client)

    assert first[1:] == ["1", "None"]
    assert "counter__reset" in found
    assert "counter__count" in listed
    assert second == [first[0], "2", "None"]
    assert third == [first[0], "3", "None"]
    assert fourth[0] != first[0]
    assert fourth[1:] == ["1", "blue"]
