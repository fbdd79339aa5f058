"""The keys that replicas share: who may have them, and how one takes the place of another."""

import base64
import os
from pathlib import Path

import pytest

from aggregator.upstream.http.binding import BindingError
from aggregator.upstream.http.replicas.cipher import SharedCipher
from aggregator.upstream.http.replicas.key_file import ensure_keys
from aggregator.upstream.seal import ForeignStateError

OLD, NEW = (base64.b64encode(bytes([number]) * 32).decode() for number in (1, 2))


def written(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="ascii")
    path.chmod(0o600)
    return path


def test_a_key_is_made_where_there_is_none_and_is_a_secret(tmp_path: Path) -> None:
    path = tmp_path / "new" / "key"
    first, second = ensure_keys(path), ensure_keys(path)

    assert first.known == second.known
    assert len(first.known[0]) == 32
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "holds no key"),
        ("short", "not 32 bytes in base64"),
        (base64.b64encode(b"x" * 31).decode(), "not 32 bytes in base64"),
        ("é" * 44, "not 32 bytes in base64"),
        ("x" * 5000, "is not one"),
        ("\n".join([OLD] * 5), "holds more than 4 keys"),
    ],
)
def test_what_is_no_key_is_refused_in_a_sentence(
    tmp_path: Path, content: str, problem: str
) -> None:
    path = tmp_path / "key"
    path.write_text(content, encoding="utf-8")
    path.chmod(0o600)

    with pytest.raises(BindingError, match=problem):
        ensure_keys(path)


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
def test_a_key_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    path = written(tmp_path / "key", OLD)
    path.chmod(mode)

    with pytest.raises(BindingError, match="can be read by others"):
        ensure_keys(path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_key_that_is_lent_to_our_group_as_in_a_container_is_taken(tmp_path: Path) -> None:
    path = written(tmp_path / "key", OLD)
    os.chown(path, 4242, os.getegid())
    path.chmod(0o440)
    assert ensure_keys(path).known

    path.chmod(0o444)
    with pytest.raises(BindingError, match="can be read by others"):
        ensure_keys(path)


def test_a_directory_and_a_file_that_cannot_be_made_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BindingError, match="is not one"):
        ensure_keys(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(BindingError, match="cannot be used"):
        ensure_keys(tmp_path / "file" / "key")


def test_the_first_key_seals_and_all_of_them_open(tmp_path: Path) -> None:
    old = SharedCipher(ensure_keys(written(tmp_path / "old", OLD)))
    both = SharedCipher(ensure_keys(written(tmp_path / "both", NEW, OLD)))
    new = SharedCipher(ensure_keys(written(tmp_path / "new", NEW)))

    assert both.open("x", old.close("x", b"old")) == b"old"
    assert new.open("x", both.close("x", b"new")) == b"new"
    with pytest.raises(ForeignStateError):
        old.open("x", both.close("x", b"new"))


def test_a_key_changes_while_we_run_and_stays_while_the_file_cannot_be_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = written(tmp_path / "key", OLD)
    keys = ensure_keys(path)
    written(path, NEW, OLD)
    keys.look()
    assert len(keys.known) == 2

    written(path, "nonsense")
    keys.look()
    keys.look()
    assert len(keys.known) == 2
    (said,) = (each.getMessage() for each in caplog.records if each.levelname == "ERROR")
    assert said.endswith("a line that is not 32 bytes in base64; the keys stay as they were")

    path.unlink()
    keys.look()
    assert len(keys.known) == 2
    written(path, NEW)
    keys.look()
    assert len(keys.known) == 1


def test_what_is_sealed_for_one_thing_is_worth_nothing_for_another(tmp_path: Path) -> None:
    cipher = SharedCipher(ensure_keys(tmp_path / "key"))
    closed = cipher.close("session", b"secret")

    assert b"secret" not in closed
    assert cipher.close("session", b"secret") != closed
    damaged = [
        closed[:number] + bytes([closed[number] ^ 1]) + closed[number + 1 :]
        for number in range(len(closed))
    ]
    for each in (*damaged, closed[:-1], closed + b"x", b"", b"\x01", closed[:12]):
        with pytest.raises(ForeignStateError):
            cipher.open("session", each)
    with pytest.raises(ForeignStateError):
        cipher.open("request state", closed)
