"""The secret that clients over HTTP must know, in a file that only its owner can read."""

import os
import secrets
import stat
from pathlib import Path

from aggregator.basics.files import in_words
from aggregator.upstream.http.binding import BindingError

TOKEN_BYTES = 32
MAX_FILE_BYTES = 4096
"""Bytes that a file with a token may have."""


def ensure_token(path: Path) -> str:
    """Return the token in a file, which is made with a new one if there is none.

    Raises:
        BindingError: The file cannot be made, or is not a secret.
    """
    try:
        return _read(path) or _made(path)
    except OSError as error:
        reason = in_words(error)
        raise BindingError(
            f"the token file `{path}` cannot be used: {reason}",
            "Name another with `--token-file`, or set `AGGREGATOR_TOKEN`",
        ) from error


def check_token(token: str) -> None:
    """See to it that a token that was given to us can be sent, and not be guessed.

    Raises:
        BindingError: It cannot, or it can.
    """
    if not _is_usable(token):
        raise BindingError(
            f"the token that was given is not {TOKEN_BYTES} printable characters long or longer",
            "`openssl rand -hex 32` makes one",
        )


def _is_usable(token: str) -> bool:
    is_sendable = token.isascii() and token.isprintable() and " " not in token
    return is_sendable and len(token) >= TOKEN_BYTES


def _read(path: Path) -> str | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_FILE_BYTES:
        raise BindingError(f"the token file `{path}` is not one", "Remove it; another is made")
    if os.name == "posix" and stat.S_IMODE(status.st_mode) & 0o077:
        raise BindingError(
            f"the token file `{path}` can be read by others",
            "Remove it, so that another token is made, and give that to your clients",
        )
    token = path.read_text(encoding="ascii", errors="replace").strip()
    if not _is_usable(token):
        raise BindingError(f"the token file `{path}` holds none", "Remove it; another is made")
    return token


def _made(path: Path) -> str:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    token = secrets.token_urlsafe(TOKEN_BYTES)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{token}\n")
        # Of two processes that make one at the same time, the second takes the first's.
        os.link(temporary, path)
    except FileExistsError:
        return _read(path) or token
    finally:
        temporary.unlink()
    return token
