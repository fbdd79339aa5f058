"""Responses, taken apart at once: as h11 does, or not at all."""

import h11
import httpx2
import pytest

from aggregator.downstream.http.reading import (
    MAX_HEAD_BYTES,
    MAX_HEADERS,
    MAX_INTERIM,
    Reading,
    TooMuchError,
    Unusual,
    usual,
)

REQUEST = h11.Request(method="POST", target="/", headers=[("host", "x"), ("content-length", "0")])

SIZED = b"HTTP/1.1 200 OK\r\nContent-Type: a/b\r\ncontent-length: 5\r\n\r\nhello"
CHUNKED = (
    b"HTTP/1.1 404 Not Found\r\nX: 1\r\nx:2 \r\ntransfer-encoding: chunked\r\n\r\n"
    b"3\r\nhel\r\n2;why=not\r\nlo\r\n0\r\n\r\n"
)


def whole(reading: Reading, rest: bytes = b"", step: int = 1) -> bytes:
    """Read a body to its end, of which the rest comes in pieces."""
    body = b""
    while not reading.is_over:
        if piece := reading.take():
            body += piece
        elif not reading.is_over:
            reading.feed(rest[:step])
            rest = rest[step:]
    assert reading.can_go_on()
    return body


def by_h11(data: bytes) -> tuple[int, dict[str, str], bytes]:
    reading = Unusual(REQUEST, data)
    head = reading.head()
    assert head is not None
    return head.status, head.headers, whole(reading)


@pytest.mark.parametrize(
    "data",
    [
        SIZED,
        CHUNKED,
        SIZED.replace(b" OK", b""),
        SIZED.replace(b"a/b", b"\xe9\tb"),
        SIZED.replace(b"5\r\n\r\nhello", b"0\r\n\r\n"),
        SIZED.replace(b"\r\n\r\n", b"\r\nConnection: Keep-Alive\r\n\r\n"),
        SIZED.replace(b"a/b", b""),
        CHUNKED.replace(b"0\r\n\r\n", b"0\r\nafter: all\r\n\r\n"),
        CHUNKED.replace(b"3\r\n", b"0003 \r\n"),
    ],
)
def test_the_usual_form_is_read_as_h11_reads_it_wherever_it_is_cut(data: bytes) -> None:
    end = data.index(b"\r\n\r\n") + 4
    for cut in range(end, len(data) + 1):
        for step in (1, len(data)):
            found = usual(data[:cut])
            assert found is not None
            head, reading = found
            assert (head.status, head.headers, whole(reading, data[cut:], step)) == by_h11(data)


def test_headers_are_also_known_as_they_came() -> None:
    found = usual(CHUNKED)

    assert found is not None
    assert found[0].raw() == [(b"X", b"1"), (b"x", b"2"), (b"transfer-encoding", b"chunked")]
    assert found[0].headers["x"] == "1, 2"


@pytest.mark.parametrize(
    "data",
    [
        SIZED[:40],
        b"HTTP/1.0" + SIZED[8:],
        SIZED.replace(b" 200 ", b" 204 "),
        SIZED.replace(b" 200 ", b" 304 "),
        SIZED.replace(b" 200 OK", b" 103 Early Hints"),
        SIZED.replace(b" 200 OK", b" 101 Switching"),
        SIZED.replace(b"length: 5", b"length: 5\r\ncontent-length: 5"),
        SIZED.replace(b"length: 5", b"length: 5\r\ntransfer-encoding: chunked"),
        SIZED.replace(b"length: 5", b"length: +5"),
        SIZED.replace(b"length: 5", b"length: 5, 5"),
        SIZED.replace(b"length: 5", b"length: \xb2"),
        SIZED.replace(b"length: 5", b"length : 5"),
        SIZED.replace(b"a/b", b"a/b\r\n folded"),
        SIZED.replace(b"a/b", b"a/\0b"),
        SIZED.replace(b"a/b\r\n", b"a/b\n"),
        SIZED.replace(b"a/b", b"a/b\rx: y"),
        SIZED.replace(b"a/b", b"x" * MAX_HEAD_BYTES),
        SIZED.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"),
        SIZED.replace(b"\r\n\r\n", b"\r\nupgrade: h2c\r\n\r\n"),
        SIZED.replace(b"content-length: 5\r\n", b""),
        CHUNKED.replace(b": chunked", b": gzip, chunked"),
        CHUNKED.replace(b": chunked", b": chunked\r\ntransfer-encoding: chunked"),
    ],
)
def test_whatever_has_another_form_is_left_to_h11(data: bytes) -> None:
    assert usual(data) is None


@pytest.mark.parametrize("end", [b"\r\n", b"\n"])
@pytest.mark.parametrize("before", [b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"])
def test_an_answer_with_headers_without_end_is_refused_before_they_are_read(
    before: bytes, end: bytes
) -> None:
    most = SIZED.replace(b"Content-Type: a/b\r\n", (b"x:" + end) * (MAX_HEADERS - 1))
    many = SIZED.replace(b"Content-Type: a/b\r\n", (b"x:" + end) * MAX_HEADERS)

    head = Unusual(REQUEST, before + most).head()

    assert head is not None
    assert len(head.raw()) == MAX_HEADERS
    assert (usual(most) is None) is (end == b"\n")
    assert usual(many) is None
    with pytest.raises(TooMuchError, match="it has more than 256 headers"):
        Unusual(REQUEST, before + many).head()


def test_headers_without_end_are_refused_before_their_end_has_come() -> None:
    reading = Unusual(REQUEST, b"HTTP/1.1 200 OK\r\n")
    assert reading.head() is None

    reading.feed(b"x:\r\n" * (MAX_HEADERS + 1))

    with pytest.raises(TooMuchError):
        reading.head()


def test_lines_of_a_body_are_no_headers() -> None:
    body = b"\n" * 1000
    data = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 1000\r\n\r\n" + body

    assert Unusual(REQUEST, data).head() is not None


def test_an_answer_that_only_announces_itself_is_refused() -> None:
    interim = b"HTTP/1.1 103 Early Hints\r\n\r\n"

    assert by_h11(interim * MAX_INTERIM + SIZED) == by_h11(SIZED)
    with pytest.raises(TooMuchError):
        by_h11(interim * (MAX_INTERIM + 1) + SIZED)


@pytest.mark.parametrize(
    "body",
    [
        b"x\r\n",
        b"-1\r\nx\r\n",
        b"3\r\nhello\r\n",
        b"3\nhel\n",
        b"0\r\nno header\r\n\r\n",
        b"f" * 16 + b"\r\n",
        b"1" * (MAX_HEAD_BYTES + 1),
        b"0\r\nx: " + b"y" * (MAX_HEAD_BYTES + 1),
        b"3\r\nhe",
        b"",
    ],
)
def test_chunks_that_are_none_are_no_answer(body: bytes) -> None:
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    found = usual(head + body)

    assert found is not None
    with pytest.raises(httpx2.RemoteProtocolError):
        whole(found[1])


@pytest.mark.parametrize("data", [SIZED, CHUNKED])
def test_what_comes_behind_the_end_is_noticed(data: bytes) -> None:
    found = usual(data + b"more")

    assert found is not None
    while not found[1].is_over:
        found[1].take()
    assert not found[1].can_go_on()
