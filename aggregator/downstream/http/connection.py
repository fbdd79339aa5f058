"""One connection to a server: a request is written in one piece, and its response is read."""

import os
import select
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from functools import partial
from socket import socket

import anyio
import anyio.abc
import anyio.lowlevel
import h11
import httpx2

from aggregator.downstream.http.reading import Head, Reading, Unusual, usual
from aggregator.downstream.http.secured import Secured
from aggregator.downstream.http.socket_watch import Hear, SocketWatch
from aggregator.downstream.http.upload import BROKEN, Upload

READ_BYTES = 256 * 1024
"""Bytes that are read at once."""
PIECES_AT_ONCE = 200
"""Pieces of responses after which others have their turn: each may be a single byte."""
GATHERED = 20
"""Pieces that are made one if they are tiny: what keeps one takes more memory than it holds."""
TINY_BYTES = 64
"""Bytes of such a piece, at the most."""
SMALL_BYTES = 16 * 1024
"""Bytes that a connection takes at once if it is idle, so that nobody has to wait for it."""
IS_POSIX = os.name == "posix"
"""Whether sockets are files like others."""


class Connection:
    """One connection, with one request under way at a time."""

    def __init__(self, opened: anyio.abc.ByteStream | Secured, patience: float) -> None:
        self._secured = opened if isinstance(opened, Secured) else None
        self.stream = opened.stream if isinstance(opened, Secured) else opened
        self.until = 0.0
        """When it is not kept any longer."""
        self._patience = patience
        self._last_read = 0
        """Bytes that came last; where they are as many as were wanted, others may wait behind."""
        self._pieces = 0
        self._is_spoilt = False
        self._reading: Reading | None = None
        self._rest = b""
        """What has not been written of a request."""
        self._unwritten: Exception | None = None
        """Why it could not be."""
        self._ahead: list[bytes | OSError] = []
        """What has been read already, and left for whoever reads next."""
        self._socket = raw(self.stream)
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)

        is_plain = self._secured is None and IS_POSIX
        self.watch = SocketWatch.of(self._socket) if is_plain else None
        """By which its responses are heard, where the loop can have it watched."""

    def keep_until(self, when: float) -> None:
        """Say when it is not kept any longer."""
        self.until = when
        if self.watch is not None:
            self.watch.rest()

    async def close(self) -> None:
        """Close it at once."""
        if self.watch is not None:
            self.watch.close()
        await anyio.aclose_forcefully(self.stream)

    def is_closed(self) -> bool:
        """Whether there is something to be read where nothing was asked: an end, or a fault."""
        return self._socket.fileno() < 0 or bool(self._poll.poll(0))

    def can_be_kept(self) -> bool:
        """Whether request and response are over, and neither side means to close."""
        reading = self._reading
        if (
            self._is_spoilt
            or reading is None
            or not _is_read_out(reading)
            or not reading.can_go_on()
        ):
            return False
        return not self._has_more()

    def _has_more(self) -> bool:
        """Whether more has come than was asked for: it would be read as the next response."""
        if self._last_read >= READ_BYTES:
            return True
        return self._secured is not None and self._secured.holds_more()

    async def ask(self, request: h11.Request, data: bytes) -> Head:
        """Send a request in one piece, and read the head of the response.

        What is written is `data`; of the request, only that there was such a one matters.

        Raises:
            HTTPError: The connection broke, or what came is not HTTP.
        """
        self._begin()
        try:
            self._rest = await self._write(data)
        except TimeoutError as error:
            raise httpx2.WriteTimeout("the request was not taken in time") from error
        except BROKEN as error:
            # A server may refuse what it has not read to the end, and close.
            self._unwritten = error
        return await self.answer(request)

    def put(self, data: bytes) -> None:
        """Write a request without waiting, as far as it is taken."""
        self._begin()
        try:
            self._rest = data[_written(self._socket, data) :]
        except OSError as error:
            self._unwritten = error

    def listen(self, hear: Hear) -> bool:
        """Have somebody hear the response to what was put, if all of that was taken."""
        is_taken = not self._rest and self._unwritten is None
        return is_taken and self.watch is not None and self.watch.listen(hear)

    def listen_no_more(self) -> None:
        """Leave what comes to whoever waits for it."""
        if self.watch is not None:
            self.watch.stop()

    async def answer(self, request: h11.Request) -> Head:
        """Read the head of the response to what was written.

        Raises:
            HTTPError: The connection broke, or what came is not HTTP.
        """
        self.listen_no_more()
        if self._rest:
            upload = Upload(self.stream, self._rest, self._patience)
            return await upload.run(partial(self._head, request), self.spoil)
        try:
            return await self._head(request)
        except httpx2.HTTPError as error:
            if self._unwritten is not None:
                raise httpx2.WriteError(str(self._unwritten)) from self._unwritten
            raise error from error.__cause__

    def leave_ahead(self, came: Sequence[bytes | OSError]) -> None:
        """Have what was read of a response be read again, by whoever waits for the answer.

        It is left in one piece: nobody else has a turn while it is read.
        """
        if data := b"".join(each for each in came if isinstance(each, bytes)):
            self._ahead.append(data)
        self._ahead.extend(each for each in came if isinstance(each, OSError) or not each)

    def read_by(self, reading: Reading | None) -> None:
        """Take note of who has read a response, and how far."""
        self._reading, self._last_read = reading, 0

    def _begin(self) -> None:
        self._reading, self._rest, self._unwritten = None, b"", None
        self._ahead.clear()

    async def body(self) -> AsyncIterator[bytes]:
        """Give the body of the response in pieces, up to its end.

        Raises:
            HTTPError: The connection broke, or what came is not HTTP.
        """
        reading = self._reading
        while reading is not None and not reading.is_over:
            if piece := reading.take():
                is_tiny = len(piece) <= TINY_BYTES
                self._pieces += GATHERED if is_tiny else 1
                if self._pieces >= PIECES_AT_ONCE:
                    self._pieces = 0
                    await anyio.lowlevel.checkpoint()
                yield _gathered(reading, piece) if is_tiny else piece
            elif not reading.is_over:
                reading.feed(await self._read())

    def spoil(self) -> None:
        """Take note that nothing can follow: a request was not written to its end, or answered."""
        self._is_spoilt = True

    async def _write(self, data: bytes) -> bytes:
        """Write what is taken at once, or is little; return the rest."""
        await anyio.lowlevel.checkpoint_if_cancelled()
        if self._secured is None and IS_POSIX:
            # The stream would wait for its next turn, also where all is taken at once.
            return data[_written(self._socket, data) :]
        if len(data) > SMALL_BYTES:
            return data
        with anyio.fail_after(self._patience):
            await self.stream.send(data)
        return b""

    async def _head(self, request: h11.Request) -> Head:
        data = await self._read()
        if (found := usual(data)) is not None:
            head, self._reading = found
            return head
        reading = Unusual(request, data)
        while (head := reading.head()) is None:
            reading.feed(await self._read())
        self._reading = reading
        return head

    async def _read(self) -> bytes:
        if self._ahead:
            return self._from_ahead()
        try:
            data = await self.stream.receive(READ_BYTES)
        except anyio.EndOfStream:
            data = b""
        except BROKEN as error:
            raise httpx2.ReadError(str(error)) from error
        self._last_read = len(data)
        return data

    def _from_ahead(self) -> bytes:
        came = self._ahead.pop(0)
        if isinstance(came, OSError):
            raise httpx2.ReadError(str(came)) from came
        return came


def _is_read_out(reading: Reading) -> bool:
    """Skip some of what has come of a response that nobody reads any further; say if it is over."""
    with suppress(httpx2.RemoteProtocolError):
        for _ in range(PIECES_AT_ONCE):
            if reading.is_over or not reading.take():
                break
    return reading.is_over


def _gathered(reading: Reading, first: bytes) -> bytes:
    """Return a tiny piece with what is there behind it; what is wrong with that is said next."""
    pieces = [first]
    with suppress(httpx2.RemoteProtocolError):
        while len(pieces) < GATHERED and (piece := reading.take()):
            pieces.append(piece)
    return b"".join(pieces)


def _written(socket: socket, data: bytes) -> int:
    """Write as much as is taken at once to a socket on which nothing else is waiting."""
    try:
        return os.write(socket.fileno(), data)
    except BlockingIOError:
        return 0


def raw(stream: anyio.abc.ByteStream) -> socket:
    """Return the socket that a stream is on."""
    return stream.extra(anyio.abc.SocketAttribute.raw_socket)  # noqa: S610 - this is not Django
