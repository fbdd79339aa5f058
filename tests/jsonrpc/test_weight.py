"""A message is weighed before it is parsed: text may be long, structure may not be endless."""

import json
import tracemalloc

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mcp_types import JSONRPCError, JSONRPCResponse
from pydantic_core import from_json

from aggregator.basics.effort import finished
from aggregator.jsonrpc.decoding import decode
from aggregator.jsonrpc.weight import (
    COUNTED_BYTES,
    SLACK,
    UNWEIGHED_BYTES,
    weighing,
)

LIMIT = 1 << 20


def is_affordable(line: bytes, limit: int) -> bool:
    return finished(weighing(line, limit))


def answer(result: str) -> bytes:
    return f'{{"jsonrpc":"2.0","id":7,"result":{result}}}'.encode()


def filled(unit: str, size: int = LIMIT - 100) -> str:
    return unit * (size // len(unit.encode()))


@pytest.mark.parametrize(
    "text",
    ["x", "1,2,[3],{4},", r"\"a\",\\", r"\n", "é", "\U0001f600", "{}\\\\"],
    ids=["plain", "table", "quoted", "escaped", "accented", "emoji", "backslashes"],
)
def test_text_of_any_kind_is_affordable_up_to_the_limit(text: str):
    assert is_affordable(answer(f'{{"text":"{filled(text)}"}}'), LIMIT)


@pytest.mark.parametrize("unit", ["{},", "[],", '{"a":1},', "[[[1]]],"])
def test_structure_without_end_is_not(unit: str):
    line = answer(f'{{"a":[{filled(unit)}0]}}')
    assert not is_affordable(line, LIMIT)
    [failed] = decode(line, LIMIT)
    assert "would take too much memory" in str(failed)


LARGER = 16 * LIMIT


@pytest.mark.parametrize("unit", ["1" * 40 + ",", "1" * 4000 + ",", "[[[[]]]],"])
@pytest.mark.parametrize("size", [4 * LIMIT, LARGER - 100])
def test_what_takes_longer_than_it_is_large_is_not(unit: str, size: int):
    assert not is_affordable(answer(f'{{"a":[{filled(unit, size)}0]}}'), LARGER)


@pytest.mark.parametrize("digits", [300, 640, 4299])
def test_a_message_of_nothing_but_huge_numbers_is_not(digits: int):
    line = answer(f'{{"a":[{filled("9" * digits + ",", 2 * LIMIT)}0]}}')
    assert not is_affordable(line, LARGER)
    [failed] = decode(line, LARGER)
    assert isinstance(failed, JSONRPCError)


@pytest.mark.parametrize("digits", [19, 20, 39, 78])
def test_one_of_numbers_that_are_only_long_is(digits: int):
    assert is_affordable(answer(f'{{"a":[{filled("9" * digits + ",", 3 * LIMIT)}0]}}'), LARGER)


def test_a_few_huge_numbers_beside_much_else_pass_as_they_are():
    numbers = [10**4298 + number for number in range(100)]
    rows = [{"text": "x" * 1000}] * 2000
    line = answer(json.dumps({"numbers": numbers, "rows": rows}))
    [message] = decode(line, LARGER)
    assert isinstance(message, JSONRPCResponse)
    assert message.result["numbers"] == numbers


def test_digits_that_are_text_are_affordable():
    rows = json.dumps(["3" * 4000] * 500)
    assert is_affordable(answer(f'{{"rows":{rows}}}'), LARGER)


def test_one_object_of_countless_keys_is_not():
    keys = ",".join(f'"{number:06x}":0' for number in range(300_000))
    assert not is_affordable(answer(f"{{{keys}}}"), LARGER)


@pytest.mark.parametrize("unit", ['"ab",', "1234,", '"\\\\",', r'"\\\"",', "{},"])
def test_a_long_line_is_weighed_in_steps_that_do_not_grow_with_it(unit: str):
    line = answer(f'{{"a":[{filled(unit, 2 * LIMIT)}0]}}')
    steps = sum(1 for _ in weighing(line, LARGER))
    assert steps >= UNWEIGHED_BYTES // COUNTED_BYTES


@settings(deadline=None)
@given(st.text(alphabet='\\",a', max_size=12))
def test_a_block_may_end_within_an_escape(text: str):
    """What is only text is told from what is not wherever the line is cut."""
    line = answer(json.dumps({"rows": [text + ",[[[[" * 3] * 30_000}))
    assert is_affordable(line, LARGER)


def test_what_is_between_strings_is_counted_however_the_blocks_fall():
    rows = json.dumps([{"a,{[": ",{[" * 5}] * 2000)
    assert is_affordable(answer(f'{{"rows":{rows}}}'), LIMIT)


JSON = st.recursive(
    st.none() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=10,
)


@pytest.mark.no_cover
@settings(deadline=None, max_examples=50)
@given(JSON)
@example(json.loads("[" * 90 + "]" * 90))
@example(json.loads('{"":' * 90 + "0" + "}" * 90))
def test_what_is_affordable_takes_no_more_than_it_may(value: object):
    """Repeated until it fills a message, any value either fits the memory or is refused."""
    unit = json.dumps(value, separators=(",", ":"))
    limit = 300_000
    line = f"[{filled(unit + ',', limit)}0]".encode()
    if is_affordable(line, limit):
        tracemalloc.start()
        from_json(line)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak + len(line) <= 4 * limit + SLACK
