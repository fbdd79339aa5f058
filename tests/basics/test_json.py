"""What a JSON value takes is counted, and no further than anybody wants to know."""

import pytest

from aggregator.basics.json import EACH, weight


def test_a_value_takes_its_text_and_as_much_for_each_as_it_has_in_memory() -> None:
    assert weight({}, 1000) == EACH
    assert weight("ten digits", 1000) == EACH + 10
    assert weight("é\ud800", 1000) == EACH + 2 + 3
    assert weight({"a": [1, None, True]}, 1000) == 6 * EACH + 1


@pytest.mark.parametrize("value", ["x" * 1000, [0] * 100, {"a": {"b": "x" * 1000}}, ["é" * 400]])
def test_what_takes_more_is_known_to(value: object) -> None:
    assert weight(value, 500) > 500
