"""Measure what `docs/reliability.md` says, row by row.

python -m tests.soak [--quick] [--minutes N] [--seed N] [ROW ...]
"""

import argparse
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

import anyio

from aggregator.entry import shim
from tests.soak import (
    answers,
    canaries,
    costly,
    crowd,
    day,
    edits,
    ends,
    hangs,
    hub,
    kills,
    messages,
    mutations,
    neighbours,
    replicas,
    stalls,
    standstills,
    storms,
)


class BrokenPromiseError(Exception):
    """Something was measured that must not be."""


Row = Callable[[Path, bool], AsyncIterator[str]]
"""Yields the lines of one row; the directory is its own, and `quick` makes it shorter."""


async def kill_row(directory: Path, quick: bool) -> AsyncIterator[str]:
    servers, times = (4, 8) if quick else (20, 100)
    found = await kills.measure(directory, servers=servers, kills=times, calls=100)
    yield f"{times} kills of {servers} servers under load"
    yield f"{found.calls} calls of the others, {len(found.wrong)} lost or wrong"
    slowest = 1000 * max(found.errors)
    yield f"{len(found.errors)} calls in flight, one error each, after {slowest:.0f} ms at the most"
    yield f"{len(found.odd_errors)} other errors, {len(found.strays)} answers to nobody"
    back = sorted(found.returns)
    yield f"back after {back[len(back) // 2]:.2f} s in the middle, {back[-1]:.2f} s at the most"


async def neighbour_row(directory: Path, quick: bool) -> AsyncIterator[str]:
    for name, fault in neighbours.NEIGHBOURS.items():
        found = await neighbours.measure(directory, fault, rounds=1 if quick else 8)
        quiet, beside = found.within()
        verdict = "ok" if beside <= found.allowed else "TOO MUCH"
        yield (
            f"{name:20} p99 {beside:6.2f} ms, {quiet:6.2f} ms in quiet, "
            f"{found.allowed:6.2f} ms allowed: {verdict}"
        )


async def hang_row(directory: Path, quick: bool) -> AsyncIterator[str]:
    waits = await hangs.measure(directory, 2.0, 2 if quick else 8)
    for what in sorted({each.what for each in waits}):
        longest = max(each.seconds for each in waits if each.what == what)
        yield f"{what}: at most {longest:.2f} s of a time-out of 2 s"


async def kill_us_row(directory: Path, quick: bool) -> AsyncIterator[str]:
    for _ in range(1 if quick else 20):
        found = await ends.measure(directory, signal.SIGKILL, 20 if quick else 100)
        yield f"{found.processes} processes, {len(found.left)} left after {found.seconds:.2f} s"


async def stop_us_row(directory: Path, quick: bool) -> AsyncIterator[str]:
    for _ in range(1 if quick else 5):
        found = await ends.measure(directory, signal.SIGTERM, 20 if quick else 100)
        yield (
            f"{found.processes} processes, exit with {found.status} after {found.exited:.2f} s, "
            f"{len(found.left)} left"
        )


async def message_row(directory: Path, quick: bool) -> AsyncIterator[str]:
    most, lost = 0, 0
    kinds = messages.KINDS[:2] if quick else messages.KINDS
    for kind in kinds:
        for size in messages.SIZES:
            found = await messages.measure(directory, kind, size)
            most, lost = max(most, found.growth), lost + (not found.survived)
            yield (
                f"{kind:12} {size:>11,} bytes {found.outcome:8} {found.seconds:5.2f} s "
                f"+{found.growth / messages.MEBIBYTE:5.1f} MiB"
            )
    allowed = messages.ALLOWED / messages.MEBIBYTE
    yield f"at most +{most / messages.MEBIBYTE:.1f} MiB of {allowed:.0f}, {lost} connections lost"


async def storm_row(directory: Path, quick: bool) -> AsyncIterator[str]:
    for kind in storms.STORMS:
        found = await storms.measure(directory, kind, 10_000 if quick else 100_000)
        growth = found.growth / messages.MEBIBYTE
        yield f"{kind:10} {found.seconds:5.1f} s, +{growth:.1f} MiB, {found.answer}"


async def mutation_row(directory: Path, quick: bool) -> AsyncIterator[str]:
    for side in (mutations.from_client, mutations.from_modern_client, mutations.from_server):
        found = await side(directory, 2_000 if quick else 100_000)
        alive = "alive" if found.alive else "DEAD"
        yield (
            f"{side.__name__}: {found.lines} damaged lines, {alive} afterwards, "
            f"{found.unanswered} unanswered, {found.slowest:.2f} s at the most, "
            f"{len(found.trouble)} unhandled exceptions in the log"
        )


async def stall_row(directory: Path, quick: bool) -> AsyncIterator[str]:
    found = await stalls.during_calls(directory)
    found += await stalls.during_listings(directory, 100 if quick else 5_000)
    found += await standstills.measure(directory)
    found += await answers.during_requests(directory)
    found += await answers.during_listening(directory, 8_000)
    found += await answers.during_changes(directory, 20 if quick else 100)
    for kind in costly.CROWDS:
        found += await answers.during_crowds(directory, kind)
    found.sort(key=lambda stall: stall.busy)
    for stall in found[-10:]:
        work, late = 1000 * stall.busy, 1000 * stall.late
        yield f"{stall.fault:24} {work:6.1f} ms of work, {late:6.1f} ms late"
    yield f"{len(found)} faults, at most {1000 * found[-1].busy:.0f} ms"


async def canary_row(directory: Path, quick: bool) -> AsyncIterator[str]:
    found = await canaries.measure(directory)
    yield f"{found.planted} secrets, {len(found.places)} places searched, {len(found.found)} found"
    for each in found.found:
        yield each


async def cold_row(directory: Path, quick: bool) -> AsyncIterator[str]:
    clients, times = (6, 2) if quick else (20, 20)
    found = [hub.cold(place(directory, number), clients, shim.PATIENCE) for number in range(times)]
    served, shared = (min(getattr(each, what) for each in found) for what in ("served", "shared"))
    hubs = sorted({each.hubs for each in found})
    yield f"{clients} clients at once, cold, {times} times: {hubs} hubs each time"
    yield f"at the least {served} served, {shared} of them by the hub"
    yield f"all after {max(each.seconds for each in found):.1f} s at the most"
    keep(hubs == [1] and served == clients)


async def killed_row(directory: Path, quick: bool) -> AsyncIterator[str]:
    clients, times = (4, 2) if quick else (10, 20)
    found = [hub.killed(place(directory, number), clients) for number in range(times)]
    told = sorted(1000 * each for one in found for each in one.told)
    yield f"kill -9 of the hub with {clients} clients, {times} times"
    yield f"told after {told[len(told) // 2]:.0f} ms in the middle, {told[-1]:.0f} at the most"
    orphans = sum(each.orphans for each in found)
    gone = max(each.gone for each in found)
    yield f"{orphans} orphans of {found[0].processes} after 3 s, all gone after {gone:.2f} s"
    works = sum(each.works for each in found)
    yield f"the next start worked {works} times"
    keep(not orphans and works == times and len(told) == clients * times)


async def sessions_row(directory: Path, quick: bool) -> AsyncIterator[str]:
    found = hub.passing(directory, 50 if quick else 1000, 20 if quick else 200)
    before, after = found.before, found.after
    yield f"{found.sessions} sessions opened and closed"
    mebibyte = messages.MEBIBYTE
    yield f"memory {before.memory / mebibyte:.1f} MiB before, {after.memory / mebibyte:.1f} after"
    yield f"descriptors {before.descriptors} before, {after.descriptors} after"
    yield f"tasks {before.tasks} before, {after.tasks} after"
    keep(after.descriptors <= before.descriptors and after.tasks <= before.tasks)


async def crossing_row(directory: Path, quick: bool) -> AsyncIterator[str]:
    for name, eras in hub.ERAS.items():
        found = hub.crossing(place(directory, name), eras, 8, 50 if quick else 1000)
        yield f"{name:10} {found.calls} calls of 8 clients, {found.crossed} crossed"
        keep(not found.crossed)


def place(directory: Path, name: object) -> Path:
    """Return a directory of its own for each turn."""
    made = directory / str(name)
    made.mkdir()
    return made


def keep(is_kept: bool) -> None:
    """Have a promise that is broken end a row.

    Raises:
        BrokenPromiseError: It is.
    """
    if not is_kept:
        raise BrokenPromiseError


async def crowd_row(directory: Path, quick: bool) -> AsyncIterator[str]:
    for servers in (0, 20 if quick else 200):
        found = await crowd.measure(directory, servers, 45)
        yield (
            f"{found.servers} servers, {found.tools} tools: first list after "
            f"{found.first_list:.2f} s, all ready after {found.ready:.1f} s, "
            f"{found.memory / messages.MEBIBYTE:.0f} MiB"
        )


async def edit_row(directory: Path, quick: bool) -> AsyncIterator[str]:
    times = 30 if quick else 500
    found = await edits.measure(directory, times)
    yield f"{times} edits under load, {found.refused} of them to a file that cannot be used"
    yield f"{found.calls} calls of unchanged servers, {len(found.wrong)} lost or wrong"
    drained = f"{len(found.torn)} calls of servers that changed meanwhile"
    yield f"{drained}, {found.torn.count(False)} not answered"
    yield f"{found.kept} times left alone, {len(found.replaced)} with another process"
    yield f"{len(found.unlike)} differences from the last good file, {len(found.left)} left over"
    yield f"applied after {max(found.seconds):.2f} s at the most, {len(found.trouble)} bugs logged"


def day_row(minutes: float | None, seed: int) -> Row:
    """Make the row of a day that long."""

    async def row(directory: Path, quick: bool) -> AsyncIterator[str]:
        length = minutes or (1 if quick else 8)
        servers, lulls = (6 if quick else 20), max(4, round(2 * length))
        found = await day.measure(
            directory, servers=servers, seconds=60 * length, lulls=lulls, seed=seed
        )
        yield f"{length:g} minutes, {servers} servers, half of them ill-treated, seed {seed}"
        for line in day.table(found):
            yield line
        if any(found.failures().values()):
            raise BrokenPromiseError

    return row


async def replicas_row(directory: Path, quick: bool) -> AsyncIterator[str]:
    clients, steps = (20, 30) if quick else (100, 125)
    async for line in replicas.measure(directory, clients, steps):
        yield line


async def replicas_nginx_row(directory: Path, quick: bool) -> AsyncIterator[str]:
    clients, steps = (20, 30) if quick else (100, 125)
    async for line in replicas.measure_behind_nginx(directory, clients, steps):
        yield line


async def replicas_store_row(directory: Path, quick: bool) -> AsyncIterator[str]:
    clients, steps = (20, 30) if quick else (100, 125)
    async for line in replicas.measure_with_store(directory, clients, steps):
        yield line


async def replicas_rate_row(directory: Path, quick: bool) -> AsyncIterator[str]:
    async for line in replicas.compare(directory, 40, 30 if quick else 150):
        yield line


ROWS: Mapping[str, Row] = {
    "kills": kill_row,
    "neighbours": neighbour_row,
    "hangs": hang_row,
    "sigkill": kill_us_row,
    "sigterm": stop_us_row,
    "messages": message_row,
    "storms": storm_row,
    "mutations": mutation_row,
    "stalls": stall_row,
    "canaries": canary_row,
    "crowd": crowd_row,
    "edits": edit_row,
    "hub-cold": cold_row,
    "hub-killed": killed_row,
    "hub-sessions": sessions_row,
    "hub-crossing": crossing_row,
    "replicas": replicas_row,
    "replicas-nginx": replicas_nginx_row,
    "replicas-store": replicas_store_row,
    "replicas-rate": replicas_rate_row,
}


async def main(rows: Mapping[str, Row], quick: bool) -> int:
    """Measure rows; return the exit status."""
    status = 0
    for name, row in rows.items():
        load = os.getloadavg()[0]
        sys.stdout.write(f"{name} (load of the machine {load:.1f})\n")
        with tempfile.TemporaryDirectory() as directory:
            try:
                async for line in row(Path(directory), quick):
                    sys.stdout.write(f"  {line}\n")
                    sys.stdout.flush()
            except BrokenPromiseError:
                status = 1
    return status


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.soak")
    parser.add_argument("rows", nargs="*", metavar="ROW", help=", ".join([*ROWS, "day"]))
    parser.add_argument("--quick", action="store_true", help="a short version")
    parser.add_argument("--minutes", type=float, help="how long the day is; default: 8")
    parser.add_argument("--seed", type=int, default=7, help="of the day's misfortunes")
    return parser.parse_args()


if __name__ == "__main__":
    given = arguments()
    known = {**ROWS, "day": day_row(given.minutes, given.seed)}
    if unknown := [word for word in given.rows if word not in known]:
        sys.exit(f"There is no row {', '.join(unknown)}. The rows are {', '.join(known)}.")
    wanted = {name: known[name] for name in given.rows or known}
    sys.exit(anyio.run(main, wanted, given.quick))
