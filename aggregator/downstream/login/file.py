"""The file that keeps one login: for its owner's eyes, replaced whole, changed by one at a time."""

import os
import stat
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from hashlib import sha256
from pathlib import Path

import anyio

from aggregator.basics.files import in_words, look_at, read_within, replace_file
from aggregator.downstream.login.record import Login, as_text, from_text

MAX_BYTES = 256 * 1024
"""Bytes that one login may have."""
DIGITS = 16
"""Hexadecimal digits that a file is named by."""
TURN = 20.0
"""Seconds to wait for whoever changes a login now: it does not take longer to renew one."""
TRYING = 0.02
"""Seconds between two attempts to have one's turn."""
LOOKING = 1.0
"""Seconds between two looks at a file that somebody is to change."""

Look = tuple[int, ...]
"""What is different when a file is another or has changed; empty if there is none."""


class LoginFileError(Exception):
    """A login that cannot be read or kept, in words that fit behind a colon."""


class LoginFile:
    """Keeps one login."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._name = str(path)

    def look(self) -> Look:
        """Return what tells this content from any other, without reading it."""
        return look_at(self._name)

    def read(self) -> Login | None:
        """Return the login, if there is one.

        Raises:
            LoginFileError: What is there cannot be used.
        """
        try:
            status = self.path.lstat()
            _check(self.path, status)
            content = read_within(self.path, MAX_BYTES)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise LoginFileError(f"`{self.path}` cannot be read: {in_words(error)}") from error
        try:
            return from_text(content.decode())
        except (ValueError, RecursionError) as error:
            raise LoginFileError(
                f"`{self.path}` holds no login: remove it and log in again"
            ) from error

    def write(self, login: Login) -> None:
        """Keep a login in the place of the one before.

        Raises:
            LoginFileError: It cannot be kept; the one before is as it was.
        """
        try:
            self._make_directory()
            replace_file(self.path, as_text(login).encode())
        except OSError as error:
            raise LoginFileError(f"`{self.path}` cannot be written: {in_words(error)}") from error

    def remove(self) -> None:
        """Forget the login.

        Raises:
            LoginFileError: It cannot be removed.
        """
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            raise LoginFileError(f"`{self.path}` cannot be removed: {in_words(error)}") from error

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[None, None]:
        """Be the only one on this machine who changes the login, for the length of the block.

        Raises:
            LoginFileError: Somebody else does not come to an end.
        """
        # Most runs renew nothing.
        from filelock import FileLock, Timeout  # noqa: PLC0415 - see above

        try:
            self._make_directory()
            # Whoever waits does so in the loop: a thread that waits cannot be called off.
            lock = FileLock(self.path.with_suffix(".lock"), mode=0o600, thread_local=False)
            with anyio.move_on_after(TURN):
                while not lock.is_locked:
                    with suppress(Timeout):
                        lock.acquire(blocking=False)
                        break
                    await anyio.sleep(TRYING)
        except OSError as error:
            raise LoginFileError(f"`{self.path}` cannot be locked: {in_words(error)}") from error
        if not lock.is_locked:
            raise LoginFileError("another program holds its login and does not let go of it")
        try:
            yield
        finally:
            lock.release()

    async def until_changed(self, since: Look) -> None:
        """Wait until the file is not what it was."""
        while True:
            if self.look() != since:
                return
            await anyio.sleep(LOOKING)

    def _make_directory(self) -> None:
        directory = self.path.parent
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.name == "posix" and stat.S_IMODE(directory.stat().st_mode) & 0o077:
            directory.chmod(0o700)


def login_file(directory: Path, url: str, client_id: str | None) -> LoginFile:
    """Return where the login to a server is kept, whatever the server is called."""
    key = sha256(f"{url}|{client_id or ''}".encode()).hexdigest()
    return LoginFile(directory / f"{key[:DIGITS]}.json")


def _check(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
        raise LoginFileError(f"`{path}` holds no login: remove it and log in again")
    if os.name == "posix" and stat.S_IMODE(status.st_mode) & 0o077:
        raise LoginFileError(
            f"others can read `{path}`, so what it holds is no secret: "
            "remove it, log in again, and revoke the old login where it was given"
        )
