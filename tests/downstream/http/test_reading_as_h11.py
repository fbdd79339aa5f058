"""Responses that nobody foresaw, in any pieces: read as h11 reads them, or left to it."""

from itertools import pairwise
from typing import NamedTuple

import h11
import httpx2
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.downstream.http.reading import Head, Reading, Unusual, usual

REQUEST = h11.Request(method="POST", target="/", headers=[("host", "x"), ("content-length", "0")])

LENGTHS = [
    "0",
    "5",
    "05",
    "7",
    "+5",
    "-5",
    "5_0",
    "0x5",
    "5, 5",
    "5,6",
    "",
    " 5 ",
    "9" * 18,
    "\u00b2",
]
CODINGS = ["chunked", "Chunked", "gzip, chunked", "identity", "chunked, chunked", ""]
LINES = [
    "x: y",
    "X:",
    "x:y ",
    "x : y",
    " folded",
    "x: \u00e9\ty",
    "x: a\0b",
    "x: a\rb",
    "no header",
    ": nameless",
    "connection: close",
    "Connection: Keep-Alive",
    "connection: keep-alive, close",
    "upgrade: h2c",
    "trailer: x",
]
STATUS = [
    "HTTP/1.1 200 OK",
    "HTTP/1.1 200",
    "HTTP/1.1 200 ",
    "HTTP/1.1 404 \u00e9",
    "HTTP/1.1 204 No Content",
    "HTTP/1.1 304 Not Modified",
    "HTTP/1.1 100 Continue",
    "HTTP/1.1 101 Switching",
    "HTTP/1.1 600 ?",
    "HTTP/1.0 200 OK",
    "HTTP/2.0 200 OK",
    "http/1.1 200 OK",
    "HTTP/1.1  200 OK",
    "HTTP/1.1 2000 OK",
]
BREAKS = ["\r\n"] * 40 + ["\n", "\r", "\r\r\n", "\n\n"]
CHUNKS = ["5\r\nhello\r\n", "1\r\nx\r\n", "A;why=not\r\n0123456789\r\n", "01\r\n\r\r\n"]
ODD_CHUNKS = [
    "5\nhello\n",
    "-1\r\n",
    "2\r\nhello\r\n",
    "0x1\r\nx\r\n",
    "1_0\r\n",
    "1;\r\nx\r\n",
    "\r\n",
]
ENDS = ["0\r\n\r\n"] * 4 + [
    "0\r\nafter: all\r\n\r\n",
    "000;x\r\n\r\n",
    "0\r\n",
    "0\r\nbad\r\n\r\n",
    "",
]

header = st.one_of(
    st.sampled_from(LENGTHS).map("Content-Length: {}".format),
    st.sampled_from(CODINGS).map("transfer-encoding: {}".format),
    st.sampled_from(LINES),
)
chunks = st.lists(st.sampled_from(CHUNKS), max_size=3).map("".join)
odd = st.builds(
    "{}{}{}".format, chunks, st.sampled_from(["", *ODD_CHUNKS]), st.sampled_from(["", *ENDS])
)
bodies = st.one_of(
    st.just("content-length: 5\r\n\r\nhello"),
    chunks.map("transfer-encoding: chunked\r\n\r\n{}0\r\n\r\n".format),
    odd.map("transfer-encoding: chunked\r\n\r\n{}".format),
    st.sampled_from(LENGTHS).map("content-length: {}\r\n\r\nhello".format),
    odd.map("\r\n{}".format),
)


@st.composite
def responses(draw: st.DrawFn) -> bytes:
    """Make a response that is mostly in order, with a few things that may not be."""
    status = draw(st.one_of(st.just(STATUS[0]), st.sampled_from(STATUS)))
    lines = draw(st.one_of(st.just([LINES[0]]), st.lists(header, max_size=2)))
    text = "".join(line + draw(st.sampled_from(BREAKS)) for line in (status, *lines))
    return (text + draw(bodies) + draw(st.sampled_from(["", "more"]))).encode("latin-1")


class Outcome(NamedTuple):
    """What a response came to."""

    status: int
    headers: dict[str, str]
    body: bytes
    can_go_on: bool


def outcome(
    head: Head | None, reading: Reading, pieces: list[bytes], read: list[bytes]
) -> Outcome | None:
    """Read a body up to its end; `None` if there is no end to it, or it is none."""
    try:
        while not reading.is_over:
            if piece := reading.take():
                read.append(piece)
            elif not reading.is_over:
                reading.feed(pieces.pop(0) if pieces else b"")
    except httpx2.RemoteProtocolError:
        return None
    assert head is not None
    is_all = reading.can_go_on() and not any(pieces)
    return Outcome(head.status, head.headers, b"".join(read), is_all)


def by_h11(pieces: list[bytes]) -> Outcome | None:
    pieces = list(pieces)
    try:
        reading = Unusual(REQUEST, pieces.pop(0))
        while (head := reading.head()) is None:
            reading.feed(pieces.pop(0) if pieces else b"")
    except httpx2.RemoteProtocolError:
        return None
    return outcome(head, reading, pieces, [])


@settings(max_examples=400, deadline=None)
@given(responses(), st.lists(st.integers(1, 400), max_size=6), st.booleans())
def test_a_response_in_any_pieces_is_read_as_h11_reads_it_or_left_to_it(
    data: bytes,
    cuts: list[int],
    is_head_whole: bool,
) -> None:
    if is_head_whole:
        cuts = [data.find(b"\r\n\r\n") + 4 + cut for cut in cuts]
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    pieces = [data[at:end] for at, end in pairwise(places)]
    expected = by_h11([data])
    assert by_h11(pieces) == expected

    first, *rest = pieces
    if (found := usual(first)) is not None:
        assert outcome(*found, rest, []) == expected
