"""One line for each call, whoever makes it, and nothing called that must be written and cannot."""

import json
import os
import stat
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from aggregator.basics.eras import Era
from aggregator.config import parse_config
from aggregator.config.audit import Audit
from aggregator.config.profile import for_others
from aggregator.errors import ConfigError
from aggregator.records.audit import AuditFile, Entry
from aggregator.records.auditing import Auditing
from aggregator.records.events import CallEnded, Content, Origin, Trouble
from aggregator.records.gathering import Gathering
from aggregator.records.inspection import SERVERS_URI
from aggregator.secrecy import Redaction
from aggregator.upstream.server import Upstream
from tests.peers import Peer, aggregating, connect_to, error_of, ready, until, visiting

pytestmark = pytest.mark.anyio

CANARY = "canary-4711"
SECRET = "hunter2-and-a-half"  # noqa: S105 - a made-up one
CONFIDED = Redaction([("token", SECRET)])


@asynccontextmanager
async def audited(upstream: Upstream, audit: Audit) -> AsyncGenerator[None, None]:
    """Write calls down for the length of the block."""
    fleet = upstream.fleet
    auditing = Auditing(audit, lambda: CONFIDED, fleet.report_trouble)
    await auditing.prepare()
    async with anyio.create_task_group() as group:
        group.start_soon(auditing.keep, fleet.stream)
        await anyio.wait_all_tasks_blocked()
        yield
        group.cancel_scope.cancel()


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


async def test_each_call_is_one_line(client_era: Era, tmp_path: Path) -> None:
    path = tmp_path / "logs" / "audit.jsonl"
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    async with aggregating({"notes": connect_to(Peer("add"))}) as upstream:
        await ready(upstream)
        async with audited(upstream, Audit(path)), visiting(upstream, client_era) as client:
            await client.list_tools()
            await client.call_tool("notes__add", {"text": CANARY}, meta={"traceparent": trace})
            relayed = {"name": "notes__add", "arguments": {"text": CANARY}}
            await client.call_tool("CallTool", relayed)
            await client.call_tool("CallTool", {"name": "notes__ad"})

    first, second, third = lines(path)
    assert set(first) == {
        *("at", "client", "session", "server", "tool", "through", "outcome", "ms", "bytes", "trace")
    }
    assert (first["server"], first["tool"], first["outcome"]) == ("notes", "notes__add", "ok")
    assert first["trace"] == trace
    assert first["bytes"] > len(CANARY)
    assert first["session"] == second["session"]
    assert second["through"] == "CallTool"
    assert (third["tool"], third["outcome"]) == ("notes__ad", "unknown-tool")
    assert CANARY not in path.read_text(encoding="utf-8")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("kind", ["hash", "full"])
async def test_arguments_are_written_as_it_is_asked_for(
    client_era: Era, tmp_path: Path, kind: Any
) -> None:
    path = tmp_path / "audit.jsonl"
    async with aggregating({"notes": connect_to(Peer("add"))}) as upstream:
        await ready(upstream)
        async with audited(upstream, Audit(path, kind)), visiting(upstream, client_era) as client:
            await client.call_tool("notes__add", {"text": CANARY, "other": [SECRET]})
            relayed = {"name": "notes__add", "arguments": {"other": [SECRET], "text": CANARY}}
            await client.call_tool("CallTool", relayed)

    first, second = (each["arguments"] for each in lines(path))
    assert first == second
    assert SECRET not in path.read_text(encoding="utf-8")
    if kind == "full":
        assert first == {"text": CANARY, "other": ["[token]"]}
    else:
        assert first.startswith("sha256:")
        assert CANARY not in path.read_text(encoding="utf-8")


async def test_what_cannot_be_written_is_told_and_calls_go_on(
    client_era: Era, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "audit.jsonl"
    path.mkdir()
    async with aggregating({"notes": connect_to(Peer("add"))}) as upstream:
        await ready(upstream)
        fleet = upstream.fleet
        async with audited(upstream, Audit(path)), visiting(upstream, client_era) as client:
            await client.call_tool("notes__add", {})
            document = await told(client)
            path.rmdir()
            await until(lambda: fleet.now.unaudited is None, lambda: fleet.changed)
            await client.call_tool("notes__add", {})
            healed = await told(client)

    assert "is a directory" in document["unaudited"]
    assert "unaudited" not in healed
    assert "meanwhile calls go on" in caplog.text
    assert [each["outcome"] for each in lines(path)] == ["ok", "ok"]


async def told(client: Any) -> dict[str, Any]:
    result = await client.read_resource(SERVERS_URI)
    return json.loads(result.contents[0].text)


async def test_where_it_is_required_nothing_is_called_that_cannot_be_written(
    client_era: Era, tmp_path: Path
) -> None:
    peer, path = Peer("add"), tmp_path / "audit.jsonl"
    path.mkdir()
    async with aggregating({"notes": connect_to(peer)}) as upstream:
        await ready(upstream)
        fleet = upstream.fleet
        audit = Audit(path, required=True)
        async with audited(upstream, audit), visiting(upstream, client_era) as client:
            refused = await client.call_tool("notes__add", {})
            before = list(peer.calls)
            path.rmdir()
            await until(lambda: fleet.now.unaudited is None, lambda: fleet.changed)
            done = await client.call_tool("notes__add", {})

    assert error_of(refused)["kind"] == "not-audited"
    assert before == []
    assert not done.is_error
    assert [each["outcome"] for each in lines(path)] == ["not-audited", "ok"]


def ended(content: Content) -> CallEnded:
    origin = Origin("somebody", "s")
    return CallEnded(1.5, origin, 1, "notes", "notes__add", "", "ok", 0.1, "", content)


def test_who_called_is_written_down(tmp_path: Path) -> None:
    path, event = tmp_path / "audit.jsonl", ended(Content({}, {}))
    issuer = "https://login.example.com"
    origins = (
        Origin("editor", "s"),
        Origin("editor", "s", for_others(None), "robot"),
        Origin("editor", "s", for_others("reading"), "anna", issuer),
    )
    told = [Entry(event._replace(origin=each), 2, None, 0) for each in origins]

    AuditFile(Audit(path)).write(told, 0, CONFIDED)

    keys = ("identity", "issuer", "profile")
    assert [{key: line[key] for key in keys if key in line} for line in lines(path)] == [
        {},
        {"identity": "robot"},
        {"identity": "anna", "issuer": issuer, "profile": "reading"},
    ]


ENTRY = Entry(ended(Content({}, {})), 2, None, 0)


@pytest.mark.parametrize("kind", ["none", "hash", "full"])
def test_what_waits_holds_no_result_and_only_the_arguments_that_are_wanted(kind: Any) -> None:
    content = Content({"text": CANARY}, {"content": [{"type": "text", "text": SECRET}]})

    entry = AuditFile(Audit(Path("audit.jsonl"), kind)).entry(ended(content))

    assert SECRET not in repr(entry)
    assert (CANARY in repr(entry)) == (kind == "full")
    assert entry.size == len(json.dumps(content.result, separators=(",", ":")))
    assert (entry.weight > 0) == (kind != "none")


def test_what_waits_has_a_bound_together_but_one_alone_is_always_kept() -> None:
    gathering = Gathering[str](10, len, 4)
    for text in ("heavier", "a", "b"):
        gathering.put(text)
    first = gathering.take()
    for text in ("aaa", "bb", "c"):
        gathering.put(text)
    gathering.put_back(["dd"], 5)

    assert first == (["heavier"], 2)
    assert gathering.take() == (["dd", "c"], 5 + 1 + 1)


def test_a_file_that_is_large_is_followed_by_another_and_five_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    file = AuditFile(Audit(path, max_bytes=1000))
    for _ in range(200):
        file.write([ENTRY], 0, CONFIDED)

    found = sorted(each.name for each in tmp_path.iterdir())

    assert found == ["audit.jsonl", *(f"audit.jsonl.{number}" for number in range(1, 6))]
    assert all(each.stat().st_size < 1300 for each in tmp_path.iterdir())
    assert all(stat.S_IMODE(each.stat().st_mode) == 0o600 for each in tmp_path.iterdir())


def test_calls_that_were_too_many_to_be_kept_are_told(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"

    written = AuditFile(Audit(path)).write([ENTRY], 7, CONFIDED)

    assert (written.calls, written.problem) == (1, None)
    assert [each.get("lost") for each in lines(path)] == [7, None]


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    target, path = tmp_path / "other", tmp_path / "audit.jsonl"
    target.write_text("", encoding="utf-8")
    path.symlink_to(target)

    written = AuditFile(Audit(path)).write([ENTRY], 0, CONFIDED)

    assert written.calls == 0
    assert written.problem is not None
    assert target.read_text(encoding="utf-8") == ""


@pytest.mark.parametrize("is_read", [False, True])
async def test_a_pipe_keeps_nobody_waiting(tmp_path: Path, is_read: bool) -> None:
    path = tmp_path / "audit.jsonl"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK) if is_read else None
    troubles: list[Trouble | None] = []

    await Auditing(Audit(path), lambda: CONFIDED, troubles.append).prepare()

    if reader is not None:
        os.close(reader)
    assert [each is not None and str(path) in each.reason for each in troubles] == [True]


def test_a_file_that_was_open_to_others_is_so_no_longer(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    path.touch()
    path.chmod(0o644)

    AuditFile(Audit(path)).write([ENTRY], 0, CONFIDED)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_a_secret_in_the_place_of_a_name_is_not_written(
    client_era: Era, tmp_path: Path
) -> None:
    path = tmp_path / "audit.jsonl"
    async with aggregating({"notes": connect_to(Peer("add"))}) as upstream:
        await ready(upstream)
        async with audited(upstream, Audit(path)), visiting(upstream, client_era) as client:
            await client.call_tool("CallTool", {"name": SECRET})

    assert [each["tool"] for each in lines(path)] == ["[token]"]


def test_the_file_is_named_beside_the_configuration() -> None:
    text = "audit: {file: logs/audit.jsonl, arguments: hash, required: true}\nservers: {}\n"

    settings = parse_config(text, Path("/project/servers.yaml"), {}).settings

    assert settings.audit == Audit(Path("/project/logs/audit.jsonl"), "hash", required=True)
    with pytest.raises(ConfigError, match="audit"):
        parse_config("audit: {arguments: hash}\nservers: {}\n", Path("servers.yaml"), {})
