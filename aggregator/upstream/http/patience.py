"""How long a client may take to say what it wants: connections that dawdle are closed.

uvicorn waits for the rest of a request for ever, so that a few thousand of them, each a byte now
and then, would take all connections there are.
"""

from typing import Any, Protocol

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from aggregator.upstream.http.presence import Presence
from aggregator.upstream.http.strangers import Strangers

REQUEST_TIME = 30.0
"""Seconds that a client has to send a request whole, from its first byte or its connection on."""

TIMEOUT = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class _Timer(Protocol):
    def cancel(self) -> None: ...


def impatient(seconds: float, among: Strangers) -> type[H11Protocol]:
    """Return a protocol that gives clients so long, and counts each as a stranger at first."""

    class Impatient(_Impatient):
        patience = seconds
        strangers = among

    return Impatient


class _Impatient(H11Protocol):
    """One connection."""

    patience: float
    strangers: Strangers
    _timer: _Timer | None = None

    def connection_made(self, transport: Any) -> None:  # noqa: ANN401 - as the base class has it
        """Expect a request."""
        super().connection_made(transport)
        self._presence = Presence()
        self.app_state = {**self.app_state, Presence.KEY: self._presence}
        self._expect()
        if self.client is not None:
            self.strangers.admit(self.client, self.transport.abort)

    def data_received(self, data: bytes) -> None:
        """Take some of a request, and see whether it is whole."""
        super().data_received(data)
        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            self._expect()
        else:
            self._expect_nothing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        super().connection_lost(exc)
        self._presence.go()
        self._expect_nothing()
        if self.client is not None:
            self.strangers.release(self.client)

    def _expect(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(self.patience, self._hang_up)

    def _expect_nothing(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _hang_up(self) -> None:
        """Close the connection, and say why unless an answer is under way."""
        if not self.transport.is_closing():
            if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
                self.transport.write(TIMEOUT)
            self.transport.close()
