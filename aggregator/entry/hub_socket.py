"""Where clients and the hub of a person meet: a directory that is theirs alone, and a socket in it.

The socket's name stands for everything that must be the same on both sides: version, interpreter,
installation, the person's rights, and what of the system is seen from here. So nobody is ever
served by a hub that an upgrade has left behind, or by one on the other side of a container's wall.

`_socket` is what `socket` is made of; the latter takes longer to load than a client has to wait.
"""

import _socket
import os
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from zlib import crc32

from aggregator import __version__

if sys.platform != "win32":
    import fcntl

NAMESPACES = ("mnt", "pid", "user", "net")
"""What a container may see otherwise than others do."""
MAX_PATH = 100
"""Bytes that the path of a socket may have on every system."""

SOCKET, LOCK, LOG = ".sock", ".lock", ".log"
"""How the names of what belongs to one hub end."""


class HubSocketError(Exception):
    """There is no place where a hub could be met safely."""


class HubSocket:
    """The open directory, and the names in it that are this program's."""

    def __init__(self, path: str, descriptor: int, name: str) -> None:
        self.path = path
        self.descriptor = descriptor
        self.name = name

    @property
    def log(self) -> str:
        """The file that the hub writes to."""
        return f"{self.path}/{self.name}{LOG}"

    def address(self, name: str) -> str:
        """Return by what path a socket in the directory is reached, however long its own is."""
        if sys.platform == "linux":
            # Also, it is the very directory that was looked at.
            return f"/proc/self/fd/{self.descriptor}/{name}"
        path = f"{self.path}/{name}"
        if len(os.fsencode(path)) > MAX_PATH:
            raise HubSocketError(f"`{self.path}` is too long a path for a socket")
        return path

    def connect(self, name: str | None = None) -> _socket.socket | None:
        """Return a connection to the hub, or nothing if none listens.

        Raises:
            DockError: Somebody else does.
        """
        connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        try:
            connection.connect(self.address(name or self.name + SOCKET))
        except OSError:
            connection.close()
            return None
        if peer(connection)[1] != os.geteuid():
            connection.close()
            raise HubSocketError(f"the hub in `{self.path}` is another user's")
        return connection

    def lock(self) -> int | None:
        """Return what whoever is to be the hub holds for life, or nothing if another has it."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        held = os.open(self.name + LOCK, flags, 0o600, dir_fd=self.descriptor)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(held)
            return None
        return held

    def close(self) -> None:
        """Let go of the directory."""
        os.close(self.descriptor)


def open_hub_socket(environ: Mapping[str, str]) -> HubSocket:
    """Return where this person's hub is, or is to be.

    Raises:
        DockError: It is not theirs alone.
    """
    path = directory(environ)
    with suppress(FileExistsError):
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            raise
        except OSError as error:
            raise HubSocketError(f"`{path}` cannot be made: {error.strerror}") from None
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise HubSocketError(f"`{path}` is not a directory of ours: {error.strerror}") from None
    status = os.fstat(descriptor)
    if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o077:
        os.close(descriptor)
        raise HubSocketError(f"`{path}` is open to other users")
    return HubSocket(path, descriptor, f"hub-{crc32(identity().encode('utf-8', 'replace')):08x}")


def directory(environ: Mapping[str, str]) -> str:
    """Return which directory is meant for what lives as long as a person is logged in."""
    # Many clients start us with next to no variables: they must find what a terminal finds.
    usual = f"/run/user/{os.geteuid()}"
    usual = usual if _is_ours(usual) else ""
    places = (environ.get("XDG_RUNTIME_DIR", ""), usual, environ.get("TMPDIR", ""), "/tmp")  # noqa: S108 - the name in it is checked
    base = next(place for place in places if place.startswith("/"))
    return f"{base.rstrip('/')}/aggregator-{os.geteuid()}"


def _is_ours(path: str) -> bool:
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()


def identity() -> str:
    """Return what must be the same for a client and its hub."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    installed = os.stat(f"{package}/__init__.py")
    root = os.stat("/")
    rights = (os.geteuid(), os.getegid(), sorted(os.getgroups()))
    seen = (root.st_dev, root.st_ino, *map(_namespace, NAMESPACES))
    program = (__version__, sys.version, sys.executable, package, installed.st_mtime_ns)
    return repr((program, rights, seen))


def peer(connection: _socket.socket) -> tuple[int, int]:
    """Return the process and the user at the other end, the process being 0 if it is not told."""
    if sys.platform == "linux":
        told = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
        return _integer(told[:4]), _integer(told[4:8])
    # LOCAL_PEERCRED of SOL_LOCAL: a version, then the user.
    told = connection.getsockopt(0, 1, 8)
    return 0, _integer(told[4:8])


def _integer(raw: bytes) -> int:
    return int.from_bytes(raw, sys.byteorder)


def _namespace(name: str) -> str:
    try:
        return os.readlink(f"/proc/self/ns/{name}")
    except OSError:
        return ""
