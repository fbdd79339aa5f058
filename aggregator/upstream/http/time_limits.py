"""How long a client may take to say what it wants: connections that dawdle are closed.

uvicorn waits for the rest of a request for ever, so that a few thousand of them, each a byte now
and then, would take all connections there are.
"""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Protocol

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from aggregator.upstream.http.presence import Presence
from aggregator.upstream.http.single_writes import SingleWrites
from aggregator.upstream.http.unauthenticated import Address, Unauthenticated

REQUEST_TIME = 30.0
"""Seconds that a client has to send a request whole, from its first byte or its connection on."""

TIMEOUT = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"

HAS_HTTPTOOLS = find_spec("httptools") is not None
"""Whether the quicker parser is installed, as it is wherever there is a wheel of it."""


class ConnectionLimits:
    """What is asked of every connection: its time, and how many may be unauthenticated."""

    def __init__(self, seconds: float, among: Unauthenticated) -> None:
        self.seconds = seconds
        self.among = among


def timed_protocol(
    seconds: float, among: Unauthenticated, *, is_fast: bool = HAS_HTTPTOOLS
) -> type[Any]:
    """Return a protocol that gives clients so long, and counts each as unauthenticated at first."""
    if is_fast:
        from aggregator.upstream.http.httptools_protocol import httptools_protocol  # noqa: PLC0415 - it may not be installed

        return httptools_protocol(ConnectionLimits(seconds, among))

    class TimedProtocol(_TimedProtocol):
        limits = ConnectionLimits(seconds, among)

    return TimedProtocol


class _Timer(Protocol):
    def cancel(self) -> None: ...


class _Connected(Protocol):
    """A connection, as far as both kinds of uvicorn's have it."""

    transport: Any
    loop: Any
    client: Address | None


class RequestTimer:
    """Watches over one connection: that its client asks in time, and whether it is there."""

    def __init__(
        self, protocol: "_Connected", limits: ConnectionLimits, refuse: Callable[[bytes], None]
    ) -> None:
        self.presence = Presence(protocol.transport.close)
        self._protocol = protocol
        self._limits = limits
        self._refuse = refuse
        self._timer: _Timer | None = None
        self._client: Address | None = protocol.client

    def begin(self) -> None:
        """Expect a request, and count the connection as unauthenticated."""
        self.expect()
        if self._client is not None:
            self._limits.among.admit(self._client, self._protocol.transport.abort)

    def expect(self) -> None:
        """Give the client its time for what is yet to come of a request."""
        if self._timer is None:
            delay = self._protocol.loop.call_later
            self._timer = delay(self._limits.seconds, self._hang_up)

    def expect_nothing(self) -> None:
        """Let it have all the time there is: the request is whole."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def end(self) -> None:
        """Forget the connection."""
        self.presence.go()
        self.expect_nothing()
        if self._client is not None:
            self._limits.among.release(self._client)

    def _hang_up(self) -> None:
        """Take no more of the request, and say why."""
        self._timer = None
        if not self._protocol.transport.is_closing():
            self._refuse(TIMEOUT)


class _TimedProtocol(H11Protocol):
    """One connection, read by h11."""

    limits: ConnectionLimits
    _request_timer: RequestTimer

    def connection_made(self, transport: Any) -> None:  # noqa: ANN401 - as the base class has it
        """Expect a request."""
        super().connection_made(SingleWrites(transport, self.loop.call_soon))  # pyright: ignore[reportArgumentType]
        self._request_timer = RequestTimer(self, self.limits, self._refuse)
        self._request_timer.begin()
        self.app_state = {**self.app_state, Presence.KEY: self._request_timer.presence}

    def data_received(self, data: bytes) -> None:
        """Take some of a request, and see whether it is whole."""
        super().data_received(data)
        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            self._request_timer.expect()
        else:
            self._request_timer.expect_nothing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        super().connection_lost(exc)
        self._request_timer.end()

    def _refuse(self, answer: bytes) -> None:
        """Close the connection, and say why unless an answer is under way."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.write(answer)
        self.transport.close()
