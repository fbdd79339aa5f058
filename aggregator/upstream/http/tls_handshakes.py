"""Where connections are until they are secured: among the unauthenticated, and not for long.

Where sockets are accepted with TLS, a connection is known to nobody until its client has shaken
hands, so that those who never begin would take all the files there are.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from ssl import SSLContext
from typing import Any

import anyio

from aggregator.upstream.http.unauthenticated import Address, Unauthenticated

HANDSHAKE_TIME = 10.0
"""Seconds that a client has to settle how a connection is secured."""

Make = Callable[..., Any]
"""Makes what reads the requests of one connection."""


class TlsHandshakes:
    """Lets in connections that have been secured."""

    def __init__(
        self, make: Make, context: SSLContext, among: Unauthenticated, seconds: float
    ) -> None:
        self._make = make
        self.context = context
        self.among = among
        self.seconds = seconds
        self.group = anyio.create_task_group()
        """Where handshakes are under way."""

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[None, None]:
        """Shake hands with whoever comes, for the length of the block."""
        async with self.group as group:
            try:
                yield
            finally:
                group.cancel_scope.cancel()

    def __call__(self, **options: Any) -> "Waiting":  # noqa: ANN401 - as uvicorn has it
        """Return what takes a new connection."""
        return Waiting(self, self._make(**options))


class Waiting:
    """One connection that is not secured yet."""

    def __init__(self, handshakes: TlsHandshakes, inside: Any) -> None:  # noqa: ANN401 - of one of two parsers
        self._handshakes = handshakes
        self._inside = inside
        self._came: list[bytes] = []
        """What was said right behind the handshake."""
        self._has_ended = False

    def connection_made(self, transport: Any) -> None:  # noqa: ANN401 - as the loop has it
        """Count it as unauthenticated, and shake hands."""
        peer = transport.get_extra_info("peername")
        if peer is None:
            transport.abort()
            return
        # As uvicorn names it, which leaves out what else an IPv6 address has.
        address: Address = (peer[0], peer[1])
        self._handshakes.among.admit(address, transport.abort)
        self._handshakes.group.start_soon(self._shake_hands, transport, address)

    def data_received(self, data: bytes) -> None:
        """Keep what comes before there is somebody to read it."""
        self._came.append(data)

    def eof_received(self) -> None:
        """Let it close, as it would by itself."""

    def connection_lost(self, _error: Exception | None) -> None:
        """Take note that nobody is there any more."""
        self._has_ended = True

    def pause_writing(self) -> None:
        """Write as little as before."""

    def resume_writing(self) -> None:
        """Write as little as before."""

    async def _shake_hands(self, transport: Any, address: Address) -> None:  # noqa: ANN401
        secured = await self._secured(transport)
        if secured is None:
            # It took too long, went, or speaks something else: there is nothing to be said.
            transport.abort()
            self._handshakes.among.release(address)
        else:
            # Whatever goes wrong there is of one connection, and not of all.
            self._inside.loop.call_soon(self._let_in, secured, address)

    async def _secured(self, transport: Any) -> Any:  # noqa: ANN401 - as the loop has it
        handshakes = self._handshakes
        if self._has_ended:
            return None
        try:
            # The loop's own limit is not enough: it forgets who is gone before it has begun.
            with anyio.fail_after(handshakes.seconds):
                return await self._inside.loop.start_tls(
                    transport,
                    self,
                    handshakes.context,
                    server_side=True,
                    ssl_handshake_timeout=handshakes.seconds,
                )
        except OSError:
            return None

    def _let_in(self, transport: Any, address: Address) -> None:  # noqa: ANN401
        inside = self._inside
        if not self._has_ended:
            transport.set_protocol(inside)
            inside.connection_made(transport)
            for data in self._came:
                inside.data_received(data)
        if self._has_ended or inside.client != address:
            # Then nobody else will say that it has gone.
            self._handshakes.among.release(address)
