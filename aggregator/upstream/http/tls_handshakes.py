"""Where connections are until they are secured: among the unauthenticated, and not for long.

Where sockets are accepted with TLS, a connection is known to nobody until its client has shaken
hands, so that those who never begin would take all the files there are.
"""

import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from socket import socket
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
    """One connection that is not secured yet.

    It is taken out of the hands of the loop that accepted it, and given back to be secured. What
    the loop read in between would be lost to the handshake, and not every loop waits with reading.
    """

    def __init__(self, handshakes: TlsHandshakes, inside: Any) -> None:  # noqa: ANN401 - of one of two parsers
        self._handshakes = handshakes
        self._inside = inside

    def connection_made(self, transport: Any) -> None:  # noqa: ANN401 - as the loop has it
        """Count it as unauthenticated, and shake hands."""
        peer, connection = transport.get_extra_info("peername"), _taken(transport)
        transport.abort()
        if connection is None:
            return
        if peer is None:
            connection.close()
            return
        # As uvicorn names it, which leaves out what else an IPv6 address has.
        address: Address = (peer[0], peer[1])
        scope = anyio.CancelScope()
        self._handshakes.among.admit(address, scope.cancel)
        self._handshakes.group.start_soon(self._shake_hands, connection, address, scope)

    def connection_lost(self, _error: Exception | None) -> None:
        """Do nothing: it has been taken out of those hands."""

    async def _shake_hands(
        self, connection: socket, address: Address, scope: anyio.CancelScope
    ) -> None:
        # It takes too long, goes, or speaks something else: there is nothing to be said.
        with scope, suppress(OSError):
            await self._let_in(connection)
        if self._inside.client != address:
            # It was not let in, or is counted under another address.
            self._handshakes.among.release(address)

    async def _let_in(self, connection: socket) -> None:
        handshakes, is_in = self._handshakes, False
        try:
            # The loop's own limit is not enough: it forgets who is gone before it has begun.
            with anyio.fail_after(handshakes.seconds):
                await self._inside.loop.connect_accepted_socket(
                    lambda: self._inside,
                    connection,
                    ssl=handshakes.context,
                    ssl_handshake_timeout=handshakes.seconds,
                )
            is_in = True
        finally:
            if not is_in:
                connection.close()


def _taken(transport: Any) -> socket | None:  # noqa: ANN401 - as the loop has it
    """Return a connection with a descriptor of its own, if it is there and one can be had."""
    try:
        return socket(fileno=os.dup(transport.get_extra_info("socket").fileno()))
    except OSError:
        return None
