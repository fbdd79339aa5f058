"""The file that changes while its servers run."""

import json
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client

from aggregator.app import IDENTITY
from aggregator.config import Config, load_config
from aggregator.fleet.fleet import Fleet
from aggregator.fleet.reloading import MAX_PROBLEM, Reloading
from aggregator.memory import NoMemory
from aggregator.upstream.audience import Audience
from aggregator.upstream.recollection import Recollection
from aggregator.upstream.server import Upstream
from tests.peers import Era, never, text_of, visiting

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


async def servers_document(client: Client) -> dict[str, Any]:
    (content,) = (await client.read_resource("catalog://servers")).contents
    assert isinstance(content, types.TextResourceContents)
    return json.loads(content.text)


async def test_clients_are_told_that_the_file_is_not_in_use(
    tmp_path: Path, client_era: Era
) -> None:
    """A person who edited it looks there, and not into a log."""
    path = tmp_path / "servers.yaml"
    fleet = fleet_of(written(path, "one"))
    upstream = Upstream(fleet, Audience(), Recollection(NoMemory(), path))
    reloading = Reloading(fleet, {})
    documents: list[dict[str, Any]] = []
    overviews: list[types.CallToolResult] = []

    async with visiting(upstream, client_era) as client:

        async def look() -> None:
            documents.append(await servers_document(client))
            overviews.append(await client.call_tool("ToolSearch", {"query": ""}))

        await look()
        path.write_text("servers: [", encoding="utf-8")
        reloading.reload()
        await look()
        written(path, "one")
        reloading.reload()
        await look()

    problem = f"`{path.name}`, line 1: is not valid YAML"
    said = f"{documents[1]['problem']}; going on with the configuration in use."
    assert [each["problem"] is None for each in documents] == [True, False, True]
    assert documents[1]["problem"].startswith(problem)
    assert [said in text_of(each) for each in overviews] == [False, True, False]
    metas = [(each.meta or {})["aggregator/search"] for each in overviews]
    assert [each.get("problem") for each in metas] == [each["problem"] for each in documents]


async def test_where_the_file_is_and_what_looks_like_a_secret_is_told_to_nobody(
    tmp_path: Path,
) -> None:
    """A person at the machine reads the log; clients may be anywhere."""
    path = tmp_path / "servers.yaml"
    fleet = fleet_of(written(path, "one"))
    token = "sk-ant-" + "x" * 20
    path.write_text(f"servers:\n  one: {{command: x, {token}: 1, {'y' * 1000}: 2}}\n", "utf-8")

    Reloading(fleet, {}).reload()

    problem = fleet.now.problem
    assert problem is not None
    assert problem.startswith("`servers.yaml`, line 2: ")
    assert str(tmp_path) not in problem
    assert token not in problem
    assert len(problem) <= MAX_PROBLEM + 100


async def test_the_first_mistake_is_told_with_its_hint_and_how_many_more_there_are(
    tmp_path: Path,
) -> None:
    path = tmp_path / "servers.yaml"
    fleet = fleet_of(written(path, "one"))
    path.write_text(
        "servers:\n  one: {comand: x}\n  two: {command: x, callTimeout: soon}\n", "utf-8"
    )

    Reloading(fleet, {}).reload()

    problem = fleet.now.problem or ""
    assert problem.startswith("`servers.yaml`, line 2: ")
    assert "`command`" in problem
    assert "more that `aggregator check` tells" in problem


async def test_whoever_follows_the_catalog_hears_of_a_problem_once(tmp_path: Path) -> None:
    path = tmp_path / "servers.yaml"
    fleet = fleet_of(written(path, "one"))
    reloading = Reloading(fleet, {})
    path.write_text("servers: [", encoding="utf-8")

    before = fleet.now
    reloading.reload()
    told = fleet.now
    reloading.reload()

    assert told is not before
    assert fleet.now is told


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
