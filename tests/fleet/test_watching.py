"""A file that changes, in all the ways editors and tools change one."""

import os
from collections.abc import Callable
from contextlib import aclosing
from hashlib import sha256
from pathlib import Path

import anyio
import pytest

from aggregator.fleet.watching import LOOKING, SETTLING, changes
from tests.patience import PATIENCE

pytestmark = pytest.mark.anyio


def rewrite(path: Path) -> None:
    path.write_text("two", encoding="utf-8")


def replace(path: Path) -> None:
    other = path.with_name("other")
    other.write_text("two", encoding="utf-8")
    other.replace(path)


def remove(path: Path) -> None:
    path.unlink()


def swap_link(path: Path) -> None:
    target = path.with_name("target")
    target.write_text("two", encoding="utf-8")
    link = path.with_name("link")
    link.symlink_to(target)
    link.replace(path)


async def test_a_file_is_followed_to_where_a_link_leads(tmp_path: Path) -> None:
    """As where people keep such files in a directory of their own, and link to them."""
    path = tmp_path / "here" / "file"
    first, second = tmp_path / "first" / "kept", tmp_path / "second" / "kept"
    for each in (path, first, second):
        each.parent.mkdir()
    first.write_text("one", encoding="utf-8")
    second.write_text("three", encoding="utf-8")
    path.symlink_to(first)
    told: list[str] = []

    async def follow() -> None:
        async with aclosing(changes(path)) as changed:
            async for _ in changed:
                told.append(path.read_text(encoding="utf-8"))
                steps.pop(0)()

    def lead_elsewhere() -> None:
        path.unlink()
        path.symlink_to(second)

    def stop() -> None:
        group.cancel_scope.cancel()

    steps: list[Callable[[], object]] = [
        lead_elsewhere,
        lambda: second.write_text("four", encoding="utf-8"),
        stop,
    ]
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            group.start_soon(follow)
            await anyio.wait_all_tasks_blocked()
            first.write_text("two", encoding="utf-8")

    assert told == ["two", "three", "four"]


def make_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def make_endless(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("change", [rewrite, replace, remove, swap_link, make_pipe, make_endless])
async def test_a_change_is_told_once(tmp_path: Path, change: Callable[[Path], None]) -> None:
    path = tmp_path / "file"
    path.write_text("one", encoding="utf-8")
    told: list[None] = []

    async def follow() -> None:
        async for _ in changes(path):
            told.append(None)
            group.cancel_scope.cancel()

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            group.start_soon(follow)
            await anyio.wait_all_tasks_blocked()
            change(path)

    assert told == [None]


async def test_a_change_since_the_file_was_read_is_told(tmp_path: Path) -> None:
    """Whoever has read it may take a while before they follow it."""
    path = tmp_path / "file"
    path.write_text("two", encoding="utf-8")
    known = sha256(b"one").digest()

    with anyio.fail_after(PATIENCE):
        async with aclosing(changes(path, known)) as changed:
            told = await anext(changed)

    assert told is None


async def test_what_leaves_the_content_alone_is_not_told(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("one", encoding="utf-8")
    told: list[str] = []

    async def follow() -> None:
        async for _ in changes(path):
            told.append(path.read_text(encoding="utf-8"))
            group.cancel_scope.cancel()

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            group.start_soon(follow)
            await anyio.wait_all_tasks_blocked()
            os.utime(path)
            (tmp_path / "neighbour").write_text("x", encoding="utf-8")
            path.write_text("one", encoding="utf-8")
            path.write_text("two", encoding="utf-8")

    assert told == ["two"]


async def test_a_file_that_goes_and_comes_back_with_its_directory_is_followed(
    tmp_path: Path,
) -> None:
    path = tmp_path / "inner" / "file"
    path.parent.mkdir()
    path.write_text("one", encoding="utf-8")
    gone, back = anyio.Event(), anyio.Event()

    async def follow() -> None:
        async for _ in changes(path):
            (back if gone.is_set() else gone).set()

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            group.start_soon(follow)
            await anyio.wait_all_tasks_blocked()
            path.unlink()
            path.parent.rmdir()
            await gone.wait()
            path.parent.mkdir()
            path.write_text("two", encoding="utf-8")
            await back.wait()
            group.cancel_scope.cancel()


async def test_a_change_during_another_is_told(tmp_path: Path) -> None:
    """As of an editor that saves twice, or a program that writes while we read."""
    path = tmp_path / "file"
    path.write_text("one", encoding="utf-8")
    told: list[str] = []

    with anyio.fail_after(PATIENCE):
        async with aclosing(changes(path, sha256(b"nothing").digest())) as changed:
            async for _ in changed:
                told.append(path.read_text(encoding="utf-8"))
                if told != ["one"]:
                    break
                path.write_text("two", encoding="utf-8")

    assert told == ["one", "two"]


class TestOverTime:
    """On the virtual clock."""

    @pytest.fixture
    def anyio_backend(self, virtual_time: object) -> object:
        return virtual_time

    async def test_a_change_is_told_soon(self, tmp_path: Path) -> None:
        path = tmp_path / "file"
        path.write_text("one", encoding="utf-8")
        told: list[float] = []
        written = anyio.current_time() + 3600.1

        async def follow() -> None:
            async for _ in changes(path):
                told.append(anyio.current_time())
                group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(follow)
            await anyio.sleep_until(written)
            # Of another length: on this clock an hour may be less than a file system can tell.
            path.write_text("another", encoding="utf-8")

        assert told[0] - written <= LOOKING + SETTLING


async def test_a_pipe_that_has_been_read_changes_only_when_a_file_takes_its_place(
    tmp_path: Path,
) -> None:
    path, known = tmp_path / "file", sha256(b"one").digest()
    os.mkfifo(path)
    told: list[str] = []

    async def follow() -> None:
        async for _ in changes(path, known):
            told.append(path.read_text(encoding="utf-8"))
            group.cancel_scope.cancel()

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            group.start_soon(follow)
            await anyio.wait_all_tasks_blocked()
            replace(path)

    assert told == ["two"]
