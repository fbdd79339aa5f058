"""Requests to one origin on connections of our own: one write each, nothing sent twice.

A connection that is found closed before anything is written to it is not used. One that breaks
after that is no reason to write again: the request may have been acted on.
"""

import os
import re
import select
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from socket import socket

import anyio
import anyio.abc
import anyio.lowlevel
import h11
import httpx2

from aggregator.downstream.http.reading import Head, Reading, Unusual, usual
from aggregator.downstream.http.secured import Secured, secure
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

SUCCESS = range(200, 300)
PORTS = {"http": 80, "https": 443}

Option = tuple[int, int, int]

LENGTH = frozenset(("content-length",))


def _name(raw: bytes) -> str:
    return raw.decode("latin-1").lower()


class Form:
    """What messages to one address have in common, written down once."""

    def __init__(self, like: httpx2.Request, varying: frozenset[str] = LENGTH) -> None:
        raw = [line for line in like.headers.raw if _name(line[0]) not in varying]
        self._names = frozenset(_name(name) for name, _ in raw)
        target = like.url.raw_path
        # What is the same each time is looked at once, and stands for all in the state of HTTP.
        headers = [*raw, (b"content-length", b"0")]
        try:
            self.event = h11.Request(method="POST", target=target, headers=headers)
        except h11.LocalProtocolError as error:
            raise httpx2.LocalProtocolError(str(error)) from error
        lines = b"".join(b"%b: %b\r\n" % line for line in raw)
        self._head = b"POST %b HTTP/1.1\r\n%b" % (target, lines)

    def fits(self, headers: Iterable[str]) -> bool:
        """Whether none of these headers is another than what is said each time."""
        return self._names.isdisjoint([name.lower() for name in headers])

    def written(self, headers: Mapping[str, str], content: bytes) -> bytes:
        """Return a message in one piece, as it goes over the wire.

        Raises:
            LocalProtocolError: A header is none, or would end before its time.
        """
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        if _LINES.fullmatch(lines) is None or lines.count("\r\n") != len(headers):
            raise httpx2.LocalProtocolError("a header cannot be sent as it is")
        length = b"content-length: %d\r\n\r\n" % len(content)
        return b"".join((self._head, lines.encode("ascii"), length, content))


_LINES = re.compile(r"(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+: [\t -~]*\r\n)*", re.ASCII)


class Wire:
    """Keeps connections to one origin, each for one request at a time."""

    def __init__(
        self,
        url: httpx2.URL,
        context: ssl.SSLContext,
        *,
        options: Sequence[Option],
        patience: float,
        keep: float,
    ) -> None:
        self._host = url.raw_host.decode("ascii")
        self._port = url.port or PORTS[url.scheme]
        self._context = None
        if url.scheme == "https":
            context.set_alpn_protocols(["http/1.1"])
            self._context = context
        self._options = options
        self._patience = patience
        self._keep = keep
        self._idle: list[_Connection] = []

    async def send(self, request: httpx2.Request, content: bytes) -> "Answer":
        """Send a request, and return the response to it, unread.

        Raises:
            HTTPError: There is no connection to be had, or it broke.
        """
        return await self.post(Form(request), {}, content)

    async def post(self, form: Form, headers: Mapping[str, str], content: bytes) -> "Answer":
        """Send a message in the form that all to an address have, and return the response, unread.

        Raises:
            HTTPError: There is no connection to be had, or it broke.
        """
        data = form.written(headers, content)
        connection = await self._kept() or await self._connected()
        try:
            head = await connection.ask(form.event, data)
        except BaseException:
            await anyio.aclose_forcefully(connection.stream)
            raise
        return Answer(self, connection, head)

    async def let_go(self, connection: "_Connection") -> None:
        """Keep a connection for the next request if its response has been read to the end."""
        if connection.can_be_kept():
            connection.keep_until(anyio.current_time() + self._keep)
            self._idle.append(connection)
        else:
            await anyio.aclose_forcefully(connection.stream)

    async def close(self) -> None:
        """Close what is kept."""
        while self._idle:
            await anyio.aclose_forcefully(self._idle.pop().stream)

    async def _kept(self) -> "_Connection | None":
        """Return the connection that was used last and is still open; close those that are old."""
        now = anyio.current_time()
        while self._idle and self._idle[0].until < now:
            await anyio.aclose_forcefully(self._idle.pop(0).stream)
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed():
                return connection
            await anyio.aclose_forcefully(connection.stream)
        return None

    async def _connected(self) -> "_Connection":
        try:
            with anyio.fail_after(self._patience):
                return _Connection(await self._open(), self._patience)
        except TimeoutError as error:
            raise httpx2.ConnectTimeout("no connection in time") from error
        except BROKEN as error:
            raise httpx2.ConnectError(str(error)) from error

    async def _open(self) -> anyio.abc.ByteStream | Secured:
        stream = await anyio.connect_tcp(self._host, self._port)
        try:
            raw = _raw(stream)
            for option in self._options:
                raw.setsockopt(*option)
            if self._context is None:
                return stream
            return await secure(stream, self._host, self._context)
        except BaseException:
            await anyio.aclose_forcefully(stream)
            raise


class _Connection:
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
        self._socket = _raw(self.stream)
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)

    def keep_until(self, when: float) -> None:
        """Say when it is not kept any longer."""
        self.until = when

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
        self._reading = None
        unwritten: Exception | None = None
        try:
            rest = await self._write(data)
        except TimeoutError as error:
            raise httpx2.WriteTimeout("the request was not taken in time") from error
        except BROKEN as error:
            # A server may refuse what it has not read to the end, and close.
            unwritten, rest = error, b""
        if rest:
            upload = Upload(self.stream, rest, self._patience)
            return await upload.run(partial(self._head, request), self._spoil)
        try:
            return await self._head(request)
        except httpx2.HTTPError as error:
            if unwritten is not None:
                raise httpx2.WriteError(str(unwritten)) from unwritten
            raise error from error.__cause__

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

    def _spoil(self) -> None:
        """Take note that a request was not written to its end: nothing can follow it."""
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
        try:
            data = await self.stream.receive(READ_BYTES)
        except anyio.EndOfStream:
            data = b""
        except BROKEN as error:
            raise httpx2.ReadError(str(error)) from error
        self._last_read = len(data)
        return data


def _is_read_out(reading: Reading) -> bool:
    """Skip what has come of a response that nobody reads any further; say if that was its end."""
    with suppress(httpx2.RemoteProtocolError):
        while not reading.is_over:
            if not reading.take():
                return reading.is_over
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


def _raw(stream: anyio.abc.ByteStream) -> socket:
    """Return the socket that a stream is on."""
    return stream.extra(anyio.abc.SocketAttribute.raw_socket)  # noqa: S610 - this is not Django


class Answer:
    """A response, unread; its connection goes back to the wire when it is closed."""

    def __init__(self, wire: Wire, connection: _Connection, head: Head) -> None:
        self.status_code = head.status
        self.headers: Mapping[str, str] = head.headers
        self._wire = wire
        self._connection: _Connection | None = connection
        self._head = head

    @property
    def is_success(self) -> bool:
        """Whether the request was taken."""
        return self.status_code in SUCCESS

    def aiter_raw(self) -> AsyncIterator[bytes]:
        """Give the body in pieces, up to its end.

        Raises:
            HTTPError: The connection broke, or what came is not HTTP.
        """
        return _nothing() if self._connection is None else self._connection.body()

    async def aclose(self) -> None:
        """Give the connection back."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await self._wire.let_go(connection)

    def modelled(self, request: httpx2.Request) -> httpx2.Response:
        """Return it as the HTTP client has it, for what only that knows how to do."""
        return httpx2.Response(
            self.status_code, headers=self._head.raw(), stream=_Body(self), request=request
        )


class _Body(httpx2.AsyncByteStream):
    """The body of a response, as the HTTP client has it."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._answer.aiter_raw()

    async def aclose(self) -> None:
        await self._answer.aclose()


async def _nothing() -> AsyncIterator[bytes]:
    return
    yield b""


@asynccontextmanager
async def open_wire(wire: Wire) -> AsyncGenerator[Wire, None]:
    """Close what a wire keeps after the block."""
    try:
        yield wire
    finally:
        with anyio.CancelScope(shield=True):
            await wire.close()
