"""Whether tools are deferred is decided by whoever counts, and not by what their length tells."""

import json
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from aggregator.app.life import Orders, running_fleet
from aggregator.catalog import BY_LENGTH
from aggregator.config import load_config
from aggregator.names import RESERVED, ServerName
from tests.fleet.test_counters import vendor, vocabulary
from tests.peers import ERAS, Era, until, visiting
from tests.processes.driver import FAULTY

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

ONE = ServerName("one")
TOOLS = 20
CHEAP = 10
"""Tokens that each tool costs by the vendor's counter."""


@pytest.fixture
def anyio_backend() -> str:
    return "trio"


@contextmanager
def dear(directory: Path) -> Generator[Any, None, None]:
    """Have each character count as a token: two and a half times what their length tells."""
    yield f"tokenizers:{vocabulary(directory / 'each.json')}"


@contextmanager
def cheap(_directory: Path) -> Generator[Any, None, None]:
    def weight(body: dict[str, Any]) -> tuple[int, bytes]:
        tokens = 480 + CHEAP * len(body["tools"])
        return 200, json.dumps({"input_tokens": tokens}).encode()

    with vendor("/v1/messages/count_tokens", weight) as (url, _sent):
        yield {"url": url, "model": "claude-opus-5", "key": "the-key"}


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("counter", "threshold", "is_deferring"), [(dear, 750, True), (cheap, 320, False)]
)
async def test_auto_goes_by_the_counter_where_the_length_says_otherwise(
    counter: Any, threshold: int, era: Era, tmp_path: Path, *, is_deferring: bool
) -> None:
    path = tmp_path / "servers.yaml"
    command = [sys.executable, str(FAULTY), "ok", "--tools", str(TOOLS)]
    with counter(tmp_path) as tokens:
        whole: dict[str, Any] = {
            "servers": {ONE: {"command": command}},
            "tokens": tokens,
            "toolSearch": "auto:10",
            "contextWindow": 10 * threshold,
        }
        path.write_text(yaml.safe_dump(whole), encoding="utf-8")
        variables = {"HOME": str(tmp_path)}
        config = load_config(path, variables)
        async with running_fleet(config, variables, Orders()) as upstream:
            fleet = upstream.fleet
            async with visiting(upstream, era) as client:
                await client.list_tools()
                await until(lambda: ONE in fleet.now.catalog.scale.counted, lambda: fleet.changed)
                listed = await client.list_tools(cache_mode="refresh")
            catalog = fleet.now.catalog

    by_length = BY_LENGTH.cost(catalog.known[ONE].entries)
    counted = catalog.scale.cost(catalog.known[ONE].entries)
    assert min(by_length, counted) < threshold < max(by_length, counted)
    deferred = {tool.name for tool in listed.tools}.isdisjoint(catalog.entries)
    assert deferred is is_deferring
    assert (RESERVED.search in {tool.name for tool in listed.tools}) is is_deferring
