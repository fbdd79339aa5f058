"""How much work something is, counted and not clocked, so that any machine counts the same."""

import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType, FunctionType
from typing import Any

from aggregator.basics.json import is_array, is_object

TURN_BOUND = 150_000
"""Calls that any one turn on the event loop may cost."""
BOUND = 1_200_000
"""Calls that any one answer may cost, those of `Slow` among them."""


class Slow(Mapping[str, Any]):
    """A JSON object of which every look at a key is a call, so that it is counted."""

    def __init__(self, held: Mapping[str, Any]) -> None:
        self._held = held

    def __getitem__(self, key: str) -> Any:
        return self._held[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)


def slow(value: Any) -> Any:
    """Return a JSON value with every object in it slow."""
    if is_object(value):
        return Slow({key: slow(each) for key, each in value.items()})
    return [slow(each) for each in value] if is_array(value) else value


class Tally:
    """Counts what is called, by Python or C, or how often one function is."""

    def __init__(self, function: FunctionType | None = None) -> None:
        self.calls = 0
        self._code = function and function.__code__

    def count(self, frame: FrameType, event: str, _arg: object) -> None:
        if self._code is None:
            self.calls += event in ("call", "c_call")
        else:
            self.calls += event == "call" and frame.f_code is self._code


@contextmanager
def counting(function: FunctionType | None = None) -> Generator[Tally, None, None]:
    """Count the calls in the block, of one function if one is given."""
    tally, before = Tally(function), sys.getprofile()
    sys.setprofile(tally.count)
    try:
        yield tally
    finally:
        sys.setprofile(before)


def calls(act: Callable[[], object]) -> int:
    """Count what is called to do something."""
    with counting() as tally:
        act()
    return tally.calls


def longest_turn(steps: Iterable[None]) -> int:
    """Count what is called in the longest of some turns."""
    longest = before = 0
    with counting() as tally:
        for _ in steps:
            longest, before = max(longest, tally.calls - before), tally.calls
    return max(longest, tally.calls - before)
