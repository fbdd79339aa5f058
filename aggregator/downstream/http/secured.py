"""Connections behind TLS, of which is known whether anything has come that nobody has read."""

import ssl

import anyio.abc
from anyio.streams.stapled import StapledByteStream
from anyio.streams.tls import TLSAttribute, TLSStream

TAKEN_BYTES = 256 * 1024
"""Bytes that are taken from the system at once; where fewer came, none are left behind."""


class Secured:
    """TLS on a connection."""

    def __init__(self, stream: TLSStream, below: "_Emptied") -> None:
        self.stream = stream
        self._below = below

    def holds_more(self) -> bool:
        """Whether more has come than was read: it would be read as the next response."""
        if self._below.may_hold_more:
            return True
        encrypted = self.stream.extra(TLSAttribute.ssl_object)  # noqa: S610 - this is not Django
        try:
            encrypted.read(1)
        except ssl.SSLWantReadError:
            return False
        except ssl.SSLError:
            return True
        return True


async def secure(stream: anyio.abc.ByteStream, host: str, context: ssl.SSLContext) -> Secured:
    """Speak TLS on a connection, if the other side is who it should be.

    Raises:
        SSLError: It is not, or does not speak TLS.
    """
    below = _Emptied(stream, stream)
    wrapped = await TLSStream.wrap(
        below, server_side=False, hostname=host, ssl_context=context, standard_compatible=False
    )
    return Secured(wrapped, below)


class _Emptied(StapledByteStream):
    """A connection from which all is taken that has come: TLS wants less, and leaves the rest.

    What is left neither the system knows of any more nor TLS yet, so nobody could be told of it.
    """

    may_hold_more = False

    async def receive(self, max_bytes: int = TAKEN_BYTES) -> bytes:
        """Return what has come, and see whether that was all."""
        data = await super().receive(max(max_bytes, TAKEN_BYTES))
        self.may_hold_more = len(data) >= TAKEN_BYTES
        return data
