"""Requests to one origin on connections of our own: one write each, nothing sent twice.

A connection that is found closed before anything is written to it is not used. One that breaks
after that is no reason to write again: the request may have been acted on.
"""

import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager

import anyio
import anyio.abc
import httpx2

from aggregator.basics.clock import running_clock
from aggregator.basics.signals import Signal
from aggregator.downstream.http.connection import Connection, raw
from aggregator.downstream.http.form import Form
from aggregator.downstream.http.reading import Head
from aggregator.downstream.http.secured import Secured, secure
from aggregator.downstream.http.upload import BROKEN

SUCCESS = range(200, 300)
PORTS = {"http": 80, "https": 443}

Option = tuple[int, int, int]


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
        self._context = context if url.scheme == "https" else None
        self._options = options
        self._patience = patience
        self._keep = keep
        self._clock = running_clock()
        self._idle: list[Connection] = []
        """The one that was used last is the last."""
        self._is_tended = False
        """Whether somebody is up to close what gets old, or has been woken for it."""
        self._tending = Signal()
        self._busy = set[Connection]()
        """Those on which no task waits for an answer."""

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
        return await self._answered(connection, connection.ask(form.event, data))

    def put(self, data: bytes) -> Connection | None:
        """Write to the connection that was used last, if it is there and can be heard.

        Whoever is given it listens, or waits for the answer, and lets it go.
        """
        idle = self._idle
        if not idle or idle[-1].watch is None or idle[0].until < self._clock():
            return None
        if idle[-1].is_closed():
            return None
        connection = idle.pop()
        self._busy.add(connection)
        connection.put(data)
        return connection

    async def answer(self, connection: Connection, form: Form) -> "Answer":
        """Return the response to what was written to a connection, unread.

        Raises:
            HTTPError: It broke.
        """
        self._busy.discard(connection)
        return await self._answered(connection, connection.answer(form.event))

    async def _answered(self, connection: Connection, head: Awaitable[Head]) -> "Answer":
        try:
            return Answer(self, connection, await head)
        except BaseException:
            await connection.close()
            raise

    def keep(self, connection: Connection) -> bool:
        """Keep a connection for the next request if its response has been read to the end."""
        if not connection.can_be_kept():
            return False
        self._busy.discard(connection)
        connection.keep_until(self._clock() + self._keep)
        self._idle.append(connection)
        if not self._is_tended:
            self._is_tended = True
            self._tending.send()
        return True

    async def let_go(self, connection: Connection) -> None:
        """Keep a connection if that can be, or close it."""
        if not self.keep(connection):
            self._busy.discard(connection)
            await connection.close()

    async def tend(self) -> None:
        """Close what has been kept for long enough, also where no request comes any more."""
        while True:
            while not self._idle:
                self._is_tended = False
                await self._tending.wait()
            await anyio.sleep_until(self._idle[0].until)
            await self._part_with_old()

    async def close(self) -> None:
        """Close what is kept, and what nobody waits for."""
        for connection in (*self._idle, *self._busy):
            await connection.close()
        self._idle.clear()
        self._busy.clear()

    async def _kept(self) -> Connection | None:
        """Return the connection that was used last and is still open; close those that are old."""
        await self._part_with_old()
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed():
                return connection
            await connection.close()
        return None

    async def _part_with_old(self) -> None:
        now = self._clock()
        while self._idle and self._idle[0].until <= now:
            await self._idle.pop(0).close()

    async def _connected(self) -> Connection:
        try:
            with anyio.fail_after(self._patience):
                return Connection(await self._open(), self._patience)
        except TimeoutError as error:
            raise httpx2.ConnectTimeout("no connection in time") from error
        except BROKEN as error:
            raise httpx2.ConnectError(str(error)) from error

    async def _open(self) -> anyio.abc.ByteStream | Secured:
        stream = await anyio.connect_tcp(self._host, self._port)
        try:
            socket = raw(stream)
            for option in self._options:
                socket.setsockopt(*option)
            if self._context is None:
                return stream
            return await secure(stream, self._host, self._context)
        except BaseException:
            await anyio.aclose_forcefully(stream)
            raise


class Answer:
    """A response, unread; its connection goes back to the wire when it is closed."""

    def __init__(self, wire: Wire, connection: Connection, head: Head) -> None:
        self.status_code = head.status
        self.headers: Mapping[str, str] = head.headers
        self._wire = wire
        self._connection: Connection | None = connection
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

    def spoil(self) -> None:
        """Have nothing follow on the connection."""
        if self._connection is not None:
            self._connection.spoil()

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
