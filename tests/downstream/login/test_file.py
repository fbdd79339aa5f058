"""The file of a login: who may read it, how it is replaced, and whose turn it is."""

import os
import resource
import stat
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from aggregator.downstream.login.file import TURN, LoginFile, LoginFileError, login_file
from tests.downstream.login.logins import login
from tests.patience import patience

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


@pytest.fixture
def file(tmp_path: Path) -> LoginFile:
    return login_file(tmp_path / "state" / "logins", "https://mcp.example.com/mcp", None)


def test_only_its_owner_can_read_it(file: LoginFile) -> None:
    file.write(login())

    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.path.parent.stat().st_mode) == 0o700
    assert file.read() == login()


def test_a_directory_that_others_can_enter_is_closed(file: LoginFile) -> None:
    file.path.parent.mkdir(parents=True)
    file.path.parent.chmod(0o755)

    file.write(login())

    assert stat.S_IMODE(file.path.parent.stat().st_mode) == 0o700


def test_what_others_can_read_is_not_used(file: LoginFile) -> None:
    file.write(login())
    file.path.chmod(0o640)

    with pytest.raises(LoginFileError, match="others can read"):
        file.read()


def test_what_is_no_login_is_told(file: LoginFile) -> None:
    file.path.parent.mkdir(parents=True)
    file.path.write_text("{}", encoding="utf-8")
    file.path.chmod(0o600)

    with pytest.raises(LoginFileError, match="holds no login"):
        file.read()


def test_a_link_to_elsewhere_is_not_followed(file: LoginFile, tmp_path: Path) -> None:
    file.path.parent.mkdir(parents=True)
    (tmp_path / "other").write_text("{}", encoding="utf-8")
    file.path.symlink_to(tmp_path / "other")

    with pytest.raises(LoginFileError, match="holds no login"):
        file.read()


def test_one_that_cannot_be_written_leaves_the_old_one(file: LoginFile) -> None:
    file.write(login())
    kept = file.path.with_name("kept")
    os.link(file.path, kept)
    file.path.unlink()
    file.path.mkdir()

    with pytest.raises(LoginFileError, match="cannot be written"):
        file.write(login(access_token="access-2"))  # noqa: S106 - of nobody

    file.path.rmdir()
    kept.replace(file.path)
    assert file.read() == login()
    assert [each.name for each in file.path.parent.iterdir()] == [file.path.name]


def test_a_full_disk_leaves_the_old_one(file: LoginFile) -> None:
    file.write(login())
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(LoginFileError, match="cannot be written"):
            file.write(login(access_token="access-2"))  # noqa: S106 - of nobody
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    assert file.read() == login()
    assert [each.name for each in file.path.parent.iterdir()] == [file.path.name]


def test_there_is_none_before_there_is_one(file: LoginFile) -> None:
    assert file.read() is None
    file.remove()
    assert file.look() == ()


def test_servers_are_told_apart_by_address_and_client(tmp_path: Path) -> None:
    places = {
        login_file(tmp_path, url, client).path
        for url in ("https://a/mcp", "https://b/mcp")
        for client in (None, "one")
    }

    assert len(places) == 4


async def test_one_has_a_turn_after_the_other(file: LoginFile) -> None:
    order: list[str] = []

    async def take(name: str) -> None:
        async with LoginFile(file.path).turn():
            order.append(name)
            await anyio.lowlevel.checkpoint()
            order.append(name)

    with anyio.fail_after(patience()):
        async with anyio.create_task_group() as group:
            for name in "abc":
                group.start_soon(take, name)

    assert [order[at] == order[at + 1] for at in (0, 2, 4)] == [True] * 3


async def test_a_turn_that_never_comes_is_given_up(file: LoginFile) -> None:
    began = anyio.current_time()
    async with file.turn():
        with pytest.raises(LoginFileError, match="another program holds its login"):
            async with LoginFile(file.path).turn():
                raise AssertionError

    assert anyio.current_time() - began == pytest.approx(TURN)
