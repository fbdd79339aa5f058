"""One message of any size and kind costs a bounded amount of memory and little time."""

import pytest

from tests.downstream.stdio.memory import ALLOWED, MEBIBYTE, measured


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "mebibytes", "outcome"),
    [
        ("hugeline", 16, "passed"),
        ("hugeline", 64, "refused"),
        ("hugeline", 256, "refused"),
        ("hugebytes", 4, "refused"),
        ("hugebytes", 16, "refused"),
        ("hugeobjects", 1, "refused"),
        ("hugeobjects", 16, "refused"),
    ],
)
def test_memory_grows_by_no_more_than_four_messages(kind: str, mebibytes: int, outcome: str):
    growth, seconds, came_of_it = measured(kind, mebibytes * MEBIBYTE)
    assert growth <= ALLOWED
    assert came_of_it == outcome
    assert seconds < 5
