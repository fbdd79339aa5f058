"""A file is read within bounds, and replaced whole or not at all."""

import os
import stat
from pathlib import Path

import pytest

from aggregator.basics.files import in_words, read_within, replace_file


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


def test_a_file_that_cannot_be_made_is_called_by_its_own_name(tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "file"

    with pytest.raises(FileNotFoundError) as caught:
        replace_file(path, b"content")

    assert caught.value.filename == str(path)


def test_what_the_system_says_is_put_into_words() -> None:
    assert in_words(PermissionError(13, "Permission denied", "/secret")) == "permission denied"
    assert in_words(OSError("odd")) == "odd"


def test_no_more_is_read_than_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")

    assert read_within(path, 10) == b"12345"
    assert read_within(path, 3) == b"1234"
    assert len(read_within(Path("/dev/zero"), 100_000)) == 100_001
    assert read_within(Path(os.devnull), 10) == b""


def test_a_pipe_is_read_to_its_end() -> None:
    """As of `--config <(command)`."""
    output, written = os.pipe()
    os.write(written, b"servers: {}")
    os.close(written)

    assert read_within(Path(f"/dev/fd/{output}"), 100) == b"servers: {}"
    os.close(output)


def test_a_pipe_whose_end_does_not_come_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(TimeoutError, match="nobody writes"):
        read_within(path, 100, deadline=0.0)

    writer = os.open(path, os.O_RDWR)
    os.write(writer, b"half")
    with pytest.raises(TimeoutError):
        read_within(path, 100, deadline=0.0)
    os.close(writer)


def test_a_directory_is_none(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        read_within(tmp_path, 100)
