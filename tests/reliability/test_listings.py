"""A listing without end or sense costs its own tools at most, and is reported."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.soak.client import aggregator, faulty, text_of
from tests.soak.stalls import LISTINGS

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_whatever_a_server_lists_its_good_tools_are_there(tmp_path: Path) -> None:
    servers = {mode: faulty(mode, "--log", str(tmp_path / mode)) for mode in LISTINGS}

    async with aggregator(tmp_path, servers) as client:
        await client.ready()
        found = await client.servers()
        echoes = {mode: text_of(await client.call(f"{mode}__echo", text=mode)) for mode in LISTINGS}

    assert echoes == {mode: mode for mode in LISTINGS}
    refused = {mode: " ".join(server["refused"]) for mode, server in found.items()}
    assert "too large" in refused["schema_bomb"]
    assert "64 levels deep" in refused["deep_schema"]
    assert "listed twice" in refused["duplicates"]
    assert "not an object" in refused["bad_tools"]
    assert "more than 64 pages" in refused["cursor_infinite"]
    assert "more were refused" in refused["cursor_infinite"]
    for mode in ("cursor_same", "cursor_aba", "cursor_empty"):
        assert "repeats a page" in refused[mode]
    pages = {mode: _listings(tmp_path / mode) for mode in LISTINGS}
    assert pages["cursor_infinite"] <= 64
    assert pages["notify_on_list"] <= 10
    assert max(pages[mode] for mode in LISTINGS if mode != "cursor_infinite") <= 10


def _listings(log: Path) -> int:
    messages: list[dict[str, Any]] = [json.loads(line) for line in log.read_bytes().splitlines()]
    return sum(message.get("method") == "tools/list" for message in messages)
