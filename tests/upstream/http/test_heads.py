"""Heads that are the same but for how long their bodies are."""

import pytest

from aggregator.upstream.http.bodies import SMALL_BYTES
from aggregator.upstream.http.heads import Head

HEAD = b"POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\nAccept: */*\r\n\r\n"


def data(body: bytes, head: bytes = HEAD) -> bytes:
    return head % len(body) + body


def test_a_head_is_known_whatever_its_body_is() -> None:
    head = Head.of(data(b"{}"))
    assert head is not None
    for body in (b"", b"{}", b"x" * SMALL_BYTES):
        came = data(body)
        found = head.body(came)
        assert found is not None
        assert came[found.start : found.end] == body


def test_what_is_weighed_before_it_is_parsed_is_neither_learnt_nor_known() -> None:
    heavy = data(b"x" * (SMALL_BYTES + 1))
    head = Head.of(data(b"{}"))
    assert head is not None
    assert head.body(heavy) is None
    assert Head.of(heavy) is None


def test_a_head_is_known_before_its_body_is_there() -> None:
    head = Head.of(HEAD % 5)
    assert head is not None
    found = head.body(HEAD % 12 + b"{")
    assert found is not None
    assert found.end - found.start == 12


@pytest.mark.parametrize(
    "other",
    [
        HEAD.replace(b"Host: a", b"Host: b"),
        HEAD.replace(b"/mcp", b"/mcp/x"),
        HEAD.replace(b"Accept", b"accept"),
        HEAD.replace(b"Accept: */*", b"Accept: */*\r\nOrigin: x"),
        HEAD.replace(b"Content-Length: %d", b"Content-Length:  %d"),
        HEAD.replace(b"Content-Length: %d", b"Content-Length: %d\r\nContent-Length: 9"),
        HEAD.replace(b"Content-Length: %d", b"Content-Length: %d, 2"),
        HEAD.replace(b"Content-Length: %d", b"Content-Length: +%d"),
        HEAD.replace(b"Content-Length: %d", b"Content-Length: 00000000%d"),
    ],
)
def test_another_head_is_another(other: bytes) -> None:
    head = Head.of(data(b"{}"))
    assert head is not None
    assert head.body(data(b"{}", other)) is None


@pytest.mark.parametrize(
    "head",
    [
        HEAD.replace(b"Content-Length: %d\r\n", b"X: %d\r\n"),
        HEAD.replace(b"\r\n\r\n", b"\r\n"),
        HEAD.replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n"),
        HEAD.replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n"),
        HEAD.replace(b"\r\n\r\n", b"\r\nUpgrade: h2c\r\n\r\n"),
        HEAD.replace(b"\r\n\r\n", b"\r\n folded\r\n\r\n"),
        HEAD.replace(b"\r\n\r\n", b"\r\nContent-Length: 2\r\n\r\n"),
        HEAD.replace(b"Host: a\r\n", b"Host: a\n"),
        HEAD.replace(b"Host: a", b"Host: a\rb"),
        HEAD.replace(b"%d", b"0x%d"),
        HEAD.replace(b"%d", b"%d "),
        HEAD.replace(b"Host: a", b"Host: a\r\nX: " + b"x" * 8192),
    ],
)
def test_what_could_be_read_otherwise_is_not_learnt(head: bytes) -> None:
    assert Head.of(data(b"{}")) is not None
    assert Head.of(data(b"{}", head)) is None


def test_what_more_than_a_body_follows_is_not_learnt() -> None:
    assert Head.of(data(b"{}") + b"P") is None
