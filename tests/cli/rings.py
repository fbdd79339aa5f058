"""Keyrings that are a file, locked, or silent; `PYTHON_KEYRING_BACKEND` names one of them."""

import json
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import keyring
from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked, PasswordDeleteError, PasswordSetError

FILE = "TEST_KEYRING"
"""The variable that says where the file is."""


@contextmanager
def in_use(ring: KeyringBackend) -> Generator[None, None, None]:
    """Let this process have a ring, and then the one it had before."""
    before = keyring.get_keyring()
    keyring.set_keyring(ring)
    try:
        yield
    finally:
        keyring.set_keyring(before)


class FileRing(KeyringBackend):
    """Keeps secrets in a file that anybody can look into."""

    # A process finds whatever class of ring it has loaded, and one that nobody named must not be
    # taken: this is less than the ring of a system that has none, and than what is ever chained.
    priority = -1.0  # pyright: ignore[reportAssignmentType]

    def get_password(self, service: str, username: str) -> str | None:
        return self._read().get(f"{service}/{username}")

    def set_password(self, service: str, username: str, password: str) -> None:
        self._write({**self._read(), f"{service}/{username}": password})

    def delete_password(self, service: str, username: str) -> None:
        kept = self._read()
        if kept.pop(f"{service}/{username}", None) is None:
            raise PasswordDeleteError(username)
        self._write(kept)

    @property
    def _path(self) -> Path:
        return Path(os.environ[FILE])

    def _read(self) -> dict[str, str]:
        return json.loads(self._path.read_text(encoding="utf-8")) if self._path.exists() else {}

    def _write(self, kept: dict[str, str]) -> None:
        self._path.write_text(json.dumps(kept), encoding="utf-8")


class LockedRing(FileRing):
    """Does not let anybody in."""

    def _read(self) -> dict[str, str]:
        raise KeyringLocked("the collection is locked")


class BrokenRing(FileRing):
    """Raises what no ring should."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

    def _read(self) -> dict[str, str]:
        raise self.error


class TalkativeRing(FileRing):
    """Says what it could not keep."""

    def set_password(self, service: str, username: str, password: str) -> None:
        raise PasswordSetError(f"cannot store {password!r} for {service}/{username}")


class SilentRing(FileRing):
    """Waits for a person who does not come."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        self.heard = Event()
        self.unlocked = Event()

    def _read(self) -> dict[str, str]:
        self.asked += 1
        self.heard.set()
        self.unlocked.wait()
        return {}
