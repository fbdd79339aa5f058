"""Nothing of ours outlives us, and a watchdog that dies is replaced."""

import os
import signal
import sys

import anyio
import pytest

from aggregator.downstream.stdio.child import ChildSpec, open_child
from aggregator.downstream.stdio.sweeper import start_time
from aggregator.downstream.stdio.watchdog import Watchdog
from tests.census import Census, look
from tests.downstream.stdio.orphans import expected, outlived
from tests.downstream.stdio.running import faulty, running, until, watched
from tests.patience import PATIENCE

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
@pytest.mark.slow
def test_however_we_end_all_processes_are_gone(number: int):
    """Among them are some that ignore the end of input and SIGTERM, fork, and leave the group."""
    started, _seconds, left = outlived(10, number)
    assert started == expected(10)
    assert left == []


async def test_without_children_there_is_no_process(census: Census):
    async with Watchdog() as watchdog:
        assert watchdog.pid is None


async def test_a_process_that_left_its_group_ends_with_us(census: Census):
    async with watched(census) as watchdog:
        async with running(faulty(), watchdog) as server:
            with anyio.fail_after(PATIENCE):
                pid = int(await server.text("fault", kind="daemon"))
        assert look(pid) is not None
    left = look(pid)
    assert left is None or left.state == "Z"


async def test_a_watchdog_that_is_killed_is_replaced_and_told_again(census: Census):
    async with watched(census) as watchdog, running(faulty(), watchdog) as server:
        with anyio.fail_after(PATIENCE):
            await server.text("echo")
            first, replaced = watchdog.pid, watchdog.started
            assert first is not None
            os.kill(first, signal.SIGKILL)
            await replaced.wait()
            assert watchdog.pid != first
            assert await server.text("echo", text="unharmed") == "unharmed"
            async with running(faulty(), watchdog) as another:
                assert await another.text("echo", text="held") == "held"


async def test_signals_do_not_end_a_watchdog(census: Census):
    async with watched(census) as watchdog, running(faulty(), watchdog) as server:
        with anyio.fail_after(PATIENCE):
            await server.text("echo")
            pid = watchdog.pid
            assert pid is not None
            # Its signals are set before anything else; before that it is not up.
            await until(lambda: bool(_ignored(pid) >> (signal.SIGTERM - 1) & 1))
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                os.kill(pid, number)
            assert await server.text("echo", text="a moment") == "a moment"
            assert watchdog.pid == pid
            assert os.getsid(pid) == pid


def _ignored(pid: int) -> int:
    with open(f"/proc/{pid}/status", encoding="ascii") as file:  # noqa: PTH123
        return next(int(line.split()[1], 16) for line in file if line.startswith("SigIgn"))


async def test_children_run_even_where_no_watchdog_can(
    census: Census, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    async with watched(census) as watchdog:
        async with open_child(ChildSpec("cat"), log=print, watchdog=watchdog) as child:
            assert watchdog.pid is None
            assert child.exit_status() is None


def test_a_start_time_tells_a_process_from_its_successor():
    assert start_time(os.getpid()) > 0
    assert start_time(2**22 + 1) == 0
