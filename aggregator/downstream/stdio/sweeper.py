"""End what a dead aggregator has left running: a program of its own, started by `watchdog`.

It reads `=cookie`, `+pid start` and `-pid` lines on standard input. When that ends, its parent is
gone for whatever reason: every group still held, and every process whose environment carries the
cookie, gets SIGTERM and then SIGKILL. It imports next to nothing, to stay small.
"""

import os
import signal
import time

GRACE = 1.0
"""Seconds between SIGTERM and SIGKILL."""

INTERVAL = 0.05
"""Seconds between two looks at what is still alive."""

PASSES = 40
"""Times SIGKILL is sent to what still appears, so that nothing can fork its way out."""

STATE, GROUP, START = 0, 2, 19
"""Where `/proc/<pid>/stat` has these, counted from behind the name."""


class Held:
    """The groups to end, and the cookie that marks what has left them."""

    def __init__(self) -> None:
        self.cookie = b""
        self.groups: dict[int, int] = {}

    def note(self, line: bytes) -> None:
        """Follow one line of the parent."""
        kind, words = line[:1], line[1:].split()
        if kind == b"=":
            self.cookie = words[0]
        elif kind == b"+":
            self.groups[int(words[0])] = int(words[1])
        elif kind == b"-":
            self.groups.pop(int(words[0]), None)

    def forget_strangers(self) -> None:
        """Let go of groups whose number now belongs to a process that started at another time."""
        self.groups = {
            group: start for group, start in self.groups.items() if start_time(group) in (0, start)
        }

    def signal(self, number: int) -> bool:
        """Send a signal to all that is left; say whether there was anything."""
        self.forget_strangers()
        if not os.path.isdir("/proc/self"):  # noqa: PTH112 - pathlib costs megabytes here
            return _signal([-group for group in self.groups], number)
        return _signal([pid for pid in _processes() if self._is_ours(pid)], number)

    def _is_ours(self, pid: int) -> bool:
        fields = _stat(pid)
        if not fields or fields[STATE] in b"ZX":
            return False
        return int(fields[GROUP]) in self.groups or self._carries_cookie(pid)

    def _carries_cookie(self, pid: int) -> bool:
        return bool(self.cookie) and self.cookie in _read(f"/proc/{pid}/environ")


def start_time(pid: int) -> int:
    """Return when a process started, in the kernel's ticks; 0 if that cannot be known."""
    fields = _stat(pid)
    return int(fields[START]) if fields else 0


def is_living(group: int) -> bool:
    """Say whether a group has a process that runs, rather than one that nobody has reaped yet."""
    return any(
        int(fields[GROUP]) == group and fields[STATE] not in b"ZX"
        for pid in _processes()
        if (fields := _stat(pid))
    )


def main() -> None:
    """Wait for the parent to end, then end what it has left."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    held = Held()
    _follow(held)
    _sweep(held)


def _follow(held: Held) -> None:
    rest = b""
    while chunk := os.read(0, 65536):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            held.note(line)


def _sweep(held: Held) -> None:
    if not held.signal(signal.SIGTERM):
        return
    deadline = time.monotonic() + GRACE
    while held.signal(0) and time.monotonic() < deadline:
        time.sleep(INTERVAL)
    for _ in range(PASSES):
        if not held.signal(signal.SIGKILL):
            return
        time.sleep(INTERVAL)


def _processes() -> list[int]:
    own = os.getpid()
    names = os.listdir("/proc")  # noqa: PTH208 - pathlib costs megabytes here
    return [int(name) for name in names if name.isdigit() and int(name) != own]


def _stat(pid: int) -> list[bytes]:
    # The name, in brackets, may hold spaces and brackets of its own.
    return _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - pathlib costs megabytes here
            return file.read()
    except OSError:
        return b""


def _signal(pids: list[int], number: int) -> bool:
    """Send a signal to each, a negative number being a group; say whether any was there."""
    found = False
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:
            continue
        found = True
    return found


if __name__ == "__main__":
    main()
