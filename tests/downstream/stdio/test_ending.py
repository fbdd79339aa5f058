"""A child is ended politely, then firmly, and always; what it said last is kept."""

import os
import signal
import sys
from collections import Counter
from typing import Any

import anyio
import pytest
from mcp_types import JSONRPCRequest

from aggregator.config import ServerConfig
from aggregator.downstream.stdio.child import ChildSpec, open_child
from aggregator.downstream.stdio.process import GRACE, spawn
from aggregator.downstream.transport import ConnectionClosedError, NotSentError
from aggregator.jsonrpc.pipes import close_pipe
from aggregator.names import ServerName
from aggregator.secrecy import Redaction
from tests.census import Census, look
from tests.downstream.stdio.running import Running, faulty, running, until, watched
from tests.patience import PATIENCE

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("manners", "least", "end"),
    [
        ((), 0, "exited with status 0"),
        (("--ignore-eof",), GRACE, "was ended by SIGTERM"),
        (("--ignore-eof", "--ignore-term"), 2 * GRACE, "was ended by SIGKILL"),
        (("--fork",), GRACE, "exited with status 0"),
    ],
    ids=["polite", "ignores-eof", "ignores-all", "leaves-a-process"],
)
@pytest.mark.slow
async def test_a_child_has_time_to_end_by_itself(
    manners: tuple[str, ...], least: float, end: str, census: Census
):
    async with watched(census) as watchdog:
        async with running(faulty("ok", *manners), watchdog) as server:
            with anyio.fail_after(PATIENCE):
                await server.text("echo")
            started = anyio.current_time()
        assert anyio.current_time() - started >= least
        assert server.child.describe_end() == f"it {end}"


UNREAPED = """
import os, sys, time
group = os.getpid()
if not os.fork():
    os.setpgid(0, 0)
    if not os.fork():
        os.setpgid(0, group)
        os._exit(0)
    os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
    print(os.getpid(), flush=True)
    time.sleep(3600)
sys.stdin.read()
"""
"""Leaves a process in its group that has ended, of a parent elsewhere that does not reap it."""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells it from one that runs")
async def test_what_nobody_reaps_is_not_waited_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("aggregator.downstream.stdio.process.GRACE", 10 * PATIENCE)
    process, pipes = spawn([sys.executable, "-c", UNREAPED], {}, None)
    try:
        await anyio.wait_readable(pipes.stdout)
        parent = int(pipes.stdout.read())
        pipes.stdin.close()
        with anyio.fail_after(PATIENCE):
            await process.end(PATIENCE)
    finally:
        process.close()
        for pipe in (pipes.stdout, pipes.stderr):
            close_pipe(pipe)
    os.kill(parent, signal.SIGKILL)


@pytest.mark.slow
async def test_cancelling_does_not_cut_the_ending_short(census: Census):
    async with watched(census) as watchdog:
        pids = list[int]()
        with anyio.CancelScope() as scope:
            async with running(faulty("ok", "--ignore-eof"), watchdog) as server:
                with anyio.fail_after(PATIENCE):
                    await server.text("echo")
                pids.append(server.child.pid)
                scope.cancel()
        assert [look(pid) for pid in pids] == [None]


async def test_a_child_that_is_still_starting_is_not_waited_for(
    census: Census, monkeypatch: pytest.MonkeyPatch
):
    """It would not see that its input has ended, and has nothing to bring to an end."""
    monkeypatch.setattr("aggregator.downstream.stdio.child.GRACE", 10 * PATIENCE)
    starting = ChildSpec(sys.executable, ["-c", "import time; time.sleep(3600)"])
    async with watched(census) as watchdog:
        with anyio.fail_after(PATIENCE):
            async with open_child(starting, log=print, watchdog=watchdog) as child:
                pass
        assert child.describe_end() == "it was ended by SIGTERM"


async def test_a_child_stuck_on_a_full_pipe_can_still_end(census: Census):
    """Nobody reads the megabyte it answers with, and only then could it see that we are gone."""
    ping = JSONRPCRequest(jsonrpc="2.0", id=0, method="ping")
    params = {"name": "fault", "arguments": {"kind": "storm"}}
    request = JSONRPCRequest(jsonrpc="2.0", id=1, method="tools/call", params=params)
    async with watched(census) as watchdog:
        async with open_child(faulty(), log=print, watchdog=watchdog) as child:
            await child.send(ping)
            await child.receive()
            await child.send(request)
        assert child.describe_end() == "it exited with status 0"


async def test_a_caller_that_waits_for_room_is_told_when_its_server_is_ended(census: Census):
    errors = list[Exception]()

    async def call(server: Running) -> None:
        errors.append(await server.error("echo", text="x" * 200_000))

    async with watched(census) as watchdog, anyio.create_task_group() as group:
        async with running(faulty(), watchdog) as server:
            with anyio.fail_after(PATIENCE):
                await server.text("fault", kind="stop_reading")
                for _ in range(3):
                    group.start_soon(call, server)
                await until(lambda: server.child.write_blocked_since is not None)
    assert Counter(map(type, errors)) == {ConnectionClosedError: 1, NotSentError: 2}


async def test_children_end_in_parallel(census: Census):
    ready = [anyio.Event() for _ in range(5)]
    stop = anyio.Event()
    stopped = 0.0
    async with watched(census) as watchdog, anyio.create_task_group() as group:

        async def live(here: anyio.Event) -> None:
            async with running(faulty("ok", "--ignore-eof"), watchdog) as server:
                await server.text("echo")
                here.set()
                await stop.wait()

        for each in ready:
            group.start_soon(live, each)
        with anyio.fail_after(PATIENCE):
            for each in ready:
                await each.wait()
        stop.set()
        stopped = anyio.current_time()
    assert anyio.current_time() - stopped < len(ready) * GRACE


async def test_the_last_lines_of_stderr_are_kept_and_safe_to_show(census: Census):
    async with watched(census) as watchdog, running(faulty(), watchdog) as server:
        with anyio.fail_after(PATIENCE):
            await server.text("fault", kind="stderr", size=10_000)
            assert str(await server.error("fault", kind="exit"))
            await until(lambda: server.child.last_words()[-1].text == "cannot go on")
            tail = [line.text for line in server.child.last_words()]
            assert tail[0] == r"\x1b[31mwarning\x1b[0m: something odd happened"
            assert len("\n".join(tail)) < 40_000
    assert [stream for stream, _ in server.logged].count("stderr") == 5


@pytest.mark.parametrize("way", ["env", "inherited"])
async def test_what_a_child_was_given_is_not_shown(census: Census, way: str):
    given: dict[str, Any] = {way: {"API_KEY": "canary-1"}}
    server_config = ServerConfig(ServerName("db"), "db", **given)
    spec = faulty(**given, redact=Redaction(server_config.given()))
    async with watched(census) as watchdog, running(spec, watchdog) as server:
        with anyio.fail_after(PATIENCE):
            await server.text("fault", kind="secret")
            await until(lambda: len(server.logged) == 2)
        assert sorted(map(str, server.child.last_words())) == [
            "not a message on standard output: the key is [API_KEY]",
            "the key is [API_KEY]",
        ]
        assert "canary" not in "".join(line for _, line in server.logged)
    assert "canary" not in repr(spec)
