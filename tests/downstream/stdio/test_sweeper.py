"""The program that outlives us ends what it was told to, and nobody else."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from aggregator.downstream.stdio import sweeper
from aggregator.downstream.stdio.sweeper import Held, start_time
from tests.census import Census
from tests.patience import PATIENCE

PROGRAM = str(sweeper.__file__)


@pytest.fixture
def process(census: Census) -> Iterator[subprocess.Popen[bytes]]:
    """A process in a group of its own, whose environment carries a cookie."""
    environment = {"COOKIE": f"crumb-{os.getpid()}"}
    command = [sys.executable, "-ISc", "import signal; print(flush=True); signal.pause()"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, env=environment, start_new_session=True
    ) as popen:
        assert popen.stdout is not None
        popen.stdout.readline()
        yield popen
        popen.kill()


def held(*lines: str) -> Held:
    held = Held()
    for line in lines:
        held.note(line.encode())
    return held


def test_a_group_that_is_held_is_ended(process: subprocess.Popen[bytes]):
    holding = held(f"+{process.pid} {start_time(process.pid)}")
    assert holding.signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == -signal.SIGTERM
    assert not holding.signal(0)


def test_a_zombie_is_not_waited_for(process: subprocess.Popen[bytes]):
    holding = held(f"+{process.pid} {start_time(process.pid)}")
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert not holding.signal(0)


def test_a_group_that_is_released_is_left_alone(process: subprocess.Popen[bytes]):
    assert not held(f"+{process.pid} {start_time(process.pid)}", f"-{process.pid}").signal(0)


def test_a_number_that_was_given_to_another_process_is_left_alone(
    process: subprocess.Popen[bytes],
):
    assert not held(f"+{process.pid} {start_time(process.pid) - 1}").signal(0)


def test_a_process_with_the_cookie_is_ended_wherever_it_went(process: subprocess.Popen[bytes]):
    assert not held(f"=another-crumb-{os.getpid()}").signal(0)
    assert held(f"=crumb-{os.getpid()}").signal(signal.SIGKILL)
    assert process.wait(PATIENCE) == -signal.SIGKILL


def test_the_program_ends_with_its_input_and_takes_what_it_holds(
    process: subprocess.Popen[bytes],
):
    told = f"=crumb\n+{process.pid} {start_time(process.pid)}\n"
    subprocess.run(
        [sys.executable, "-IS", PROGRAM], input=told.encode(), check=True, timeout=PATIENCE
    )
    assert process.wait(PATIENCE) == -signal.SIGTERM


def test_the_program_without_anything_to_hold_ends_at_once():
    subprocess.run([sys.executable, "-IS", PROGRAM], input=b"", check=True, timeout=PATIENCE)
