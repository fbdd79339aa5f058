"""Garbage is looked for among what is new, and not among what stays."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from aggregator import garbage


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()


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
