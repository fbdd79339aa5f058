"""Count what a test leaves behind: processes, zombies and descriptors.

with census() as counted:          # or the fixture of the same name, where a conftest imports it
    counted.cookies.add(watchdog.cookie)   # finds even what has left our family

Linux only; elsewhere it counts nothing.
"""

import gc
import os
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.ends import await_ends
from tests.patience import PATIENCE

PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Seen:
    """A process as the kernel describes it."""

    pid: int
    parent: int
    state: str
    command: str

    def __str__(self) -> str:
        zombie = " (zombie)" if self.state == "Z" else ""
        return f"{self.pid} {self.command}{zombie}"


LASTING: set[int] = set()
"""Descriptors that this process keeps until it ends, whichever test was the first to need them."""


@dataclass(slots=True)
class Census:
    """What was there before, and the cookies to look for."""

    cookies: set[str] = field(default_factory=set[str])
    ignored: set[int] = field(default_factory=set[int])
    descriptors: dict[int, str] = field(default_factory=dict[int, str])

    def living(self) -> set[int]:
        """Return the processes that were not there before."""
        return {each.pid for each in self._processes()}

    def left(self) -> list[str]:
        """Describe everything that was not there before."""
        opened = {
            f"descriptor {fd}: {target}"
            for fd, target in descriptors().items()
            if self.descriptors.get(fd) != target and fd not in LASTING
        }
        return sorted({f"process {each}" for each in self._processes()} | opened)

    def _processes(self) -> list[Seen]:
        return [
            each
            for each in [*descendants(os.getpid()), *carrying(self.cookies)]
            if each.pid not in self.ignored
        ]


@contextmanager
def census() -> Generator[Census]:
    """Fail if the block leaves a process, a zombie or a descriptor behind."""
    before = Census(
        ignored={each.pid for each in descendants(os.getpid())}, descriptors=descriptors()
    )
    yield before
    assert not remaining(before), f"left behind: {before.left()}"


def remaining(counted: Census, patience: float = PATIENCE) -> list[str]:
    """Return what is still left when it should have gone."""
    if counted.left():
        gc.collect()
    deadline = time.monotonic() + patience
    while (left := counted.left()) and time.monotonic() < deadline:
        await_ends(counted.living(), deadline - time.monotonic())
        # A zombie has ended; whoever is to take note of it may need a turn for that.
        os.sched_yield()
    return left


@pytest.fixture(name="census")
def census_fixture() -> Iterator[Census]:
    """The census of one test."""
    with census() as counted:
        yield counted


def processes() -> list[Seen]:
    """Return every process that can be looked at."""
    if not PROC.is_dir():
        return []
    pids = [int(each.name) for each in PROC.iterdir() if each.name.isdigit()]
    return [seen for pid in pids if (seen := look(pid)) is not None]


def look(pid: int) -> Seen | None:
    """Return a process, unless it is gone."""
    try:
        name, _, rest = (PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")
        command = (PROC / str(pid) / "cmdline").read_text(errors="replace").replace("\0", " ")
    except OSError:
        return None
    state, parent = rest.split()[:2]
    return Seen(pid, int(parent), state, command.strip() or name.partition("(")[2])


def descendants(pid: int) -> list[Seen]:
    """Return the family of a process, itself left out."""
    everyone = processes()
    family, found = {pid}, list[Seen]()
    grown = True
    while grown:
        born = [each for each in everyone if each.parent in family and each.pid not in family]
        family |= {each.pid for each in born}
        found += born
        grown = bool(born)
    return found


def carrying(cookies: set[str]) -> list[Seen]:
    """Return the processes that have one of the cookies in their environment."""
    wanted = [cookie.encode() for cookie in cookies]
    return [
        each
        for each in (processes() if wanted else [])
        if any(cookie in environment(each.pid) for cookie in wanted)
    ]


def environment(pid: int) -> bytes:
    """Return the environment a process was started with."""
    with suppress(OSError):
        return (PROC / str(pid) / "environ").read_bytes()
    return b""


def descriptors() -> dict[int, str]:
    """Return our own open descriptors and what they lead to."""
    found = dict[int, str]()
    for each in (PROC / "self" / "fd").iterdir() if PROC.is_dir() else ():
        with suppress(OSError):
            found[int(each.name)] = str(each.readlink())
    listing = [fd for fd, target in found.items() if target.startswith(f"/proc/{os.getpid()}/fd")]
    return {fd: target for fd, target in found.items() if fd not in listing}
