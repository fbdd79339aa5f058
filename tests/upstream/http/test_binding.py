"""The socket that clients reach us on."""

import socket

import pytest

from aggregator.upstream.http.binding import Binding, listen


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_short_answer_does_not_wait_for_an_acknowledgement(host: str) -> None:
    """asyncio takes care of that for sockets of which it knows that they are TCP."""
    with listen(Binding(host, 0)) as listener:
        assert listener.proto == socket.IPPROTO_TCP
