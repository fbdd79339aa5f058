"""Streams of events, cut into any pieces."""

from itertools import pairwise, product

import httpx2
import pytest

from aggregator.downstream.http.sse import (
    END,
    LINES_AT_ONCE,
    PART,
    SMALL,
    Event,
    Reader,
    only_message,
)
from tests.work import TURN_BOUND, counting


def read(*pieces: bytes, limit: int = 1000) -> list[Event]:
    reader = Reader(limit)
    return [event for piece in (*pieces, END) for event in reader.feed(piece) if event is not None]


STREAM = (
    b": a comment\r\n\r\n"
    b"event: message\r\ndata: {}\r\nid: 7\r\n\r\n"
    b"data:one\ndata:  two\nretry: 250\n\n"
    b"data: \xff\r\r"
    b"unknown: x\n\n"
    b"id: a\0b\nretry: soon\n\n"
    b"data\n\n"
    b"data: without its end\n"
)

EVENTS = [
    Event(b"{}", "message", "7"),
    Event(b"one\n two", "message", "7", 250),
    Event(b"\xff", "message", "7"),
    Event(b"", "message", "7"),
]


def test_events_are_the_same_wherever_their_stream_is_cut() -> None:
    assert read(STREAM) == EVENTS
    for cut in range(1, len(STREAM)):
        assert read(STREAM[:cut], STREAM[cut:]) == EVENTS
    assert read(*(STREAM[at : at + 1] for at in range(len(STREAM)))) == EVENTS


def test_a_mark_of_the_encoding_before_a_stream_is_none_of_its_first_field() -> None:
    marked = b"\xef\xbb\xbfdata: 1\n\ndata: 2\n\n\xef\xbb\xbfdata: none\n\n"

    for cut in range(1, len(marked)):
        assert read(marked[:cut], marked[cut:]) == [Event(b"1"), Event(b"2")]


def test_an_event_is_there_as_soon_as_its_last_line_has_ended() -> None:
    reader = Reader(1000)

    assert list(reader.feed(b"data: 1\r\n")) == []
    assert list(reader.feed(b"\r\n")) == [Event(b"1")]


def test_an_end_may_stand_for_the_other_half_of_a_line_break() -> None:
    assert read(b"data: 1\n\r") == [Event(b"1")]


@pytest.mark.parametrize("pieces", [[b"data: " + b"x" * 99], [b"data: xx\n"] * 50])
def test_an_event_that_is_too_long_is_refused(pieces: list[bytes]) -> None:
    with pytest.raises(httpx2.SSEError, match="more than 100 bytes"):
        read(*pieces, limit=100)


def test_short_events_do_not_add_up() -> None:
    assert len(read(*[b"data: xx\n\n"] * 50, limit=100)) == 50


@pytest.mark.parametrize("line", [b"\n", b"data:x\n\n", b": x\n", b"\r\n", b"data\n"])
def test_others_have_their_turn_between_so_many_lines(line: bytes) -> None:
    given = list(Reader(1 << 20).feed(line * 10_000))

    turns = [at for at, each in enumerate(given) if each is None]
    assert len(turns) >= 10_000 // LINES_AT_ONCE
    assert all(later - at <= LINES_AT_ONCE for at, later in pairwise(turns))


@pytest.mark.parametrize("line", [b"\n", b"\r", b"\r\n", b"id\n\n"])
def test_no_more_of_a_piece_is_cut_into_lines_than_others_can_wait_for(line: bytes) -> None:
    given = Reader(1 << 20).feed(b": a comment" + line * 1_000_000)

    with counting() as tally:
        assert next(each for each in given if each is None) is None
    assert tally.calls < TURN_BOUND // 10


def test_events_are_the_same_in_pieces_of_any_length() -> None:
    long = b"data: " + b"x" * PART
    stream = b"\r\n\r\n".join((long, b"data: 1", b": " + long, b"id: 2\r\n" + long, b"data: 3\n\n"))
    data = [each.data for each in read(stream, limit=1 << 20)]

    assert data == [long[6:], b"1", long[6:], b"3"]
    for size in (PART - 1, PART, PART + 1, 2 * PART + 1):
        pieces = (stream[at : at + size] for at in range(0, len(stream), size))
        assert [each.data for each in read(*pieces, limit=1 << 20)] == data


def test_a_line_in_very_many_pieces_is_kept_in_few() -> None:
    reader = Reader(1 << 20)
    for _ in range(50_000):
        assert list(reader.feed(b"ab")) == []

    assert len(reader._rest) <= 2 + 100_000 // SMALL  # pyright: ignore[reportPrivateUsage]
    assert list(reader.feed(b"\ndata: x\n\n"))[-1] == Event(b"x")


LINES = [
    b"event: message",
    b"event:message",
    b"id: 7",
    b"data: {}",
    b"data:  {}",
    b"data:{}",
    b"data",
    b"\xef\xbb\xbfdata: {}",
    b": a comment",
    b"",
]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_what_is_taken_for_the_only_message_is_what_a_reader_takes_for_it(end: bytes) -> None:
    pieces = [end.join(lines) + end for lines in product(LINES, repeat=4)]
    taken = [(piece, data) for piece in pieces if (data := only_message(piece, 1000))]

    assert end == b"\r" or taken
    for piece, data in taken:
        reader = Reader(1000)
        assert [event.data for event in reader.feed(piece) if event is not None] == [data]


def test_a_message_that_is_too_long_is_not_taken_at_once() -> None:
    piece = b"data: " + b"x" * 99 + b"\n\n"

    assert only_message(piece, len(piece)) == b"x" * 99
    assert not only_message(piece, len(piece) - 1)
