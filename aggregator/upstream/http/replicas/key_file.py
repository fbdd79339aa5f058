"""The keys that replicas have in common, in a file that only its owner can read.

One stands in each line: the first seals, all open. Whoever replaces a key adds the new one behind
the old everywhere, then moves it to the top everywhere, then takes the old one out: at no time
does a replica seal what another cannot open.
"""

import base64
import binascii
import logging
import os
import secrets
import stat
from pathlib import Path

from aggregator.basics.files import in_words, look_at
from aggregator.upstream.http.binding import BindingError

logger = logging.getLogger(__name__)

KEY_BYTES = 32
MAX_FILE_BYTES = 4096
MAX_KEYS = 4
"""Keys at a time: whatever is sealed by none of them is held against each."""

_MAKE = "`openssl rand -base64 32` makes one"


class KeyFile:
    """The keys in a file, as they are now."""

    def __init__(self, path: Path) -> None:
        """Read the file.

        Raises:
            BindingError: It cannot be used, or is not a secret.
        """
        self.path = path
        try:
            self._stamp = look_at(path)
            self.known = _read(path)
        except OSError as error:
            raise BindingError(_unusable(path, error)) from error

    def look(self) -> None:
        """Read the file again if it is another; while it cannot be used, the keys stay."""
        stamp = look_at(self.path)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self.known = _read(self.path)
        except (BindingError, OSError) as error:
            reason = str(error)
            if isinstance(error, OSError):
                reason = _unusable(self.path, error)
            logger.error("%s; the keys stay as they were", reason)  # noqa: TRY400 - said whole
        else:
            logger.info("the keys in `%s` have changed", self.path)


def ensure_keys(path: Path) -> KeyFile:
    """Return the keys in a file, which is made with a new one if there is none.

    Raises:
        BindingError: It cannot be made, cannot be used, or is not a secret.
    """
    try:
        if not path.exists():
            _make(path)
    except OSError as error:
        raise BindingError(_unusable(path, error)) from error
    return KeyFile(path)


def _unusable(path: Path, error: OSError) -> str:
    return f"the key file `{path}` cannot be used: {in_words(error)}"


def _make(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(base64.b64encode(secrets.token_bytes(KEY_BYTES)) + b"\n")
        # Of two processes that make one at the same time, the second takes the first's.
        os.link(temporary, path)
    except FileExistsError:
        pass
    finally:
        temporary.unlink()


def _read(path: Path) -> tuple[bytes, ...]:
    status = path.stat()
    if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_FILE_BYTES:
        raise BindingError(f"the key file `{path}` is not one", "Name another file")
    if _is_open_to_others(status):
        raise BindingError(
            f"the key file `{path}` can be read by others",
            f"`chmod 600 {path}`, if nobody has read it; else put another key there",
        )
    lines = path.read_text(encoding="ascii", errors="replace").split("\n")
    keys = tuple(_key(path, line.strip()) for line in lines if line.strip())
    if not keys:
        raise BindingError(f"the key file `{path}` holds no key", f"{_MAKE}, one in each line")
    if len(keys) > MAX_KEYS:
        raise BindingError(
            f"the key file `{path}` holds more than {MAX_KEYS} keys", "Take out the oldest"
        )
    return keys


def _key(path: Path, line: str) -> bytes:
    try:
        key = base64.b64decode(line, altchars=b"-_" if {*"-_"} & {*line} else None, validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise BindingError(
            f"the key file `{path}` has a line that is not {KEY_BYTES} bytes in base64", _MAKE
        )
    return key


def _is_open_to_others(status: os.stat_result) -> bool:
    """Whether a file is no secret; one that is lent to us, as in a container, is our group's."""
    if os.name != "posix":
        return False
    others = 0o077 if status.st_uid == os.geteuid() else 0o007
    return bool(stat.S_IMODE(status.st_mode) & others)
