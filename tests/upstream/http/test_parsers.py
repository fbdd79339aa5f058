"""Both parsers refuse what two of them might take for two different requests."""

from contextlib import suppress

import h11
import httptools
import pytest

HEAD = b"POST /mcp HTTP/1.1\r\nHost: a\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
CHUNK = b"2\r\n{}\r\n0\r\n\r\n"

SMUGGLED = {
    "two lengths": HEAD + b"Content-Length: 2\r\nContent-Length: 5\r\n\r\n{}abc",
    **{
        f"a length of {length!r}": HEAD + b"Content-Length: %b\r\n\r\n{}" % length
        for length in (b"+2", b"-2", b"0x2", b"2 2", b"1_0", b"2,3", b"9" * 30, b"")
    },
    **{
        f"encoded as {coding!r}": HEAD + b"Transfer-Encoding: %b\r\n\r\n" % coding + CHUNK
        for coding in (b"identity", b"xchunked", b"chunked, identity", b"\x0bchunked")
    },
    "encoded twice": HEAD + b"Transfer-Encoding: chunked\r\n" * 2 + b"\r\n" + CHUNK,
    "a blank after a name": HEAD + b"Transfer-Encoding : chunked\r\n\r\n" + CHUNK,
    "a blank after a length": HEAD + b"Content-Length : 2\r\n\r\n{}",
    "a return in a value": HEAD + b"X: a\rContent-Length: 9\r\nContent-Length: 2\r\n\r\n{}",
    "nothing in a value": HEAD + b"X: a\0b\r\nContent-Length: 2\r\n\r\n{}",
    "nothing in a name": HEAD + b"X\0: b\r\nContent-Length: 2\r\n\r\n{}",
    "no name": HEAD + b": x\r\nContent-Length: 2\r\n\r\n{}",
    "no colon": HEAD + b"Xab\r\nContent-Length: 2\r\n\r\n{}",
    "a blank before the first name": HEAD.replace(b"Host", b" Host") + b"\r\n",
    **{
        f"a chunk of {size!r}": CHUNKED + size + b"\r\n{}\r\n0\r\n\r\n"
        for size in (b"0x2", b" 2", b"-2", b"2;a\nb", b"+2", b"f" * 30)
    },
    "a chunk that goes on": CHUNKED + b"2\r\n{}0\r\n\r\n",
    "a chunk that ends with half a break": CHUNKED + b"2\r\n{}\n0\r\n\r\n",
}


@pytest.mark.parametrize("data", SMUGGLED.values(), ids=SMUGGLED.keys())
def test_a_request_that_can_be_read_in_two_ways_is_refused(data: bytes) -> None:
    assert not _is_whole_by_h11(data)
    assert not _is_whole_by_httptools(data)


def test_the_same_requests_are_read_where_nothing_is_wrong() -> None:
    for data in (HEAD + b"Content-Length: 2\r\n\r\n{}", CHUNKED + CHUNK):
        assert _is_whole_by_h11(data)
        assert _is_whole_by_httptools(data)


def _is_whole_by_h11(data: bytes) -> bool:
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(data)
    with suppress(h11.RemoteProtocolError):
        while (event := connection.next_event()) is not h11.NEED_DATA:
            if isinstance(event, h11.EndOfMessage):
                return True
    return False


def _is_whole_by_httptools(data: bytes) -> bool:
    request = _Request()
    with suppress(httptools.HttpParserError):
        httptools.HttpRequestParser(request).feed_data(data)
    return request.is_whole


class _Request:
    is_whole = False

    def on_message_complete(self) -> None:
        self.is_whole = True
