"""Lines come out of bytes whole, however the bytes were cut, and never at any cost."""

import time
import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.jsonrpc.framing import KEPT_BYTES, Framing, Overlong


def lines_of(chunks: list[bytes], limit: int = 100) -> list[bytes | Overlong]:
    framing = Framing(limit)
    return [line for chunk in chunks for line in framing.feed(chunk)] + framing.finish()


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"{}\n", [b"{}"]),
        (b"a\nb\n", [b"a", b"b"]),
        (b"a\r\nb\r\n", [b"a", b"b"]),
        (b"\n\r\n  \n", []),
        (b"\xef\xbb\xbf{}\n", [b"{}"]),
        (b"\xef\xbb\xbf\n", []),
        (b"whole\npart", [b"whole", b"part"]),
        (b"  {} \t\n", [b"{}"]),
    ],
)
def test_a_line_is_what_stands_between_line_breaks(data: bytes, lines: list[bytes]):
    assert lines_of([data]) == lines


@pytest.mark.parametrize("size", [99, 100])
def test_a_line_up_to_the_limit_is_whole(size: int):
    assert lines_of([b"x" * size + b"\n"]) == [b"x" * size]


def test_a_line_over_the_limit_keeps_its_two_ends_and_spares_its_neighbours():
    long = b"a" * 2000 + b"b" * 3000
    expected = Overlong(long[:KEPT_BYTES], long[-KEPT_BYTES:], 5000)
    assert lines_of([b"before\n" + long + b"\nafter\n"]) == [b"before", expected, b"after"]


def test_a_long_line_that_never_ends_is_told_at_the_end():
    assert lines_of([b"x" * 60, b"y" * 60]) == [
        Overlong(b"x" * 60 + b"y" * 60, b"x" * 60 + b"y" * 60, 120)
    ]


BYTES = st.lists(
    st.sampled_from([b"\n", b"\r\n", b"{}", b"\xef\xbb\xbf", b"\xff", b" ", b"x" * 7, b"y" * 3000])
).map(b"".join)


@settings(deadline=None)
@given(BYTES, st.lists(st.integers(0, 5000)), st.integers(1, 4000))
def test_how_bytes_are_chunked_makes_no_difference(data: bytes, cuts: list[int], limit: int):
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    chunks = [data[start:end] for start, end in pairwise(edges)]
    assert lines_of(chunks, limit) == lines_of([data], limit)


@settings(deadline=None)
@given(BYTES, st.integers(1, 4000))
def test_no_line_is_longer_than_the_limit_and_none_is_lost(data: bytes, limit: int):
    lines = lines_of([data], limit)
    assert all(isinstance(line, Overlong) or 0 < len(line) <= limit for line in lines)
    blank = b" \t\r"
    wanted = [each.strip(blank) for each in data.split(b"\n")]
    assert len(lines) == sum(
        len(raw) > limit or bool(line.removeprefix(b"\xef\xbb\xbf").strip())
        for raw, line in zip(data.split(b"\n"), wanted, strict=True)
    )


def test_what_is_held_is_bounded_whatever_comes():
    framing = Framing(10_000)
    tracemalloc.start()
    for _ in range(1000):
        framing.feed(b"x" * 1000)
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert held <= 2 * (10_000 + KEPT_BYTES)


@pytest.mark.no_cover
def test_memory_is_bounded_when_bytes_trickle():
    framing = Framing(1_000_000)
    tracemalloc.start()
    for _ in range(400_000):
        framing.feed(b"xy")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000


def seconds_for(megabytes: int, limit: int) -> float:
    framing = Framing(limit)
    chunk = b"x" * 65_536
    started = time.thread_time()
    for _ in range(megabytes * 16):
        framing.feed(chunk)
    assert len(framing.feed(b"\n")) == 1
    return time.thread_time() - started


@pytest.mark.no_cover
@pytest.mark.parametrize("limit", [1 << 20, 1 << 27], ids=["dropped", "kept"])
def test_64_mebibytes_take_a_moment(limit: int):
    """The SDK needs 58 s: it copies what it has with every chunk that comes."""
    assert min(seconds_for(64, limit) for _ in range(3)) < 2
