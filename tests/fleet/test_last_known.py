"""What is kept of servers between runs: whole, private, and no reason to fail."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import from_thread
from hypothesis import given
from hypothesis import strategies as st

from aggregator.basics.files import replace_file
from aggregator.catalog import Offers, PromptEntry, Ready, ResourceEntry, SkillEntry
from aggregator.config import Config, ServerConfig, Settings
from aggregator.downstream.intake import take_in
from aggregator.fleet import last_known as bounds
from aggregator.fleet.last_known import KEPT, LastKnown, open_last_known, program_of
from aggregator.fleet.saved_listing import SavedListingError, read, written
from aggregator.names import ServerName
from tests.patience import PATIENCE
from tests.work import counting

pytestmark = pytest.mark.anyio

NAME = ServerName("db")
SERVER = ServerConfig(NAME, "db", always_load=("pinned*",))
TEXTS = st.text(max_size=20)
NAMES = st.lists(st.from_regex(r"(pinned_)?[a-z]{1,8}", fullmatch=True), unique=True, max_size=6)


def offering(*names: str, **definition: Any) -> Ready:
    """Return the state of a server with these tools."""
    schema = {"type": "object"}
    listing = [{"name": name, "inputSchema": schema, **definition} for name in names]
    return Ready(entries=tuple(take_in(SERVER, listing)[0]), protocol_version="2025-11-25")


def lines_of(ready: Ready, server: ServerConfig = SERVER) -> list[str]:
    return list(written(server, ready, "program", "1"))


def kept(directory: Path, ready: Ready, server: ServerConfig = SERVER) -> Path:
    """Have it written, and return the one file that it was written to."""
    last_known = LastKnown(directory)
    last_known.note(server, ready)
    last_known.save()
    (path,) = directory.iterdir()
    return path


@given(names=NAMES, description=TEXTS, prompts=NAMES, uris=NAMES, text=TEXTS)
def test_what_is_written_is_read_again(
    names: list[str], description: str, prompts: list[str], uris: list[str], text: str
) -> None:
    ready = offering(*names, description=description)
    offers = Offers(
        tuple(PromptEntry(f"db__{name}", NAME, {"name": name}) for name in prompts),
        tuple(ResourceEntry(NAME, {"uri": f"x://{uri}", "name": text}) for uri in uris),
        tuple(ResourceEntry(NAME, {"uriTemplate": f"x://{uri}/{{id}}"}) for uri in uris),
        tuple(
            SkillEntry(NAME, {"uri": f"skill://{uri}/SKILL.md", "resources": "dynamic"})
            for uri in uris
        ),
        reads=True,
        tasks=bool(uris),
    )
    before = Ready(
        ready.entries,
        0.0,
        "2025-11-25",
        "db 1",
        text,
        description,
        offers=offers,
        is_partial=True,
    )

    lines = lines_of(before)

    assert all("\n" not in line for line in lines)
    assert read(iter(lines), SERVER).ready == before


def test_what_lists_show_first_can_be_read_alone() -> None:
    lines = lines_of(offering("a", "pinned_b", "c", "pinned_d"))
    opened: list[str] = []

    def reading() -> Any:
        for line in lines:
            opened.append(line)
            yield line

    known = read(reading(), SERVER, pinned_only=True)

    assert [entry.own_name for entry in known.ready.entries] == ["pinned_b", "pinned_d"]
    assert known.ready.offers.unlisted == {"tools", "prompts", "resources"}
    assert len(opened) == 4


DAMAGES = {
    "empty": "",
    "no JSON": "not JSON\n",
    "cut off": "\n".join(lines_of(offering("a", "b")))[:-20],
    "another version": '{"sheet": 2}\n',
    "no facts": '{"sheet": 2}\n',
    "other facts": '{"sheet": 2, "rules": 7}\n',
    "more facts": '{"sheet": 2, "rules": "", "colour": "red"}\n',
    "a list": "[]\n",
    "a line that is none": "\n".join([lines_of(offering())[0], '["tool", 0, 7]']),
    "an unknown kind": "\n".join([lines_of(offering())[0], '["spell", 0, {"name": "x"}]']),
    "no name": "\n".join([lines_of(offering())[0], '["tool", 0, {}]']),
    "places that are no numbers": "\n".join(
        [lines_of(offering())[0], '["tool", 0, {"name": "x"}]', '["tool", "1", {"name": "y"}]']
    ),
    "too deep": "\n".join([lines_of(offering())[0], "[" * 100_000]),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_what_is_damaged_costs_only_the_start(tmp_path: Path, damage: str) -> None:
    with pytest.raises(SavedListingError):
        read(iter(damage.splitlines(keepends=True)), SERVER)

    kept(tmp_path, offering("a")).write_text(damage)

    assert LastKnown(tmp_path).recall({NAME: SERVER}) == {}


def test_what_is_no_file_or_no_text_costs_only_the_start(tmp_path: Path) -> None:
    path = kept(tmp_path, offering("a"))

    path.write_bytes(b"\xff\xfe")
    assert LastKnown(tmp_path).recall({NAME: SERVER}) == {}
    path.unlink()
    os.mkfifo(path)
    assert LastKnown(tmp_path).recall({NAME: SERVER}) == {}
    path.unlink()
    path.mkdir()
    assert LastKnown(tmp_path).recall({NAME: SERVER}) == {}


def test_what_is_out_of_all_proportion_is_not_read(tmp_path: Path) -> None:
    path = kept(tmp_path, offering("a"))
    with path.open("ab") as file:
        file.truncate(1 << 30)

    assert LastKnown(tmp_path).recall({NAME: SERVER}) == {}


def test_of_much_only_the_beginning_is_read_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept(tmp_path, offering("a", "pinned_b"))
    monkeypatch.setattr(bounds, "READ_AT_ONCE", 10)

    recalled = LastKnown(tmp_path).recall({NAME: SERVER})[NAME]

    assert not recalled.is_whole
    assert [entry.own_name for entry in recalled.ready.entries] == ["pinned_b"]


async def test_the_rest_is_read_in_a_thread(tmp_path: Path) -> None:
    kept(tmp_path, offering("a", "pinned_b"))

    whole = await LastKnown(tmp_path).recall_whole(SERVER)

    assert whole is not None
    assert [entry.own_name for entry in whole.ready.entries] == ["a", "pinned_b"]


def test_only_its_owner_may_read_it(tmp_path: Path) -> None:
    path = kept(tmp_path / "catalogs" / "x", offering("a"))

    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_secret_that_a_server_repeats_is_not_written(tmp_path: Path) -> None:
    canary = "hunter2-and-more"
    server = ServerConfig(NAME, "db", env={"DB_PASSWORD": canary})
    schema = {"type": "object", "properties": {"at": {"default": f"https://x:{canary}@db"}}}
    ready = offering("a", description=f"Uses {canary}.", inputSchema=schema)
    ready = Ready(ready.entries, instructions=f"The password is {canary}.")

    text = kept(tmp_path, ready, server).read_text()

    assert canary not in text
    assert "Uses ***." in text


def test_what_has_not_changed_is_only_marked_as_listed_again(tmp_path: Path) -> None:
    path = kept(tmp_path, offering("a"))
    before = path.stat()
    os.utime(path, (1, 1))

    kept(tmp_path, offering("a"))

    assert path.stat().st_ino == before.st_ino
    assert path.stat().st_mtime > 1


def test_what_nobody_needs_for_long_is_removed(tmp_path: Path) -> None:
    old = kept(tmp_path / "one", offering("a"))
    new = kept(tmp_path / "two", offering("a"))
    long_ago = old.stat().st_mtime - KEPT - 1
    os.utime(old, (long_ago, long_ago))

    LastKnown(tmp_path / "two").tidy()

    assert not old.exists()
    assert new.exists()


def test_another_version_of_a_program_is_noticed(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text("one")
    server = ServerConfig(NAME, "db", command="python3", args=("-u", "server.py"), cwd=tmp_path)
    before = program_of(server)

    assert program_of(server) == before
    script.write_text("another")
    assert program_of(server) != before


def test_whoever_keeps_nothing_recalls_nothing() -> None:
    last_known = LastKnown(None)
    last_known.note(SERVER, offering("a"))
    last_known.save()

    assert last_known.recall({NAME: SERVER}) == {}


def test_a_full_disk_or_no_right_to_write_is_no_reason_to_fail(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    last_known = LastKnown(tmp_path / "file" / "catalogs")
    last_known.note(SERVER, offering("a"))
    last_known.save()

    assert json.dumps(last_known.recall({NAME: SERVER})) == "{}"


def test_who_wants_nothing_kept_has_nothing_kept(tmp_path: Path) -> None:
    config = Config(tmp_path / "servers.yaml", {NAME: SERVER}, Settings())
    other = Config(tmp_path / "other.yaml", {NAME: SERVER}, Settings())
    for each in (config, other):
        last_known = open_last_known(tmp_path / "state" / "state.json", each)
        last_known.note(SERVER, offering("one"))
        last_known.save()

    forgetful = replace(config, settings=Settings(state=False))
    assert (
        open_last_known(tmp_path / "state" / "state.json", forgetful).recall({NAME: SERVER}) == {}
    )

    assert open_last_known(tmp_path / "state" / "state.json", config).recall({NAME: SERVER}) == {}
    assert NAME in open_last_known(tmp_path / "state" / "state.json", other).recall({NAME: SERVER})


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
def test_what_is_no_file_is_replaced_and_not_waited_for(tmp_path: Path) -> None:
    path = kept(tmp_path, offering("one"))
    path.unlink()
    os.mkfifo(path)
    last_known = LastKnown(tmp_path)
    last_known.note(SERVER, offering("one"))
    last_known.save()

    assert path.is_file()


def test_what_was_half_written_is_removed_after_a_while(tmp_path: Path) -> None:
    path = kept(tmp_path / "one", offering("one"))
    half = path.with_name(f".{path.name}.abc")
    left = path.with_name(f"{path.name}.abc")
    for each in (half, left):
        each.write_bytes(b"x")
        os.utime(each, (0, 0))

    LastKnown(tmp_path / "two").tidy()

    assert path.exists()
    assert not left.exists()
    assert not half.exists()


async def cost_of_writing(number: int, directory: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Count what is called on the event loop until so many tools are on disk."""
    is_written = anyio.Event()

    def replace_and_tell(path: Path, content: bytes) -> None:
        replace_file(path, content)
        from_thread.run_sync(is_written.set)

    monkeypatch.setattr(bounds, "replace_file", replace_and_tell)
    monkeypatch.setattr(bounds, "PAUSE", 0.0)
    last_known, ready = LastKnown(directory), offering(*(f"t{each}" for each in range(number)))
    with counting() as tally:
        async with anyio.create_task_group() as group:
            group.start_soon(last_known.keep)
            last_known.note(SERVER, ready)
            with anyio.fail_after(PATIENCE):
                await is_written.wait()
            group.cancel_scope.cancel()
    assert len(LastKnown(directory).recall({NAME: SERVER})[NAME].ready.entries) == number
    return tally.calls


async def test_no_call_waits_for_what_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = await cost_of_writing(100, tmp_path / "few", monkeypatch)
    more = await cost_of_writing(400, tmp_path / "more", monkeypatch)

    assert (more - few) / 300 < 1


def test_a_secret_is_not_written_in_any_form(tmp_path: Path) -> None:
    canary = "top secret/&one\nline two of it"
    server = ServerConfig(NAME, "db", command="x", env={"TOKEN": canary})
    said = "top%20secret/%26one%0Aline%20two%20of%20it, or top secret/&one"

    text = kept(tmp_path, offering("a", description=said), server).read_text(encoding="utf-8")

    assert "secret" not in text
