"""What waits to be written is written whole, in order, and counted."""

import os
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.jsonrpc.outbox import SHORT_BYTES, Outbox

short = st.binary(max_size=50)
long = st.integers(1, 3).map(lambda times: b"x" * times * SHORT_BYTES)


@given(st.lists(short | long, max_size=8), st.integers(1 << 12, 1 << 16))
def test_any_lines_arrive_whole_however_much_is_taken_at_once(written: list[bytes], most: int):
    outbox, came = Outbox(), b""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    try:
        for line in written:
            outbox.add(line)
        assert outbox.size == sum(len(line) + 1 for line in written)
        while outbox.size:
            with suppress(BlockingIOError):
                outbox.write_to(writing)
            came += os.read(reading, most)
        os.close(writing)
        while chunk := os.read(reading, most):
            came += chunk
    finally:
        os.close(reading)
    assert came == b"".join(line + b"\n" for line in written)


def test_what_is_not_taken_stays():
    outbox = Outbox()
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    outbox.add(b"x" * 200_000)
    outbox.write_to(writing)
    left = outbox.size
    assert 0 < left < 200_001
    with pytest.raises(BlockingIOError):
        outbox.write_to(writing)
    assert outbox.size == left
    outbox.clear()
    assert outbox.size == 0
    os.close(reading)
    os.close(writing)
