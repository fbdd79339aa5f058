"""Our own standard input and output as the streams the SDK serves a client on.

The SDK's transport reads standard input in a thread that cannot be interrupted, drops the requests
in flight when input ends, and does not answer a line it cannot read. This one waits for the
descriptor, lets what was asked be answered first, and says what was wrong with a line.
"""

import errno
import logging
import os
import stat
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from contextlib import asynccontextmanager, contextmanager

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import (
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)

from aggregator.stdio.decoding import Noise, decode
from aggregator.stdio.framing import Framing

logger = logging.getLogger(__name__)

MAX_REQUEST_BYTES = 64 * 1024 * 1024
"""Bytes a client's message may have."""
CHUNK_BYTES = 256 * 1024
"""Bytes read at a time."""
DRAIN_PATIENCE = 5.0
"""Seconds that calls in flight have to finish once no more requests can come."""

FLUSH_PATIENCE = 1.0
"""Seconds that the last answers have to be written."""

Streams = tuple[
    MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]
]

_ENDLESS = frozenset({"subscriptions/listen"})
"""Requests that are answered only when the connection ends; nobody waits for those."""


class Outstanding:
    """The requests that have come in and are not answered yet."""

    def __init__(self) -> None:
        self._requests: set[RequestId] = set()
        self._settled = anyio.Event()
        self._settled.set()

    def came(self, message: JSONRPCMessage) -> None:
        """Note a message from the client."""
        if isinstance(message, JSONRPCRequest) and message.method not in _ENDLESS:
            if not self._requests:
                self._settled = anyio.Event()
            self._requests.add(message.id)
        elif isinstance(message, JSONRPCNotification) and message.method.endswith("/cancelled"):
            self._settle((message.params or {}).get("requestId"))

    def went(self, message: JSONRPCMessage) -> None:
        """Note a message to the client, once it is written."""
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            self._settle(message.id)

    async def settle(self) -> None:
        """Wait until nothing is outstanding."""
        await self._settled.wait()

    def _settle(self, request: RequestId | None) -> None:
        self._requests = {each for each in self._requests if each != request}
        if not self._requests:
            self._settled.set()


@contextmanager
def claimed() -> Generator[tuple[int, int], None, None]:
    """Keep standard input and output for the protocol: whatever else is printed goes to stderr."""
    private_in, private_out = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    try:
        yield private_in, private_out
    finally:
        os.dup2(private_in, 0)
        os.dup2(private_out, 1)
        os.close(private_in)
        os.close(private_out)


@asynccontextmanager
async def standard_streams(
    stdin: int, stdout: int, *, stop: anyio.Event
) -> AsyncGenerator[Streams, None]:
    """Serve a client on two descriptors until its input ends or `stop` is set."""
    to_server, from_client = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_client, from_server = anyio.create_memory_object_stream[SessionMessage](64)
    outstanding = Outstanding()
    written = anyio.Event()
    async with anyio.create_task_group() as group, to_server, from_server, from_client, to_client:
        group.start_soon(_read, stdin, stop, to_server, to_client, outstanding)
        group.start_soon(_write, stdout, from_server, outstanding, written)
        yield from_client, to_client
        to_client.close()
        with anyio.move_on_after(FLUSH_PATIENCE):
            await written.wait()
        group.cancel_scope.cancel()


async def _read(
    stdin: int,
    stop: anyio.Event,
    to_server: MemoryObjectSendStream[SessionMessage | Exception],
    to_client: MemoryObjectSendStream[SessionMessage],
    outstanding: Outstanding,
) -> None:
    """Hand on the client's messages; at the end let those in flight be answered."""
    async with to_server:
        try:
            await _read_until(stop, stdin, to_server, to_client, outstanding)
        except* (anyio.BrokenResourceError, anyio.ClosedResourceError):
            logger.debug("the server stopped listening before the client's input ended")
        with anyio.move_on_after(DRAIN_PATIENCE):
            await outstanding.settle()


async def _read_until(
    stop: anyio.Event,
    stdin: int,
    to_server: MemoryObjectSendStream[SessionMessage | Exception],
    to_client: MemoryObjectSendStream[SessionMessage],
    outstanding: Outstanding,
) -> None:
    async def stopped() -> None:
        await stop.wait()
        group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(stopped)
        async for message in _messages(stdin):
            if isinstance(message, Noise):
                await to_client.send(SessionMessage(_unreadable()))
            else:
                outstanding.came(message)
                await to_server.send(SessionMessage(message))
        group.cancel_scope.cancel()


async def _messages(stdin: int) -> AsyncIterator[JSONRPCMessage | Noise]:
    framing = Framing(MAX_REQUEST_BYTES)
    ended = False
    while not ended:
        chunk = await _receive(stdin)
        ended = not chunk
        for line in framing.finish() if ended else framing.feed(chunk):
            for message in decode(line, MAX_REQUEST_BYTES):
                yield message


async def _receive(stdin: int) -> bytes:
    """Read what there is; nothing means that the input has ended."""
    try:
        await anyio.wait_readable(stdin)
    except OSError as error:
        # A regular file is always readable and cannot be waited for.
        if error.errno != errno.EPERM:
            return b""
    try:
        return os.read(stdin, CHUNK_BYTES)
    except OSError:
        return b""


async def _write(
    stdout: int,
    from_server: MemoryObjectReceiveStream[SessionMessage],
    outstanding: Outstanding,
    written: anyio.Event,
) -> None:
    """Write what is ready to be written, as much as possible at a time."""
    blocking = _make_non_blocking(stdout)
    try:
        async for first in from_server:
            batch = [first, *_ready(from_server)]
            data = b"".join(_line(each.message) for each in batch)
            await _send(stdout, data)
            for each in batch:
                outstanding.went(each.message)
    except OSError:
        # The client is gone; its input ends too, and with it the connection.
        return
    finally:
        os.set_blocking(stdout, blocking)
        written.set()


def _ready(stream: MemoryObjectReceiveStream[SessionMessage]) -> list[SessionMessage]:
    ready: list[SessionMessage] = []
    while True:
        try:
            ready.append(stream.receive_nowait())
        except (anyio.WouldBlock, anyio.EndOfStream):
            return ready


def _line(message: JSONRPCMessage) -> bytes:
    return message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"


async def _send(stdout: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(stdout, rest) :]
        except BlockingIOError:
            await anyio.wait_writable(stdout)


def _make_non_blocking(descriptor: int) -> bool:
    """Let writes to a pipe or socket return at once; say what it was before."""
    before = os.get_blocking(descriptor)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        os.set_blocking(descriptor, False)
    return before


def _unreadable() -> JSONRPCError:
    return JSONRPCError(
        jsonrpc="2.0",
        id=None,
        error=ErrorData(
            code=PARSE_ERROR, message="This line is not a JSON-RPC 2.0 message; send one per line"
        ),
    )
