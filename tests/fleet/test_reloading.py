"""The file that changes while its servers run."""

from pathlib import Path

import anyio
import pytest

from aggregator.app import IDENTITY
from aggregator.config import Config, load_config
from aggregator.fleet.fleet import Fleet
from aggregator.fleet.reloading import Reloading
from tests.peers import never

pytestmark = pytest.mark.anyio


def written(path: Path, *servers: str, **settings: object) -> Config:
    lines = [f"{key}: {value}" for key, value in settings.items()]
    lines += ["servers:" if servers else "servers: {}"]
    lines += [f"  {name}: {{command: x, description: d}}" for name in servers]
    path.write_text("\n".join(lines), encoding="utf-8")
    return load_config(path, {})


def fleet_of(config: Config) -> Fleet:
    return Fleet(config, connect=lambda _server: never(), identity=IDENTITY)


async def test_a_valid_change_is_applied(tmp_path: Path) -> None:
    path = tmp_path / "servers.yaml"
    fleet = fleet_of(written(path, "one"))

    written(path, "one", "two")
    Reloading(fleet, {}).reload()

    assert list(fleet.now.catalog.servers) == ["one", "two"]
    assert fleet.now.problem is None


async def test_a_configuration_is_expected_before_it_is_applied(tmp_path: Path) -> None:
    path = tmp_path / "servers.yaml"
    fleet = fleet_of(written(path, "one"))
    expected: list[tuple[list[str], list[str]]] = []

    def expect(config: Config) -> None:
        expected.append((list(config.servers), list(fleet.now.catalog.servers)))

    written(path, "one", "two")
    Reloading(fleet, {}, expect).reload()

    assert expected == [(["one", "two"], ["one"])]


async def test_a_file_that_cannot_be_used_changes_nothing_and_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "servers.yaml"
    fleet = fleet_of(written(path, "one"))
    reloading = Reloading(fleet, {})

    path.write_text("servers: [", encoding="utf-8")
    reloading.reload()
    problem = fleet.now.problem
    written(path, "one")
    reloading.reload()

    assert list(fleet.now.catalog.servers) == ["one"]
    assert problem is not None
    assert "is not valid YAML" in problem
    assert fleet.now.problem is None


async def test_changes_are_followed_until_the_file_says_not_to(tmp_path: Path) -> None:
    path = tmp_path / "servers.yaml"
    fleet = fleet_of(written(path, "one"))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(Reloading(fleet, {}).follow)
            await anyio.wait_all_tasks_blocked()
            changed = fleet.changed
            written(path, "one", "two", watch="false")
            await changed.wait()
            written(path)

    assert list(fleet.now.catalog.servers) == ["one", "two"]


async def test_an_edit_before_the_file_is_followed_is_not_missed(tmp_path: Path) -> None:
    path = tmp_path / "servers.yaml"
    fleet = fleet_of(written(path, "one"))
    written(path, "one", "two")

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            changed = fleet.changed
            group.start_soon(Reloading(fleet, {}).follow)
            await changed.wait()
            group.cancel_scope.cancel()

    assert list(fleet.now.catalog.servers) == ["one", "two"]
