"""What the machine has to give to a process that starts: processors, and its share of one."""

import os
from pathlib import Path

LOADS = Path("/proc/loadavg")
QUOTA = Path("/sys/fs/cgroup/cpu.max")
LEAST_SHARE = 0.05
"""A share that is taken for the least there is: some of those who want a processor soon wait."""


def processors() -> int:
    """Return how many processors we and our children may use."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, min(usable or 1, _quota() or usable or 1))


def share_of_one(starting: int) -> float:
    """Return how much of a processor each of so many servers gets that start now, one at most.

    Linux tells how many want one, whoever they are; elsewhere, and where a container may use only
    some of them, each that starts is taken to want a whole one.
    """
    wanting = _wanting() if _quota() is None else None
    # Who asks is running at this moment, and counted.
    busy, given = (starting, processors()) if wanting is None else (wanting - 1, os.cpu_count())
    return max(LEAST_SHARE, min(1.0, (given or 1) / max(1, busy)))


def _wanting() -> int | None:
    """Return how many tasks of the whole machine run or could run, where the system says so."""
    try:
        return int(LOADS.read_text("ascii").split()[3].partition("/")[0])
    except (OSError, ValueError, IndexError):
        return None


def _quota() -> int | None:
    """Return how many processors a container may use, if it may not use all."""
    try:
        most, period = QUOTA.read_text("ascii").split()
        return None if most == "max" else max(1, round(int(most) / int(period)))
    except (OSError, ValueError, ZeroDivisionError):
        return None
