"""Have a server answer with one message of each size and kind, and see how far memory grows.

python -m tests.downstream.stdio.memory [KIND SIZE] ...
"""

import subprocess
import sys
import time
from pathlib import Path

import anyio
from mcp.shared.exceptions import MCPError

from aggregator.downstream.stdio.child import MAX_MESSAGE_BYTES
from aggregator.downstream.stdio.watchdog import Watchdog
from tests.downstream.stdio.running import Running, faulty, running

ROOT = Path(__file__).parents[3]

MEBIBYTE = 1 << 20

ALLOWED = 4 * MAX_MESSAGE_BYTES + 16 * MEBIBYTE
"""Bytes that memory may grow by, whatever one message holds."""

SIZES = (1, 1_000, *(MEBIBYTE * each for each in (1, 2, 4, 8, 16, 17, 64, 256)))

KINDS = (
    "hugeline",
    "hugebytes",
    "hugewide",
    "hugeemoji",
    "hugeescapes",
    "hugeobjects",
    "hugenumbers",
    "hugerows",
    "hugekeys",
    "hugestrings",
    "hugetable",
)


async def grow(kind: str, size: int) -> None:
    """Take one such answer; print how far memory grew, the time it took us, and the outcome."""
    async with Watchdog() as watchdog, running(faulty(), watchdog) as server:
        await server.text("echo", text="x")
        forget_high_water()
        before, started = high_water(), time.process_time()
        outcome = await outcome_of(server, kind, size)
        seconds = time.process_time() - started
        growth = high_water() - before
        assert await server.text("echo", text="alive") == "alive"
    sys.stdout.write(f"{growth} {seconds} {outcome}\n")


async def outcome_of(server: Running, kind: str, size: int) -> str:
    try:
        await server.call("fault", kind=kind, size=size)
    except MCPError as error:
        return "refused" if "could not be used" in error.error.message else "lost"
    return "passed"


def forget_high_water() -> None:
    """Begin to look for the most memory anew."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def high_water() -> int:
    """Return the most memory we have had since it was last reset, in bytes."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return 1024 * next(
        int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")
    )


def measured(kind: str, size: int) -> tuple[int, float, str]:
    """Measure in a process of its own, since memory is given back late or never."""
    command = [sys.executable, "-m", "tests.downstream.stdio.memory", "--grow", kind, str(size)]
    growth, seconds, outcome = subprocess.check_output(command, cwd=ROOT, text=True).split()
    return int(growth), float(seconds), outcome


def report(kind: str, size: int) -> None:
    growth, seconds, outcome = measured(kind, size)
    verdict = "ok" if growth <= ALLOWED else "TOO MUCH"
    sys.stdout.write(
        f"{kind:12} {size:>11,} bytes {outcome:8} {seconds:6.2f} s "
        f"+{growth / MEBIBYTE:6.1f} MiB {verdict}\n"
    )
    sys.stdout.flush()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--grow", kind, size]:
            anyio.run(grow, kind, int(size))
        case [kind, size]:
            report(kind, int(size))
        case _:
            for kind in KINDS:
                for size in SIZES:
                    report(kind, size)
