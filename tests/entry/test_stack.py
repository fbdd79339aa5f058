"""No loop asks the system for the same piece of Python's stack again and again."""

import resource
import sys
from collections.abc import Callable
from types import FunctionType

import pytest

from aggregator.entry.stack import roomy

DEPTHS = range(0, 160, 2)
TURNS = 500
FEW = 100
"""Pages that may be touched for the first time by anything else."""


def faults(depth: int) -> int:
    """Return how many pages are had from the system in a loop as deep as that."""
    if depth:
        return faults(depth - 1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(TURNS):
        _deeper(8)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def _deeper(depth: int) -> None:
    if depth:
        _deeper(depth - 1)


def most_faults(program: Callable[[FunctionType], FunctionType]) -> int:
    found: list[int] = []

    @program
    def run() -> None:
        found.extend(map(faults, DEPTHS))

    run()
    return max(found)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere pages are counted differently")
def test_a_loop_at_any_depth_runs_on_the_piece_that_its_program_has() -> None:
    assert most_faults(roomy) < FEW


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere pages are counted differently")
@pytest.mark.skipif(sys.version_info >= (3, 15), reason="later versions may keep what they leave")
def test_without_room_some_loop_asks_for_the_next_piece_in_every_turn() -> None:
    assert most_faults(lambda program: program) >= TURNS
