"""How near vectors are to those of a request."""

import struct

import pytest

from aggregator.search.semantic.vectors import SCALE, Vectors

pytest.importorskip("numpy")


def vector(*numbers: float) -> bytes:
    return struct.pack(f"<{len(numbers)}e", *numbers)


def test_the_nearest_of_several_texts_counts():
    vectors = Vectors([vector(1, 0, 0), vector(0, 1, 0), vector(0, 0, 1)])

    assert list(vectors.likeness(vector(1, 0, 0), vector(0, 1, 0))) == [SCALE, SCALE, 0]


def test_what_is_nearest_to_a_weaker_sentence_is_not_behind_all_of_a_stronger_one():
    weather, forecast, uuid = vector(1, 0, 0), vector(0.6, 0.8, 0), vector(0, 0, 1)
    strong, weak = vector(1, 0, 0), vector(0, 0, 0.5)

    first, second, third = Vectors([weather, forecast, uuid]).likeness(strong, weak)

    assert first == SCALE
    assert SCALE > third > second > SCALE / 2
    assert list(Vectors([weather, forecast, uuid]).likeness(weak)) == [0, 0, round(SCALE / 2)]


def test_a_text_that_is_as_near_to_all_is_taken_as_it_is():
    one = vector(1, 0)

    assert list(Vectors([one, one]).likeness(vector(0.5, 0), one)) == [SCALE, SCALE]
    assert not Vectors().likeness(one)
