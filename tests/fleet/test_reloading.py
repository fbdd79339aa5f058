"""The file that changes while its servers run."""

import json
import os
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client

from aggregator.app.life import IDENTITY
from aggregator.basics.effort import finished
from aggregator.catalog import Idle
from aggregator.config import Config, load_config
from aggregator.downstream.review import review
from aggregator.fleet.fleet import Fleet
from aggregator.fleet.last_known import LastKnown
from aggregator.fleet.reloading import MAX_PROBLEM, Reloading
from aggregator.memory import NoMemory
from aggregator.names import ServerName
from aggregator.upstream.client_memory import ClientMemory
from aggregator.upstream.connected_clients import ConnectedClients
from aggregator.upstream.server import Upstream
from tests.cli.rings import SilentRing, in_use
from tests.patience import PATIENCE
from tests.peers import (
    Era,
    Peer,
    aggregating,
    configured,
    connect_to,
    never,
    ready,
    text_of,
    until,
    visiting,
)
from tests.work import calls

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


async def test_that_a_broken_file_is_mended_is_said_as_loudly(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "servers.yaml"
    reloading = Reloading(fleet_of(written(path, "one")), {})

    path.write_text("servers: [", encoding="utf-8")
    reloading.reload()
    written(path, "one")
    reloading.reload()
    written(path, "one", "two")
    reloading.reload()

    assert [each.levelname for each in caplog.records] == ["ERROR", "WARNING"]
    assert caplog.messages[-1] == f"{path}: applied"


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
    # Nobody who could still be starting: an overview would wait for them.
    fleet = fleet_of(written(path))
    upstream = Upstream(fleet, ConnectedClients(), ClientMemory(NoMemory(), path))
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
        written(path)
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

    with anyio.fail_after(PATIENCE):
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

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            changed = fleet.changed
            group.start_soon(Reloading(fleet, {}).follow)
            await changed.wait()
            group.cancel_scope.cancel()

    assert list(fleet.now.catalog.servers) == ["one", "two"]


@pytest.mark.parametrize(
    ("device", "problem"),
    [(None, "cannot be read: nobody writes to this pipe"), ("/dev/zero", "is larger than 1 MiB")],
)
async def test_what_is_no_file_is_reported_and_freezes_nothing(
    tmp_path: Path, device: str | None, problem: str
) -> None:
    path = tmp_path / "servers.yaml"
    fleet = fleet_of(written(path, "one"))
    path.unlink()
    if device is None:
        os.mkfifo(path)
    else:
        path.symlink_to(device)

    Reloading(fleet, {}).reload()

    assert fleet.now.problem == f"`servers.yaml`: {problem}"
    assert list(fleet.now.catalog.servers) == ["one"]


async def test_an_env_file_that_is_no_file_freezes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "servers.yaml"
    fleet = fleet_of(written(path, "one"))
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "endless").symlink_to("/dev/zero")
    lines = (f"  {name}: {{command: x, envFile: {name}}}" for name in ("pipe", "endless"))
    path.write_text("\n".join(("servers:", *lines)), encoding="utf-8")

    Reloading(fleet, {}).reload()

    found = {name: server.problem or "" for name, server in fleet.now.config.servers.items()}
    assert "nobody writes to this pipe" in found[ServerName("pipe")]
    assert "is not an env file" in found[ServerName("endless")]


async def test_a_keyring_that_is_silent_takes_nothing_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, silent = tmp_path / "servers.yaml", SilentRing()
    fleet = fleet_of(written(path, "one"))
    path.write_text("servers: {one: {command: x, env: {A: '${keyring:A}'}}}\n", encoding="utf-8")
    monkeypatch.setattr("aggregator.config.keychain.PATIENCE", 0.01)
    with in_use(silent):
        Reloading(fleet, {}).reload()
        silent.unlocked.set()

    assert fleet.now.config.servers[ServerName("one")].problem is None
    assert "the keyring did not answer within 0.01 s; unlock it" in (fleet.now.problem or "")


async def test_a_keyring_that_waits_for_a_person_keeps_nobody_else_waiting(tmp_path: Path) -> None:
    path, silent = tmp_path / "servers.yaml", SilentRing()
    fleet = fleet_of(written(path, "one"))
    path.write_text("servers: {two: {command: x, env: {A: '${keyring:A}'}}}\n", encoding="utf-8")
    with in_use(silent):
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(Reloading(fleet, {}).renew)
                await anyio.to_thread.run_sync(silent.heard.wait, PATIENCE)
                assert list(fleet.now.catalog.servers) == ["one"]
                silent.unlocked.set()
        finally:
            silent.unlocked.set()

    assert list(fleet.now.catalog.servers) == ["two"]


NAME = ServerName("a")


def many(number: int) -> Peer:
    return Peer(*(f"t{each}" for each in range(number)))


async def cost_of_other_rules(number: int) -> int:
    """Count what is called to apply what was worked out for so many tools."""
    stricter = configured({"a": {"deny": ("t7",), "search_hints": {"t8": "x"}}})
    async with aggregating({"a": connect_to(many(number))}) as upstream:
        await ready(upstream)
        fleet = upstream.fleet
        await until(lambda: len(fleet.now.catalog.entries) == number, lambda: fleet.changed)
        # What is shown says how it differs, and so is another value than what was listed.
        found = {NAME: finished(review(stricter.servers[NAME], fleet.now.catalog.known[NAME]))}
        cost = calls(lambda: fleet.reconfigure(stricter, found))
        assert "a__t7" not in fleet.now.catalog.entries
        return cost
    raise AssertionError


async def cost_of_another_server(number: int, directory: Path) -> int:
    """Count what is called to add a server of which so many tools are known."""
    peers = {"a": connect_to(many(number)), "b": connect_to(Peer("one"))}
    last_known = LastKnown(directory)
    async with aggregating(peers, last_known=last_known) as upstream:
        await ready(upstream)
    last_known.save()
    async with aggregating(peers, last_known=LastKnown(directory), without="a") as upstream:
        fleet = upstream.fleet
        cost = calls(lambda: fleet.reconfigure(configured({"a": {}, "b": {}})))
        await until(lambda: len(fleet.now.catalog.entries) > number, lambda: fleet.changed)
        assert isinstance(fleet.now.catalog.servers[NAME], Idle)
        return cost
    raise AssertionError


async def test_what_was_worked_out_beforehand_is_not_worked_out_again() -> None:
    few, more = await cost_of_other_rules(100), await cost_of_other_rules(400)

    assert (more - few) / 300 < 10


async def test_what_an_added_server_offered_is_read_while_others_have_their_turn(
    tmp_path: Path,
) -> None:
    few = await cost_of_another_server(100, tmp_path / "few")
    more = await cost_of_another_server(400, tmp_path / "more")

    assert (more - few) / 300 < 1
