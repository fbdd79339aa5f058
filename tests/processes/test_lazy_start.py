"""Servers run while somebody needs them: counted in processes."""

import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.census import descendants
from tests.patience import PATIENCE
from tests.processes.driver import Aggregator, aggregator, faulty, texts

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

SERVERS = 12


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def running() -> list[str]:
    """Return the commands of the servers that run now."""
    return [each.command for each in descendants(os.getpid()) if "faulty.py" in each.command]


async def states(client: Aggregator) -> dict[str, str]:
    answer = await client.ask("resources/read", {"uri": "catalog://servers"})
    document = json.loads(answer["result"]["contents"][0]["text"])
    return {each["name"]: each["state"] for each in document["servers"]}


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Look again and again: of processes that come and go, nobody is told."""
    with anyio.fail_after(PATIENCE):
        while True:
            if await condition():
                return
            await anyio.sleep(0.05)


async def until_all(client: Aggregator, state: str) -> None:
    async def are_so() -> bool:
        return set((await states(client)).values()) == {state}

    await until(are_so)


async def until_none_runs() -> None:
    async def is_none() -> bool:
        return not running()

    await until(is_none)


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_twelve_servers_are_known_and_one_runs(tmp_path: Path, era: str) -> None:
    servers: dict[str, Any] = {f"s{number}": faulty() for number in range(SERVERS)}
    async with aggregator(tmp_path, servers, era=era) as client:
        await client.ask("tools/list")
        await until_all(client, "ready")
        # What they offer besides tools is asked last, and written when it is known.
        sheets = tmp_path / "state"

        async def are_written() -> bool:
            return len(list(sheets.glob("**/catalogs/*/*.jsonl"))) == SERVERS

        await until(are_written)
    await until_none_runs()

    async with aggregator(tmp_path, servers, era=era, idleTimeout="1s") as client:
        await client.ask("tools/list")
        for number in range(5):
            found = texts(await client.call("ToolSearch", query=f"server:s{number} echo"))
            assert f"s{number}__echo" in found
            assert "starts when called" in found
        assert set((await states(client)).values()) == {"idle"}
        assert running() == []

        for _ in range(2):
            assert not (await client.call("s7__echo", text="hello")).get("isError")
            assert len(running()) <= 1
            await until_none_runs()
            await until_all(client, "idle")
