"""What the rooms are given when they are put together."""

import errno
from pathlib import Path

import anyio
import pytest

from aggregator.app.life import HEAD_START, WARM_UP_DELAY, Orders, running_fleet
from aggregator.config import load_config
from aggregator.names import ServerName
from tests.peers import until

pytestmark = pytest.mark.anyio

SERVERS = """\
watch: false
state: false
servers:
  notes: {command: notes-mcp, enabled: false, description: "Notes of ${OWNER}"}
"""


async def test_a_file_is_read_again_with_the_variables_it_was_read_with(tmp_path: Path) -> None:
    variables = {"OWNER": "Ada", "HOME": str(tmp_path)}
    path = tmp_path / "servers.yaml"
    path.write_text(SERVERS, encoding="utf-8")
    orders = Orders()

    async with running_fleet(load_config(path, variables), variables, orders) as upstream:
        fleet = upstream.fleet
        read = fleet.now.config
        orders.reload()
        await until(lambda: fleet.now.config is not read, lambda: fleet.changed)
        reread = fleet.now.config

    assert read is not reread
    for config in (read, reread):
        assert config.servers[ServerName("notes")].description == "Notes of Ada"
        assert config.servers[ServerName("notes")].problem is None


@pytest.mark.parametrize(
    "trouble",
    [OSError(errno.EMFILE, "Too many open files"), RuntimeError("can't start new thread")],
)
async def test_what_is_loaded_beforehand_may_fail(
    trouble: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def warm_up() -> None:
        raise trouble

    monkeypatch.setattr("aggregator.search.index.warm_up", warm_up)
    path = tmp_path / "servers.yaml"
    path.write_text(SERVERS, encoding="utf-8")

    config = load_config(path, {})
    async with running_fleet(config, {}, Orders()) as upstream:
        await anyio.sleep(HEAD_START + WARM_UP_DELAY + 1)

    assert upstream.fleet.now.config is config
