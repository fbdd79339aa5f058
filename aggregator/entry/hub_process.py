"""Start the hub as a process of its own, away from whoever happened to need it first."""

import os
import sys
from contextlib import suppress

from aggregator.entry.hub_socket import LOG, HubSocket

PROGRAM = "aggregator.cli.hub"
"""The module that is the hub."""

KEPT = (
    "HOME",
    "PATH",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "TMPDIR",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
)
"""What the hub itself keeps of the first client's environment; servers get that of their own."""
PREFIXES = ("LC_", "PYTHON")


def start(hub_socket: HubSocket, lock: int) -> None:
    """Start the hub, which takes over the lock; return once nothing of it depends on us.

    Raises:
        OSError: There can be no more processes.
    """
    try:
        child = os.fork()
        if child == 0:
            _leave(hub_socket, lock)
        os.waitpid(child, 0)
    finally:
        os.close(lock)


def _leave(hub_socket: HubSocket, lock: int) -> None:
    """Become a process that no terminal and no client takes along when it ends."""
    try:
        os.setsid()
        if os.fork():
            os._exit(0)
        os.chdir("/")
        _redirect(hub_socket)
        os.set_inheritable(lock, True)
        os.set_inheritable(hub_socket.descriptor, True)
        words = [hub_socket.path, str(hub_socket.descriptor), hub_socket.name, str(lock)]
        program = [sys.executable, "-P", "-m", PROGRAM]
        os.execve(sys.executable, [*program, *words], _environment())  # noqa: S606 - our own
    finally:
        os._exit(1)


def _redirect(hub_socket: HubSocket) -> None:
    """Have nothing of the client's, and a file for what there is to say."""
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    with suppress(OSError):
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        log = os.open(hub_socket.name + LOG, flags, 0o600, dir_fd=hub_socket.descriptor)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
    # What a client has left open is not ours to keep open.
    for descriptor in _descriptors() - {0, 1, 2}:
        os.set_inheritable(descriptor, False)


def _descriptors() -> set[int]:
    for place in ("/proc/self/fd", "/dev/fd"):
        with suppress(OSError):
            names = os.listdir(place)
            return {int(name) for name in names if os.path.exists(f"{place}/{name}")}
    return set()


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    named = {name: value for name, value in os.environ.items() if name.startswith(PREFIXES)}
    # Where we were loaded from, if that is no place where Python looks by itself.
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    path = [package, *filter(None, named.get("PYTHONPATH", "").split(os.pathsep))]
    return {**kept, **named, "PYTHONPATH": os.pathsep.join(dict.fromkeys(path))}
