"""A file is replaced whole or not at all."""

import stat
from pathlib import Path

import pytest

from aggregator.files import in_words, replace_file


def test_a_file_is_replaced_whole_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"before")

    replace_file(path, b"after", mode=0o640)

    assert path.read_bytes() == b"after"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert list(tmp_path.iterdir()) == [path]


def test_without_a_mode_only_the_owner_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "file"

    replace_file(path, b"secret")

    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_cannot_be_replaced_is_left_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "folder"
    path.mkdir()

    with pytest.raises(IsADirectoryError):
        replace_file(path, b"content")

    assert list(tmp_path.iterdir()) == [path]


def test_what_the_system_says_is_put_into_words() -> None:
    assert in_words(PermissionError(13, "Permission denied", "/secret")) == "permission denied"
    assert in_words(OSError("odd")) == "odd"
