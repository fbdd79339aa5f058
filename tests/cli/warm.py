"""A Python that has loaded the aggregator already, to start another one with.

Most commands ask an aggregator of their own, a process that `Environment.python` starts; nearly all
that such a test takes is what that process takes to import. Here one process imports it all, once
for each worker, and has a copy of itself do what was typed, with the descriptors, the variables and
the directory of whoever typed it. How an aggregator starts is tested elsewhere, without this.
"""

import atexit
import json
import os
import random
import runpy
import select
import signal
import socket
import sys
import tempfile
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from tests.census import LASTING

LOADED = (
    "aggregator.app.life",
    "aggregator.cli.serve",
    "aggregator.config.yaml_document",
    "aggregator.entry.ahead",
    "aggregator.records.stats",
    "aggregator.search.index",
    "aggregator.upstream.searching",
)
"""What `serve` imports, with all that these import."""
HEAD = 8
"""Bytes that say how many follow."""

LAUNCHER = """\
#!{python} -IS
import json, os, signal, socket, sys

words = json.dumps([sys.argv[1:], dict(os.environ), os.getcwd()]).encode()
with socket.socket(socket.AF_UNIX) as door:
    door.connect({door!r})
    socket.send_fds(door, [len(words).to_bytes({head}, "big")], [0, 1, 2])
    door.sendall(words)
    # Whoever reads to the end of it must not wait for us.
    os.closerange(0, 3)
    answers = door.makefile("r")
    copy = int(answers.readline())
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(each, lambda number, _frame: os.kill(copy, number))
    status = int(answers.readline() or -9)
if status < 0:
    signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
os._exit(status)
"""
"""Has a command done by a copy, and ends as it does."""


@cache
def warm_python() -> str:
    """Return what to start in the place of Python; it ends with this process."""
    if not hasattr(os, "pidfd_open"):
        return sys.executable
    folder = tempfile.TemporaryDirectory(prefix="warm-")
    atexit.register(folder.cleanup)
    door = Path(folder.name) / "door"
    launcher = Path(folder.name) / "python"
    text = LAUNCHER.format(python=sys.executable, door=str(door), head=HEAD)
    launcher.write_text(text, encoding="utf-8")
    launcher.chmod(0o700)
    leash, held = os.pipe()
    ready, is_ready = os.pipe()
    # It is nobody's child: a test that counts its own does not count it.
    if (between := os.fork()) == 0:
        os.setsid()
        if os.fork() == 0:
            for each in (leash, is_ready):
                os.set_inheritable(each, True)
            command = [sys.executable, "-m", "tests.cli.warm", str(door), str(leash), str(is_ready)]
            os.chdir(Path(__file__).parents[2])
            os.execv(sys.executable, command)  # noqa: S606 - it is ours
        os._exit(0)
    os.waitpid(between, 0)
    os.close(leash)
    os.close(is_ready)
    os.read(ready, 1)
    os.close(ready)
    os.set_inheritable(held, False)
    LASTING.add(held)
    return str(launcher)


def _stand_by(door: str, leash: int, is_ready: int) -> None:
    """Load what `serve` needs, then have copies do what is typed until the leash is let go."""
    for each in LOADED:
        import_module(each)
    nothing = os.open(os.devnull, os.O_RDWR)
    for each in range(3):
        os.dup2(nothing, each)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(door)
        listener.listen()
        os.write(is_ready, b"\n")
        os.close(is_ready)
        while leash not in select.select([leash, listener], [], [])[0]:
            caller, _ = listener.accept()
            if os.fork() == 0:
                os.close(leash)
                listener.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                _keep(caller)
            caller.close()


def _keep(caller: socket.socket) -> NoReturn:
    """Have a copy do what the caller typed, and tell how it ended; who leaves early ends it."""
    head, streams, _, _ = socket.recv_fds(caller, HEAD, 3)
    size, words = int.from_bytes(head, "big"), b""
    while len(words) < size:
        words += caller.recv(size - len(words))
    if (copy := os.fork()) == 0:
        caller.close()
        _become(streams, *json.loads(words))
    for each in streams:
        os.close(each)
    caller.sendall(f"{copy}\n".encode())
    end = os.pidfd_open(copy)
    if end not in select.select([caller, end], [], [])[0]:
        os.kill(copy, signal.SIGKILL)
    _, status = os.waitpid(copy, 0)
    caller.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


def _become(
    streams: list[int], typed: list[str], variables: dict[str, str], there: str
) -> NoReturn:
    """Be the process that would have been started."""
    for at, each in enumerate(streams):
        os.dup2(each, at)
        os.close(each)
    os.chdir(there)
    os.environ.clear()
    os.environ.update(variables)
    random.seed()
    sys.stdin, sys.stdout, sys.stderr = (
        open(at, mode, encoding="utf-8", closefd=False)  # noqa: SIM115 - for good
        for at, mode in enumerate(("r", "w", "w"))
    )
    assert typed[:2] == ["-m", "aggregator"], typed
    sys.argv = ["aggregator", *typed[2:]]
    runpy.run_module("aggregator", run_name="__main__")
    sys.exit()


if __name__ == "__main__":
    _stand_by(sys.argv[1], *map(int, sys.argv[2:]))
