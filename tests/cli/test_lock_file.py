"""`servers.lock` as a file: merged, edited by hand, and written by several at once."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from aggregator.catalog.lock import Lock, Record, read, written
from aggregator.cli.environment import ExitStatus
from aggregator.cli.locking import rewrite
from aggregator.names import ServerName
from tests.cli.shell import Shell
from tests.cli.test_lock import NEW, OLD, classes, locked, offer, tool

pytestmark = pytest.mark.slow


NOTES = ServerName("notes")


def test_two_versions_are_put_together_as_git_asks(shell: Shell) -> None:
    ours = locked(shell, OLD)
    base = shell.project / "base"
    theirs = shell.project / "theirs"
    base.write_bytes(ours.read_bytes())
    theirs.write_bytes(ours.read_bytes())
    offer(shell, [*OLD, tool("zoom", "Zooms.")])
    assert shell.run("lock").status == ExitStatus.FINE

    merged = shell.run("lock", "--merge", str(base), str(theirs), str(ours))

    assert merged.status == ExitStatus.FINE
    assert theirs.read_bytes() == ours.read_bytes()


def test_a_file_of_another_program_is_not_written_over(shell: Shell) -> None:
    shell.write_servers("servers: {}\n")
    path = shell.project / "servers.lock"
    path.write_text('{"lockfileVersion": 3}', encoding="utf-8")
    ran = shell.run("lock")

    assert ran.status == ExitStatus.ERROR
    assert "is no file of `aggregator lock`" in ran.err
    assert path.read_text(encoding="utf-8") == '{"lockfileVersion": 3}'


def test_what_another_approves_meanwhile_is_not_lost(shell: Shell) -> None:
    path = locked(shell, OLD)
    before = path.read_bytes()
    offer(shell, NEW)
    assert shell.run("approve", "notes__list").status == ExitStatus.FINE
    path.replace(shell.project / "theirs.lock")
    path.write_bytes(before)

    assert shell.run("approve", "notes__add").status == ExitStatus.FINE

    assert {"notes__list", "notes__add"}.isdisjoint(classes(shell))
    assert "notes__move" in classes(shell)


def test_many_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "servers.lock"
    names = [f"t{number}" for number in range(12)]

    def add(name: str) -> None:
        def change(lock: Lock | None) -> Lock:
            tools = (lock or {}).get(NOTES, Record()).tools
            return {NOTES: Record(tools={**tools, name: {"description": name}})}

        rewrite(path, change)

    with ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(add, names))

    assert list(read(path.read_bytes())[NOTES].tools) == sorted(names)


def test_what_was_edited_by_hand_is_told_and_was_not_approved(shell: Shell) -> None:
    path = locked(shell, OLD)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("Moves a note.", "Moves your note."), encoding="utf-8")

    ran = shell.run("lock", "--check")

    assert ran.status == ExitStatus.ERROR
    assert "`notes/move` does not match its `sha256`" in ran.err
    assert classes(shell) == {"notes__move": "new"}
    assert shell.run("approve", "notes__move").out == (
        "Approved notes__move: has an entry in the lock file that was edited by hand\n"
    )


@pytest.mark.parametrize("altered", ["base", "ours", "theirs"])
def test_a_merge_tells_of_what_is_missing_or_edited_by_hand(shell: Shell, altered: str) -> None:
    text = written({NOTES: Record("s", tools={"a": {"description": "Old"}})})
    for name in ("base", "ours", "theirs"):
        path = shell.project / name
        path.write_text(text.replace("Old", "New") if name == altered else text, encoding="utf-8")

    merged = shell.run("lock", "--merge", "base", "ours", "theirs")

    assert (merged.status == ExitStatus.FINE) == (altered == "base")
    assert ("was edited by hand" in merged.err) == (altered != "base")
    before = (shell.project / "ours").read_bytes()
    (shell.project / altered).unlink()
    again = shell.run("lock", "--merge", "base", "ours", "theirs")
    assert again.status == ExitStatus.ERROR
    assert f"{altered}`" in again.err
    assert altered == "ours" or (shell.project / "ours").read_bytes() == before


def test_a_file_of_a_later_version_is_a_reason_to_update(shell: Shell) -> None:
    shell.write_servers("servers: {}\n")
    (shell.project / "servers.lock").write_text('{"lock": 2, "servers": {}}', encoding="utf-8")
    ran = shell.run("lock", "--check")

    assert ran.status == ExitStatus.ERROR
    assert "update this one" in ran.err
