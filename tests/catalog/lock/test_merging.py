"""Two people who lock different tools can put their work together."""

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.catalog.lock import Lock, Record, merged, read, written
from aggregator.names import ServerName
from tests.catalog.lock.locks import LOCKS, tool

NOTES = ServerName("notes")
NAMES = [f"tool{at:02}" for at in range(12)]
GIT = shutil.which("git") or "git"


def lock(names: list[str]) -> Lock:
    return {NOTES: Record("s", tools={name: tool(f"Does {name}.") for name in names})}


@given(LOCKS, LOCKS)
def test_what_only_one_side_changed_is_as_that_side_has_it(base: Lock, changed: Lock) -> None:
    assert merged(base, changed, base) == (changed, [])
    assert merged(base, base, changed) == (changed, [])


@given(st.sets(st.sampled_from(NAMES)), st.sets(st.sampled_from(NAMES)))
def test_tools_that_different_sides_add_are_all_there(ours: set[str], theirs: set[str]) -> None:
    found, conflicts = merged(lock(["base"]), lock(["base", *ours]), lock(["base", *theirs]))

    assert found == lock(["base", *ours, *theirs])
    assert conflicts == []


def test_what_both_change_in_different_ways_is_for_a_person_to_decide() -> None:
    sides = [{NOTES: Record(tools={"add": tool(words)})} for words in ("A.", "B.", "C.")]

    found, conflicts = merged(sides[0], sides[1], sides[2])

    assert found == sides[1]
    assert conflicts == ["notes/add"]


def test_instructions_are_put_together_as_tools_are() -> None:
    def side(version: str, instructions: str) -> Lock:
        return {NOTES: Record("s", version=version, instructions=instructions)}

    base = side("1", "A.")
    assert merged(base, side("2", "A."), side("1", "B.")) == (side("2", "B."), [])
    assert merged(base, side("1", "B."), side("2", "A.")) == (side("1", "B."), [])
    assert merged(base, side("1", "B."), side("1", "C.")) == (
        side("1", "B."),
        ["notes, its instructions"],
    )


def test_what_different_programs_offer_is_never_put_together() -> None:
    base, tools = lock(["a"]), {"a": tool("A."), "b": tool("B.")}
    other = {NOTES: Record("another", tools=tools)}

    assert merged(base, base, other) == (other, [])
    assert merged(base, other, base) == (other, [])
    assert merged(base, lock(["a", "c"]), other) == (lock(["a", "c"]), ["notes"])
    assert merged({}, other, lock(["c"])) == (other, ["notes"])


def test_what_one_side_takes_away_and_the_other_changes_stays() -> None:
    base, changed = lock(["a"]), lock(["a", "b"])

    assert merged(base, {}, changed) == (changed, [])
    assert merged(base, base, {}) == ({}, [])


def git(directory: Path, *words: str) -> str:
    done = subprocess.run(
        [GIT, "-c", "user.name=x", "-c", "user.email=x@localhost", *words],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (["tool00"], ["tool11"]),
        (["tool02", "tool04"], ["tool09"]),
        (["tool11"], ["tool01", "tool06"]),
    ],
)
def test_git_puts_together_what_was_added_in_different_places(
    tmp_path: Path, ours: list[str], theirs: list[str]
) -> None:
    path = tmp_path / "servers.lock"

    def commit(names: list[str]) -> None:
        path.write_text(written(lock(names)), encoding="utf-8")
        git(tmp_path, "add", "servers.lock")
        git(tmp_path, "commit", "-qm", "Lock")

    known = ["tool03", "tool05", "tool08", "tool10"]
    git(tmp_path, "init", "-q", "-b", "ours")
    commit(known)
    git(tmp_path, "checkout", "-qb", "theirs")
    commit([*known, *theirs])
    git(tmp_path, "checkout", "-q", "ours")
    commit([*known, *ours])

    git(tmp_path, "merge", "-q", "--no-edit", "theirs")

    assert read(path.read_bytes()) == lock([*known, *ours, *theirs])
