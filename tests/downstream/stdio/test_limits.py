"""What a server's process may use at the most, and what of it is left alone when it ends."""

import os
import signal
import subprocess
import sys

import anyio
import pytest

from aggregator.config.limits import Limits
from aggregator.downstream.stdio.child import Child, ChildSpec, open_child
from aggregator.downstream.stdio.overrun import overrun
from aggregator.downstream.stdio.process import SpawnError
from tests.census import Census, look
from tests.downstream.stdio.running import until, watched
from tests.ends import await_ends
from tests.patience import PATIENCE

pytestmark = pytest.mark.anyio

TELL = """
import resource, sys
kinds = resource.RLIMIT_AS, resource.RLIMIT_NPROC, resource.RLIMIT_NOFILE
print(*(resource.getrlimit(kind)[0] for kind in kinds), *sys.argv[1:], flush=True)
sys.stdin.read()
"""
SERVER = """
import os, signal, subprocess
nothing = subprocess.DEVNULL
bound, free = (
    subprocess.Popen(["sleep", "1000"], stdin=nothing, stdout=nothing, stderr=nothing, **how)
    for how in ({}, {"start_new_session": True})
)
print(os.getpid(), bound.pid, free.pid, flush=True)
signal.pause()
"""
"""It does not end with its input, and has started two processes, one in a session of its own."""
DOOMED = """
import sys, anyio
from aggregator.downstream.stdio.child import ChildSpec, open_child
from aggregator.downstream.stdio.watchdog import Watchdog

async def main():
    spec = ChildSpec("sh", sys.argv[1:], detach=True)
    show = lambda _, line: print(line.rpartition(": ")[2], flush=True)
    async with Watchdog() as watchdog, open_child(spec, log=show, watchdog=watchdog) as child:
        await child.receive()

anyio.run(main)
"""
"""One of us, with a detached server, that says what the server says."""
LAUNCHERS = {"waits for it": '"$0" -c "$1"; true', "ends before it": '"$0" -c "$1" & cat'}


def quiet(_stream: str, _line: str) -> None:
    """Log nothing."""


async def said(spec: ChildSpec, census: Census) -> str:
    async with watched(census) as watchdog:
        async with open_child(spec, log=quiet, watchdog=watchdog) as child:
            async with anyio.create_task_group() as group:
                group.start_soon(read_on, child)
                await until(lambda: child.noise_count > 0)
                group.cancel_scope.cancel()
            return child.last_words()[0].text
    raise AssertionError  # pragma: no cover - the block returns or raises


async def read_on(child: Child) -> None:
    """Read what a child writes, none of which is a message."""
    with pytest.raises(anyio.EndOfStream):
        await child.receive()


async def test_limits_hold_for_the_process_from_its_first_moment(census: Census) -> None:
    limits = Limits(memory=1 << 32, processes=4000, files=200)
    spec = ChildSpec(sys.executable, ["-c", TELL, "a b"], limits=limits, inherited=os.environ)

    assert await said(spec, census) == f"{1 << 32} 4000 200 a b"


async def test_what_is_not_limited_stays_as_it_is(census: Census) -> None:
    limited = ChildSpec(sys.executable, ["-c", TELL], limits=Limits(files=200))
    plain = ChildSpec(sys.executable, ["-c", TELL])

    expected = (await said(plain, census)).split()

    assert (await said(limited, census)).split() == [*expected[:2], "200"]


async def test_a_server_that_wants_too_much_memory_fails_alone(census: Census) -> None:
    greedy = [sys.executable, "-c", "print(len(bytearray(1 << 33)))"]
    spec = ChildSpec(greedy[0], greedy[1:], limits=Limits(memory=1 << 30))
    async with watched(census) as watchdog:
        async with open_child(spec, log=quiet, watchdog=watchdog) as child:
            await read_on(child)
        told = "it exited with status 1, most likely for its `limits.memory`"
        assert child.describe_end() == told
        assert child.last_words()[-1].text == "MemoryError"


@pytest.mark.parametrize(
    ("status", "words", "limit"),
    [
        (1, "MemoryError", "memory"),
        (134, "FATAL ERROR: Reached heap limit - JavaScript heap out of memory", "memory"),
        (-signal.SIGKILL, "", "memory"),
        (-signal.SIGABRT, "terminate called", "memory"),
        (1, "OSError: [Errno 24] Too many open files: 'x'", "files"),
        (1, "Error: EMFILE: too many open files, open 'x'", "files"),
        (1, "RuntimeError: can't start new thread", "processes"),
        (254, "sh: 0: Cannot fork: Resource temporarily unavailable", "processes"),
        (0, "MemoryError", None),
        (1, "no database here", None),
        (-signal.SIGTERM, "", None),
    ],
)
def test_the_limit_that_a_process_died_of_is_named(
    status: int, words: str, limit: str | None
) -> None:
    every = Limits(memory=1 << 30, processes=10, files=10)

    assert overrun(every, status, [words]) == limit
    assert overrun(Limits(), status, [words]) is None


async def test_a_program_that_does_not_exist_is_told_as_without_limits(census: Census) -> None:
    spec = ChildSpec("no-such-program", limits=Limits(files=100))
    async with watched(census) as watchdog:
        with pytest.raises(SpawnError, match="was not found on PATH") as caught:
            async with open_child(spec, log=quiet, watchdog=watchdog):
                raise NotImplementedError

    assert isinstance(caught.value.__cause__, FileNotFoundError)


def running(*pids: int) -> set[int]:
    """Return those that have not ended, whether or not somebody took note of it."""
    return {pid for pid in pids if (seen := look(pid)) is not None and seen.state != "Z"}


@pytest.mark.slow
@pytest.mark.parametrize("launcher", LAUNCHERS.values(), ids=LAUNCHERS)
@pytest.mark.parametrize("detach", [False, True])
async def test_only_what_left_the_group_of_a_detached_server_outlives_it(
    census: Census, launcher: str, *, detach: bool
) -> None:
    words = ["-c", launcher, sys.executable, SERVER]
    spec = ChildSpec("sh", words, detach=detach, inherited=os.environ)
    server, bound, free = map(int, (await said(spec, census)).split())
    try:
        await_ends({server, bound} if detach else {server, bound, free}, PATIENCE)
        assert running(server, bound, free) == ({free} if detach else set())
    finally:
        kill(server, bound, free)


@pytest.mark.parametrize("launcher", LAUNCHERS.values(), ids=LAUNCHERS)
def test_only_what_left_the_group_of_a_detached_server_outlives_us(launcher: str) -> None:
    words = [sys.executable, "-c", DOOMED, "-c", launcher, sys.executable, SERVER]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        server, bound, free = map(int, parent.stdout.readline().split())
        parent.kill()
    try:
        await_ends({server, bound}, PATIENCE)
        assert running(server, bound, free) == {free}
    finally:
        kill(server, bound, free)


def kill(*pids: int) -> None:
    for pid in running(*pids):
        os.kill(pid, signal.SIGKILL)
