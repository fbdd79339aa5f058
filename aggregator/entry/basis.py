"""What the answers of a start rest on: where any of it is different, they may be, too."""

import json
import os
import stat
import sys
from collections.abc import Iterable, Mapping

from aggregator import __version__
from aggregator.entry.place import lock_path, state_directory

try:
    # It is what `hashlib` would give, which takes longer: it loads OpenSSL.
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

DIRECTORY = "ahead"
"""Where, in the directory of a user's state, what was answered is kept."""
MAX_BYTES = 4 * 1024 * 1024
"""Bytes of one file that are looked at; where one has more, nothing is answered ahead."""
VARIABLES = ("AGGREGATOR_TOOL_SEARCH", "HOME")
"""Variables that every configuration rests on."""

_SIZE = 20


class Basis:
    """What a start rests on, whoever its client is and whatever it asks."""

    __slots__ = ("config", "digest", "directory", "profile")

    def __init__(self, config: str, directory: str, digest: bytes, profile: str = "") -> None:
        self.config = config
        """The file of the configuration."""
        self.directory = directory
        """Where what was answered is kept."""
        self.digest = digest
        """What stands for the configuration, what was approved, ourselves, and the profile."""
        self.profile = profile
        """What the client is to see, if that is said."""

    def path(self, method: str, params: object) -> str:
        """Return the file of what was answered to a client that begins with this."""
        name = digest_of(self.digest, method.encode(), digest_of_params(params)).hex()
        return os.path.join(self.directory, f"{name}.json")

    def is_firm(self, variables: Mapping[str, str]) -> bool:
        """Whether all of it is as it was."""
        found = find_basis(self.config, variables, self.profile)
        return found is not None and found.digest == self.digest


def find_basis(config: str, variables: Mapping[str, str], profile: str = "") -> Basis | None:
    """Return what a start with this configuration rests on; `None` where that cannot be told.

    Who is to see something else starts from another basis, and so has records of its own.
    """
    state = state_directory(variables)
    if state is None:
        return None
    values = [repr(variables.get(name)) for name in VARIABLES]
    try:
        files = [_content(path) for path in (config, lock_path(config))]
        ourselves = [__version__, __file__, sys.executable, sys.version, *map(repr, _installed())]
    except (OSError, ValueError):
        return None
    texts = [_bytes(text) for text in (*ourselves, *values, config, profile)]
    return Basis(config, os.path.join(state, DIRECTORY), digest_of(*texts, *files), profile)


def stamp_of(
    salt: str, names: Iterable[str], files: Iterable[str], variables: Mapping[str, str]
) -> str | None:
    """Return what stands for the values of variables and the content of files.

    `None` where that cannot be told.
    """
    values = [_bytes(f"{name}={variables.get(name)!r}") for name in names]
    try:
        contents = [_content(path) for path in files]
    except (OSError, ValueError):
        return None
    # What it is made of may be secret, and short enough to be guessed: with salt, nobody has a
    # table of all guesses.
    return digest_of(salt.encode(), *values, *contents).hex()


def digest_of(*parts: bytes) -> bytes:
    """Return what stands for some bytes, and for where each part of them ends."""
    digest = blake2b(digest_size=_SIZE)
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.digest()


def digest_of_params(params: object) -> bytes:
    """Return what stands for all that a client says with a request."""
    return digest_of(json.dumps(params, sort_keys=True).encode())


def _installed() -> list[int]:
    """Return what is different once other versions of what we use are installed."""
    packages = [each for each in sys.path if each.endswith("-packages")]
    return [os.stat(each).st_mtime_ns for each in packages if os.path.isdir(each)]


def _content(path: str) -> bytes:
    """Return what is in a file, told apart from there being none.

    Raises:
        OSError: It cannot be read.
        ValueError: It is no file, or too long.
    """
    try:
        # Who opens a pipe takes part in it: whoever writes there would think to be read.
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise ValueError(path)
        with open(path, "rb", buffering=0) as file:
            found = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return b""
    if len(found) > MAX_BYTES:
        raise ValueError(path)
    return b"=" + found


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogateescape")
