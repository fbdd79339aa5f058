"""Garbage is looked for among what is new, and memory that was needed once is given back."""

import gc
import platform
import subprocess
import sys
import weakref

import pytest

from aggregator.basics import garbage


class Knot:
    """Refers to itself, so that only a search finds out that nobody else does."""

    def __init__(self) -> None:
        self.itself = self


def test_what_stays_is_put_aside() -> None:
    garbage.begin()
    assert gc.isenabled()
    before = gc.get_freeze_count()
    kept = [Knot() for _ in range(100)]
    garbage.put_aside()

    assert gc.get_freeze_count() >= before + len(kept)


def test_what_is_garbage_already_is_not_put_aside() -> None:
    garbage.begin()
    gone = [weakref.ref(Knot()) for _ in range(100)]
    garbage.put_aside()

    assert [each() for each in gone] == [None] * 100


BLOCKS = """
import sys
from pathlib import Path
from aggregator.basics import garbage

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

garbage.give_back()
habit = bytearray(24 << 20)
del habit
before = resident()
# Something small that stays lies behind each block.
size = int(sys.argv[1])
blocks = [(bytearray(b"x" * size), bytearray(4096)) for _ in range((160 << 20) // size)]
kept = [small for _, small in blocks]
blocks.clear()
print(resident() - before >> 20)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="others give it back anyway")
@pytest.mark.parametrize("size", [8 << 20, 1 << 20])
def test_large_blocks_are_given_back_whatever_lies_between(size: int) -> None:
    command = [sys.executable, "-c", BLOCKS, str(size)]

    assert int(subprocess.check_output(command, text=True, timeout=60)) < 24


TURNS = """
import resource
from aggregator.basics import garbage

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def turn():
    line = bytes(1 << 20)
    return len(line.decode()) + len(bytearray(line))

garbage.give_back()
turn()
before = faults()
for _ in range(20):
    turn()
print(faults() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="others have other habits")
def test_a_megabyte_that_comes_again_and_again_is_not_asked_for_each_time() -> None:
    command = [sys.executable, "-c", TURNS]

    assert int(subprocess.check_output(command, text=True, timeout=60)) < 1024
