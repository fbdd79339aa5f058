"""What is not as it was approved is withheld, and comes back while the aggregator runs."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from aggregator.catalog.lock import read, written
from tests.cli.test_lock import NEW, OLD, SERVER
from tests.patience import PATIENCE
from tests.processes.driver import Aggregator, aggregator, texts

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def command(directory: Path, *arguments: str) -> str:
    """Type a command beside a running aggregator."""
    done = await anyio.run_process(
        [
            sys.executable,
            "-m",
            "aggregator",
            *arguments,
            "--config",
            str(directory / "servers.yaml"),
        ],
        check=False,
        env={**os.environ, "XDG_STATE_HOME": str(directory / "state")},
    )
    return done.stdout.decode()


async def known(client: Aggregator, sought: int) -> list[str]:
    """Return the tools of the catalog once it has so many."""
    with anyio.fail_after(PATIENCE):
        while True:
            answer = await client.ask("resources/read", {"uri": "catalog://tools"})
            text = answer["result"]["contents"][0]["text"]
            names = sorted(each["tool"] for each in json.loads(text)["tools"])
            if len(names) == sought:
                return names
            await anyio.sleep(0.05)


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_what_is_approved_is_offered_by_a_running_aggregator(
    tmp_path: Path, era: str
) -> None:
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps(OLD), encoding="utf-8")
    entry: dict[str, Any] = {
        "command": sys.executable,
        "args": [str(SERVER), str(tools)],
        "alwaysLoad": True,
        "drift": "block",
    }
    (tmp_path / "servers.yaml").write_text(json.dumps({"servers": {"notes": entry}}))
    await command(tmp_path, "lock")
    lock = tmp_path / "servers.lock"
    assert written(read(lock.read_bytes())) == lock.read_text(encoding="utf-8")
    tools.write_text(json.dumps(NEW), encoding="utf-8")

    async with aggregator(tmp_path, {"notes": entry}, era=era) as client:
        assert await known(client, 1) == ["same"]
        refused = await client.call("CallTool", name="Notes.add", arguments={"title": "x"})
        assert refused["isError"]
        assert "now needs `bcc`" in texts(refused)
        assert f"aggregator approve notes__add --config {tmp_path}" in texts(refused)
        told = texts(await client.call("ToolSearch", query="select:notes__add"))
        assert "`notes__add` is withheld" in told
        listed = (await client.ask("tools/list"))["result"]["tools"]
        assert "notes__add" not in [each["name"] for each in listed]

        await command(tmp_path, "approve", "notes__add")
        assert await known(client, 2) == ["add", "same"]
        called = await client.call("notes__add", title="x", bcc="y")
        assert texts(called) == "called add"
        if era == "handshake":
            while not any("list_changed" in line.get("method", "") for line in client.lines):
                await client.read()
        await command(tmp_path, "approve", "--all")
        assert await known(client, 5) == ["add", "fresh", "list", "move", "same"]
